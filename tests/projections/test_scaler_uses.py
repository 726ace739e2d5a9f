"""Who uses a scaler, distances, engines, peers, sketches and references, and what is said of it."""

import numpy as np
import pandas as pd
import pytest

import sotdd
from projections.tables import mixed, table
from sotdd import LabelledData, Scaler


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


def test_engines_and_peers_scale_every_feature(rng):
    pytest.importorskip("torch")
    from sotdd.engines.comparison import compare
    from sotdd.engines.torch.engine import TorchEngine

    a, b = mixed(rng, 400)[:, :6], mixed(rng, 300)[:, :6]
    scaler = Scaler.fit([a, b], "features")
    by_hand = [(part - scaler.centre) / scaler.scale for part in (a, b)]
    found = sotdd.Projections.fit([a, b], n_projections=128, scale="features", tilt=False)
    plain = sotdd.Projections.fit([a, b], n_projections=128, scale=None, label_law=sotdd.Moments(), tilt=False)
    expected = sotdd.distance(*by_hand, projections=plain, estimator="plain").value
    data = [LabelledData.of(part, name) for part, name in ((a, "a"), (b, "b"))]
    for engine in (None, TorchEngine("cpu")):
        assert compare(data, [(0, 1)], found, 2, engine=engine)[0, 1].value == pytest.approx(expected, rel=1e-4)
    peer = sotdd.peers.frechet(a[:, :2], b[:, :2], scale="features").value
    assert peer == pytest.approx(sotdd.peers.frechet(*(part[:, :2] for part in by_hand)).value, rel=1e-6)


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
    [
        ([0.0, 1.0], [1.0]),
        ([0.0], [-1.0]),
        ([0.0], [1e-320]),
        ([0.0], 0),
        ([0.0], 1e-320),
        ([np.inf], 1),
        ([[0.0]], 1),
    ],
)
def test_numbers_that_make_no_scaler(centre, scale):
    with pytest.raises(sotdd.SotddError, match="Scaler"):
        Scaler(centre, scale)


def test_other_scales_are_refused(rng):
    with pytest.raises(sotdd.SotddError, match="scale is 'feature': expected"):
        sotdd.distance(rng.normal(size=(5, 2)), rng.normal(size=(5, 2)), scale="feature")
    with pytest.raises(sotdd.SotddError, match="scaler is for 3 features but the data have 2"):
        sotdd.distance(rng.normal(size=(5, 2)), rng.normal(size=(5, 2)), scale=Scaler(np.zeros(3), 1.0))


# ------------------------------------------------------------------ remarks


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


def test_remarks_come_with_tests_sketches_and_peers(rng, tmp_path):
    a, b = shifted_beside_a_loud_feature(rng)
    said = Scaler.fit([a, b]).remarks[0]
    assert said in sotdd.test(a, b, n_permutations=9, n_projections=64).remarks
    assert said in sotdd.peers.sliced_wasserstein(a, b, scale="pooled", n_projections=64).remarks
    assert said in sotdd.explain(a, b, n_projections=64).distance.remarks
    projections = sotdd.Projections.fit([a, b], n_projections=64)
    sotdd.sketch(a, projections).save(tmp_path / "a.sotdd")
    assert said in sotdd.Sketch.load(tmp_path / "a.sotdd").distance(sotdd.sketch(b, projections)).remarks
