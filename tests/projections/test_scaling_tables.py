"""Features scaled each by its own spread: what the spread is, what it survives, and how its statistics merge."""

import math
import pickle
from itertools import permutations

import numpy as np
import pandas as pd
import pytest
from scipy import integrate, stats

import sotdd
from sotdd import LabelledData, Scaler, ScaleStatistics
from sotdd.projections import row_samples as samples


def of_normal_law():
    """The standard deviation of a standard normal variable cut to its 5 % and 95 % quantiles, by quadrature."""
    low, high = stats.norm.ppf([0.05, 0.95])
    square, _ = integrate.quad(lambda t: np.clip(t, low, high) ** 2 * stats.norm.pdf(t), -12, 12, points=[low, high])
    return math.sqrt(square)


def expected_spread(column):
    """The definition, in plain NumPy."""
    low, high = np.quantile(column, [0.05, 0.95], method="inverted_cdf")
    spread = np.std(np.clip(column, low, high)) / of_normal_law()
    return spread or np.std(column) or 1.0


def table(x, **more):
    return pd.DataFrame(x, columns=[f"c{k}" for k in range(x.shape[1])]).assign(label=0, **more)


def mixed(rng, n=3000):
    """Columns of many kinds."""
    return np.column_stack(
        [
            rng.normal(5, 3, n),
            rng.lognormal(10, 1.5, n),
            rng.standard_t(1.2, n),
            rng.integers(0, 2, n),
            rng.random(n) < 0.01,
            rng.poisson(0.02, n),
            np.full(n, 1.7e18),
            rng.normal(1e8, 1e-2, n),
        ]
    ).astype(np.float64)


def test_the_spread_of_every_column_is_the_definition(rng):
    x = mixed(rng)
    parts = [x[:1700], x[1700:]]
    scaler = Scaler.fit(parts, "features")
    np.testing.assert_allclose(scaler.scale, [expected_spread(column) for column in x.T], rtol=1e-7)
    assert scaler.scale[6] == 1
    assert scaler.kind == "features"


def test_normal_columns_come_out_at_their_deviation(rng):
    x = rng.normal(7, [0.01, 1, 1000], size=(200_000, 3))
    np.testing.assert_allclose(Scaler.fit([x], "features").scale, [0.01, 1, 1000], rtol=0.01)


@pytest.mark.parametrize("share", [0.001, 0.02, 0.049, 0.051, 0.3, 0.5, 0.97])
def test_flags_of_any_frequency_are_scaled_alike(share):
    """Within a tenth of their deviation, rare ones too."""
    x = (np.arange(20_000) < share * 20_000).astype(float)[:, None]
    assert Scaler.fit([x], "features").scale[0] == pytest.approx(x.std(), rel=0.1)


@pytest.mark.parametrize("outlier", [1e3, 1e9, 1e200])
def test_outliers_move_neither_scale_nor_centre(rng, outlier):
    x = rng.normal(3, 2, size=(1000, 2))
    clean = Scaler.fit([x], "features")
    x[:30, 0] = outlier
    dirty = Scaler.fit([x], "features")
    np.testing.assert_allclose(dirty.scale, clean.scale, rtol=0.08)
    np.testing.assert_allclose(dirty.centre, clean.centre, atol=0.2)


@pytest.mark.parametrize("shape", [(1, 1), (2, 1), (20, 1), (20, 5), (3, 800)])
def test_few_rows_and_few_or_many_columns(rng, shape):
    x = rng.normal(size=shape)
    scaler = Scaler.fit([x], "features")
    np.testing.assert_allclose(scaler.scale, [expected_spread(column) for column in x.T], rtol=1e-9)
    assert sotdd.distance(x, x, scale="features", n_projections=64).value == 0


def test_sparse_counts(rng):
    x = rng.poisson(rng.gamma(0.05, 1, size=800), size=(400, 800)).astype(np.uint8)
    scaler = Scaler.fit([x], "features")
    np.testing.assert_allclose(scaler.scale, [expected_spread(column.astype(float)) for column in x.T], rtol=1e-9)
    assert (scaler.scale > 0).all()


def test_the_order_of_datasets_does_not_matter(rng, monkeypatch):
    parts = [mixed(rng, n) * 1.1 for n in (500, 700, 501, 1)]
    for bound in (samples.MOST_VALUES, 8 * 600):  # the second keeps samples, with other weights
        monkeypatch.setattr(samples, "MOST_VALUES", bound)
        for scale in ("features", "pooled"):
            found = [Scaler.fit(list(some), scale) for some in permutations(parts)]
            for other in found[1:]:
                np.testing.assert_array_equal(other.centre, found[0].centre)
                np.testing.assert_array_equal(other.scale, found[0].scale)


def test_samples_of_large_datasets_count_by_their_size(rng, monkeypatch):
    a, b = rng.normal(0, 1, size=(40_000, 2)), rng.normal(5, 3, size=(2_000, 2))
    whole = Scaler.fit([a, b], "features")
    monkeypatch.setattr(samples, "MOST_VALUES", 2 * 2_000)
    sampled = Scaler.fit([a, b], "features")
    np.testing.assert_allclose(sampled.scale, whole.scale, rtol=0.06)
    np.testing.assert_allclose(sampled.centre, whole.centre, atol=0.1)


@pytest.mark.parametrize("dtype", [np.uint8, np.float32, np.float64, np.int16])
def test_memory_maps_and_streams_give_the_same(rng, dtype, tmp_path):
    x = rng.integers(0, 200, size=(1500, 4)).astype(dtype)
    np.save(tmp_path / "x.npy", x)
    expected = Scaler.fit([x.astype(np.float64)], "features")
    for source in (x, np.load(tmp_path / "x.npy", mmap_mode="r"), str(tmp_path / "x.npy")):
        found = Scaler.fit([sotdd.open_dataset(source, label=None)], "features")
        np.testing.assert_allclose(found.scale, expected.scale, rtol=1e-12)
        np.testing.assert_allclose(found.centre, expected.centre, rtol=1e-12)


def test_tensors_on_a_device_give_the_same(rng):
    torch = pytest.importorskip("torch")
    from sotdd.inputs.tensors import DeviceFeatures

    x = mixed(rng, 9000)
    codes = np.zeros(len(x), np.int32)
    there = LabelledData("there", DeviceFeatures(torch.tensor(x)), ("all",), codes)
    for scale in ("features", "pooled"):
        here, found = Scaler.fit([x], scale), Scaler.fit([there], scale)
        np.testing.assert_allclose(found.scale, here.scale, rtol=1e-9)
        np.testing.assert_allclose(found.centre, here.centre, rtol=1e-9)
    assert [said.replace("there", "0") for said in found.remarks] == list(here.remarks)


@pytest.mark.parametrize("scale", ["features", "pooled"])
def test_the_strangest_numbers_are_scaled_or_refused(rng, scale):
    """Never a warning, never a scaler that depends on the order of datasets."""
    numbers = np.array([0, 1, -1, 5e-324, 1e-310, 1e-200, 1e200, -1e308, 1.7e308, 1e13, 1e13 + 1, 0.1])
    scaled = 0
    for _ in range(200):
        some = rng.choice(numbers, size=rng.integers(1, 5))
        parts = [rng.choice(some, size=(rng.integers(1, 8), 3)) for _ in range(rng.integers(1, 5))]
        try:
            there, back = Scaler.fit(parts, scale), Scaler.fit(parts[::-1], scale)
        except sotdd.SotddError:
            continue
        np.testing.assert_array_equal(there.centre, back.centre)
        np.testing.assert_array_equal(there.scales, back.scales)
        scaled += 1
    assert scaled > 50


# ------------------------------------------------------------------ statistics that merge


def test_statistics_of_batches_are_those_of_the_whole(rng):
    x = mixed(rng)
    gathered = ScaleStatistics()
    for batch in np.array_split(x, 7):
        gathered.add(batch, np.zeros(len(batch)))
    for scale in ("features", "pooled"):
        found, expected = gathered.scaler(scale), Scaler.fit([x], scale)
        np.testing.assert_allclose(found.scale, expected.scale, rtol=1e-7)
        np.testing.assert_allclose(found.centre, expected.centre, rtol=1e-7)
    assert gathered.n_points == len(x)


def test_statistics_add_up_and_travel(rng):
    x = mixed(rng)
    a, b = ScaleStatistics("a").add(x[:1000]), ScaleStatistics("b").add(x[1000:])
    both = pickle.loads(pickle.dumps(a)) + pickle.loads(pickle.dumps(b))
    assert (a.n_points, b.n_points, both.n_points) == (1000, 2000, 3000)
    np.testing.assert_array_equal(both.scaler("features").scale, (b + a).scaler("features").scale)
    np.testing.assert_allclose(both.scaler("features").scale, Scaler.fit([x], "features").scale, rtol=1e-7)
    apart = Scaler.fit({"a": a, "b": b}, "features")
    np.testing.assert_array_equal(apart.scale, Scaler.fit([x[:1000], x[1000:]], "features").scale)


def test_merged_samples_are_uniform(rng, monkeypatch):
    """A small part must not be over-represented once samples are cut to their bound."""
    monkeypatch.setattr(samples, "MOST_VALUES", 3000)
    large, small = np.zeros((27_000, 1)), np.ones((3_000, 1))
    merged = ScaleStatistics()
    for part in (*np.array_split(large, 9), small):
        merged.add(part + rng.random(part.shape) / 10)
    assert len(merged.sample.rows) == 3000
    assert np.mean(merged.sample.rows > 0.5) == pytest.approx(0.1, abs=0.02)


def test_statistics_refuse_what_does_not_fit(rng):
    found = ScaleStatistics().add(rng.normal(size=(5, 2)))
    with pytest.raises(sotdd.SotddError, match="3 features"):
        found.add(rng.normal(size=(5, 3)))
    with pytest.raises(sotdd.SotddError, match="expected another"):
        found.merge(3)
    with pytest.raises(sotdd.SotddError, match="no points"):
        ScaleStatistics().scaler()


def test_statistics_know_names(rng):
    frame = table(rng.normal(size=(100, 3)) * [1, 5, 25])
    found = ScaleStatistics().add(frame[:50]).add(frame[50:][["c2", "label", "c0", "c1"]])
    scaler = found.scaler()
    assert scaler.kind == "features"
    assert scaler.columns == ("c0", "c1", "c2")
    np.testing.assert_allclose(scaler.scale, [expected_spread(frame[name]) for name in scaler.columns], rtol=1e-9)
    with pytest.raises(sotdd.SotddError, match="no column 'c1'"):
        found.add(frame.drop(columns="c1"))


# ------------------------------------------------------------------ who uses it


def test_tables_are_scaled_by_column_and_arrays_together(rng, tmp_path):
    x = rng.normal(size=(60, 3)) * [1, 10, 100]
    frame = table(x)
    frame.to_csv(tmp_path / "t.csv", index=False)
    frame.to_parquet(tmp_path / "t.parquet")
    lists = pd.DataFrame({"vector": list(x), "label": 0})
    features = {"frame": frame, "csv": str(tmp_path / "t.csv"), "parquet": str(tmp_path / "t.parquet")}
    features |= {"pair": (frame.drop(columns="label"), frame["label"])}
    pooled = {"array": x, "pair": (x, np.zeros(60)), "lists": lists, "numbers": sotdd.open_dataset(
        pd.DataFrame(x), label=None)}  # fmt: skip
    for expected, sources in (("features", features), ("pooled", pooled)):
        for source in sources.values():
            assert sotdd.distance(source, source, n_projections=64).scale == expected
    assert sotdd.distance(frame, x, n_projections=64).scale == "features"
    assert sotdd.distance(x, frame, n_projections=64, scale="pooled").scale == "pooled"


def test_the_text_says_how_features_were_scaled(rng):
    x = rng.normal(size=(60, 3))
    said = repr(sotdd.distance(table(x), table(x + 1), n_projections=64))
    assert "(s-OTDD, p=2, 64 projections, each column scaled)" in said
    assert ", each feature scaled)" in repr(sotdd.distance(x, x + 1, n_projections=64, scale="features"))
    assert "(s-OTDD, p=2, 64 projections)" in repr(sotdd.distance(x, x + 1, n_projections=64))
    told = sotdd.distance(table(x), table(x + 1), n_projections=64).to_dict()
    assert (told["scale"], told["scaler"]["kind"], told["columns"]) == ("features", "features", ["c0", "c1", "c2"])
    assert sotdd.distance(x, x, scale=None, n_projections=64).to_dict()["scale"] == "none"


def scaled_by_hand(*parts):
    scaler = Scaler.fit(list(parts), "features")
    return [(part - scaler.centre) / scaler.scale for part in parts]


@pytest.mark.parametrize("device", ["cpu", "torch"])
def test_engines_scale_every_feature(rng, device):
    a, b = mixed(rng, 400)[:, :6], mixed(rng, 300)[:, :6]
    found = sotdd.Projections.fit([a, b], n_projections=128, scale="features")
    plain = sotdd.Projections.fit([a, b], n_projections=128, scale=None, label_law=sotdd.Moments())
    if device == "cpu":
        one = sotdd.distance(a, b, projections=found).value
        other = sotdd.distance(*scaled_by_hand(a, b), projections=plain).value
    else:
        torch = pytest.importorskip("torch")
        labels = [torch.zeros(len(part), dtype=torch.long) for part in (a, b)]

        def loss(x, y, projections):
            x, y = torch.tensor(x), torch.tensor(y)
            return float(sotdd.torch.sotdd_loss(x, labels[0], y, labels[1], projections)) ** 0.5

        one, other = loss(a, b, found), loss(*scaled_by_hand(a, b), plain)
    assert one == pytest.approx(other, rel=1e-4)


def test_the_torch_engine_scales_every_feature(rng):
    pytest.importorskip("torch")
    from sotdd.engines.comparison import compare
    from sotdd.engines.torch.engine import TorchEngine

    data = [LabelledData.of(mixed(rng, n)[:, :6], name) for n, name in ((400, "a"), (300, "b"))]
    projections = sotdd.Projections.fit(data, n_projections=128, scale="features")
    on_cpu = compare(data, [(0, 1)], projections, 2)[0, 1].value
    assert compare(data, [(0, 1)], projections, 2, engine=TorchEngine("cpu"))[0, 1].value == pytest.approx(on_cpu, 1e-4)


def test_a_span_and_a_peer_scale_every_feature(rng):
    a, b = rng.normal(size=(8, 40)) * np.geomspace(1, 1e6, 40), rng.normal(1, 2, size=(9, 40))
    span = sotdd.onto_span([a, b], scale="features")
    by_hand = np.concatenate(scaled_by_hand(a, b))
    turned = np.concatenate([part.features for part in span.datasets.values()])
    np.testing.assert_allclose(turned @ turned.T, by_hand @ by_hand.T, rtol=1e-6, atol=1e-6)
    found = sotdd.peers.frechet(a, b, scale="features").value
    assert found == pytest.approx(sotdd.peers.frechet(*scaled_by_hand(a, b)).value, rel=1e-6)


def test_a_flow_returns_features_in_their_own_units(rng):
    pytest.importorskip("torch")
    a, b = table(rng.normal(0, [1, 100], size=(60, 2))), table(rng.normal([3, 500], [1, 100], size=(50, 2)))
    moved = sotdd.flow(a, b, steps=40, snapshots=2, n_projections=64)
    np.testing.assert_allclose(moved.features.mean(axis=0), b[["c0", "c1"]].mean(), rtol=0.3)
    assert moved.distances[-1] < 0.3 * moved.distances[0]


def test_sketches_and_references_keep_every_scale(rng, tmp_path):
    a, b = table(rng.normal(0, [1, 10, 100], size=(300, 3))), table(rng.normal(1, [1, 10, 100], size=(200, 3)))
    projections = sotdd.Projections.fit([a, b], n_projections=64)
    made = sotdd.sketch(a, projections, name="a")
    made.save(tmp_path / "a.sotdd")
    again = sotdd.Sketch.load(tmp_path / "a.sotdd")
    np.testing.assert_array_equal(again.scaler.scale, projections.scaler.scale)
    assert again.projections.fingerprint == projections.fingerprint
    expected = sotdd.distance(a, b, projections=projections).value
    assert sotdd.distance(tmp_path / "a.sotdd", b).value == pytest.approx(expected, rel=1e-4)
    builder = sotdd.SketchBuilder(projections).add(a[:100]).add(a[100:])
    builder.save(tmp_path / "builder")
    finished = sotdd.SketchBuilder.load(tmp_path / "builder").finish("a")
    assert finished.distance(again).value < 0.01
    assert finished.distance(again).scale == "features"
    reference = sotdd.DriftReference.fit(a)
    assert reference.projections.scaler.kind == "features"


@pytest.mark.parametrize(
    ("centre", "scale"),
    [([0.0, 1.0], [1.0]), ([0.0], [[1.0]]), ([0.0], [0.0]), ([0.0], [-1.0]), ([0.0], [np.inf]), ([0.0], [1e-320])],
)
def test_numbers_that_make_no_scale(centre, scale):
    with pytest.raises(sotdd.SotddError, match="Scaler's scale"):
        Scaler(centre, scale)


@pytest.mark.parametrize("scale", ["feature", "none", 3, ["pooled"], b"pooled"])
def test_other_scales_are_refused(rng, scale):
    with pytest.raises(sotdd.SotddError, match=r"scale is .*expected 'auto', 'features', 'pooled', None or a Scaler"):
        sotdd.distance(rng.normal(size=(5, 2)), rng.normal(size=(5, 2)), scale=scale)


# ------------------------------------------------------------------ what is said of a scale


def shifted_beside_a_loud_feature(rng):
    a, b = rng.normal(size=(500, 20)), rng.normal(size=(500, 20))
    b[:, 1:] += 1
    for x in (a, b):
        x[:, 0] *= 30
    return a, b


def test_a_feature_that_drowns_the_others_is_told_in_arrays_and_weighed_in_tables(rng):
    a, b = shifted_beside_a_loud_feature(rng)
    found = sotdd.distance(a, b)
    assert any(said.startswith("feature 0 carries 98 % of the spread: scale='features'") for said in found.remarks)
    one, other = table(a), table(b)
    seen = sotdd.distance(one, other, noise_floor=True)
    assert not seen.within_noise
    assert seen.value > 5 * seen.noise_floor
    assert seen.remarks == ()
    pooled = sotdd.distance(one, other, scale="pooled").remarks
    assert any(said.startswith("column 'c0' carries") for said in pooled)


def test_a_far_dataset_is_told(rng):
    x = rng.normal(size=(300, 4))
    near = {"here": x, "there": rng.normal(0.5, 1, size=(300, 4))}
    for scale in ("pooled", "features"):
        alone = sotdd.pairwise(near, scale=scale, n_projections=200)["here", "there"].value
        matrix = sotdd.pairwise({**near, "far": x + 1000}, scale=scale, n_projections=200)
        [said] = matrix["here", "there"].remarks
        assert said.startswith("dataset 'far' makes the scale: without it the others would be ")
        assert repr(matrix).endswith(said)
        told = float(said.split(" would be about ")[1].split(" ×")[0].replace(",", ""))
        measured = alone / matrix["here", "there"].value
        assert told == pytest.approx(measured, rel=0.4)  # the label term does not go with the scale
        assert sotdd.pairwise(near, scale=scale, n_projections=64)["here", "there"].remarks == ()
    same = sotdd.pairwise([x, x, x[:1] + 9], n_projections=64)  # two that are no farther apart without the third
    assert same["0", "1"].value == 0
    even = {**near, "third": rng.normal(-0.5, 1, size=(300, 4))}
    assert sotdd.pairwise(even, n_projections=64)["here", "third"].remarks == ()


@pytest.mark.parametrize(("size", "word"), [(10, "stands out"), (300, "makes the scale")])
def test_one_outlier_among_500_points_is_told(rng, size, word):
    a, b = rng.normal(size=(500, 20)), rng.normal(size=(500, 20))
    assert sotdd.distance(a, b, n_projections=64).remarks == ()
    b[123, :10] += size
    said = [text for text in sotdd.distance(a, b, n_projections=64).remarks if text.startswith("one point")]
    assert said[0].startswith(f"one point {word}: row 123 of 'b' carries ")
    assert Scaler.fit([a, b], "features").remarks == ()


def test_the_outlier_may_be_first_or_alone_in_its_block(rng):
    for place in (0, 511, 512):
        x = rng.normal(size=(513, 3))
        x[place] += 500
        assert any(f"row {place} of '0'" in said for said in Scaler.fit([x]).remarks)


def test_remarks_are_no_part_of_what_a_scaler_is(rng):
    a, b = shifted_beside_a_loud_feature(rng)
    scaler = Scaler.fit([a, b])
    quiet = Scaler(scaler.centre, scaler.scale)
    assert scaler.remarks
    assert quiet.fingerprint() == scaler.fingerprint()
    assert quiet.to_dict() == scaler.to_dict()


def test_remarks_come_with_tests_sketches_and_peers(rng, tmp_path):
    a, b = shifted_beside_a_loud_feature(rng)
    said = Scaler.fit([a, b]).remarks[0]
    assert said in sotdd.test(a, b, n_permutations=9, n_projections=64).remarks
    assert said in sotdd.peers.sliced_wasserstein(a, b, scale="pooled", n_projections=64).remarks
    assert said in sotdd.explain(a, b, n_projections=64).distance.remarks
    projections = sotdd.Projections.fit([a, b], n_projections=64)
    sotdd.sketch(a, projections).save(tmp_path / "a.sotdd")
    assert said in sotdd.Sketch.load(tmp_path / "a.sotdd").distance(sotdd.sketch(b, projections)).remarks
