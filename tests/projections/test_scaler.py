"""Scalers: the pooled one, one for each feature, and who uses them."""

import math
from itertools import permutations

import numpy as np
import pandas as pd
import pytest
from scipy import integrate, stats

import sotdd
from sotdd import LabelledData, Scaler
from sotdd.projections import scale_statistics as samples
from sotdd.projections.scaler import find_scaler


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


def table(x, **more):
    return pd.DataFrame(x, columns=[f"c{k}" for k in range(x.shape[1])]).assign(label=0, **more)


def fit(*arrays):
    return Scaler.fit([LabelledData.of(array) for array in arrays])


def test_it_is_the_mean_and_the_average_spread_with_datasets_counting_the_same(rng):
    a, b = rng.normal(3, 2, size=(1200, 6)), rng.normal(-1, 5, size=(200, 6))
    scaler = fit(a, b)
    pooled = np.concatenate([a, *[b] * 6])
    np.testing.assert_allclose(scaler.centre, pooled.mean(axis=0), rtol=1e-12)
    assert scaler.scale == pytest.approx(np.sqrt(np.mean(pooled.var(axis=0))), rel=1e-12)


@pytest.mark.parametrize("scale", ["pooled", "features", "arcsinh"])
def test_the_unit_does_not_move_with_the_sizes_of_samples(rng, scale):
    """One side far away and wider: by points, the unit would follow the larger sample."""
    a, b = rng.normal(size=(8000, 4)), rng.normal(6, 3, size=(8000, 4))
    whole = Scaler.fit([a, b], scale).scales
    np.testing.assert_allclose(Scaler.fit([a, b[:800]], scale).scales, whole, rtol=0.05)
    np.testing.assert_allclose(Scaler.fit([a[:800], b], scale).scales, whole, rtol=0.05)


def test_points_count_the_same_where_they_are_permuted(rng):
    a, b = (LabelledData.of(rng.normal(shift, 1, size=(n, 3))) for shift, n in ((0, 300), (5, 60)))
    for kind in ("pooled", "features", "arcsinh"):
        pool = LabelledData.of(np.concatenate([a.features, b.features]))
        np.testing.assert_allclose(
            find_scaler(kind, [a, b], weigh_points=True).scales, Scaler.fit([pool], kind).scales, rtol=1e-9
        )


@pytest.mark.parametrize("unit", [1e-200, 1.0, 1e200])
def test_arcsinh_is_linear_near_zero_logarithmic_far_from_it_and_one_to_one(unit):
    scaler = Scaler(np.full(1, 3.0) * unit, unit, arcsinh=True)
    x = (3 + np.array([-1e90, -1e3, -0.01, 0.0, 0.01, 1e3, 1e90])[:, None]) * unit
    y = scaler.apply(x)
    np.testing.assert_allclose(y[:, 0], [-207.9, -7.6009, -0.01, 0, 0.01, 7.6009, 207.9], rtol=1e-3, atol=1e-9)
    np.testing.assert_allclose(scaler.invert(y), x, rtol=1e-6)


def test_far_from_zero_no_digits_are_lost(rng):
    x = rng.normal(size=(3000, 4))
    near, far = fit(x), fit(x + 1e8)
    assert far.scale == pytest.approx(near.scale, rel=1e-6)
    a, b = x[:1500], x[1500:] + 0.5
    assert sotdd.distance(a + 1e8, b + 1e8).value == pytest.approx(sotdd.distance(a, b).value, rel=1e-4)


@pytest.mark.parametrize("unit", [1e-200, 1e30, 1e200])
def test_the_distance_has_no_unit(rng, unit):
    a, b = rng.normal(size=(50, 4)), rng.normal(1, 1, size=(60, 4))
    assert sotdd.distance(a * unit, b * unit).value == pytest.approx(sotdd.distance(a, b).value, rel=1e-5)


@pytest.mark.parametrize("constant", [1e13, -3e300])
def test_a_constant_feature_changes_the_unit_and_nothing_else(rng, constant):
    """Such as a time stamp or an identifier that is the same everywhere, however large."""
    a, b = rng.normal(size=(300, 3)), rng.normal(0.2, 1, size=(200, 3))
    wide = [np.column_stack([x, np.full(len(x), constant)]) for x in (a, b)]
    zero = [np.column_stack([x, np.zeros(len(x))]) for x in (a, b)]
    assert fit(*wide).scale == pytest.approx(fit(*zero).scale, rel=1e-9)
    assert sotdd.distance(*wide).value == pytest.approx(sotdd.distance(*zero).value, rel=1e-5)


def test_constant_data_are_left_alone():
    x = np.full((5, 2), 3.0)
    assert fit(x).scale == 1
    assert sotdd.distance(x, x).value == 0


def test_a_scaler_is_reused(rng):
    a, b, c = rng.normal(size=(3, 40, 5)) * np.array([1, 2, 30])[:, None, None]
    first = sotdd.distance(a, b)
    again = sotdd.distance(a, b, scale=first.scaler)
    np.testing.assert_array_equal(first.per_projection, again.per_projection)
    assert sotdd.distance(a, c, scale=first.scaler).scaler is first.scaler
    assert sotdd.distance(a, c, scale=None).scaler is None


def test_the_largest_numbers_are_refused_with_a_reason():
    x = np.array([[1.7e308], [-1.7e308], [-1.7e308]])
    with pytest.raises(sotdd.SotddError, match="cannot be scaled in float64"):
        sotdd.distance(x, x)
    assert sotdd.distance(x / 4, -x / 4).value > 0


# ------------------------------------------------------------------ each feature by its own spread


def of_normal_law():
    """The standard deviation of a standard normal variable cut to its 5 % and 95 % quantiles, by quadrature."""
    low, high = stats.norm.ppf([0.05, 0.95])
    square, _ = integrate.quad(lambda t: np.clip(t, low, high) ** 2 * stats.norm.pdf(t), -12, 12, points=[low, high])
    return math.sqrt(square)


NORMAL = of_normal_law()


def expected_spread(column):
    """The definition, in plain NumPy."""
    tail = min(0.05, 0.1 * np.mean(column != np.median(column)))
    low, high = np.quantile(column, [tail, 1 - tail], method="inverted_cdf")
    return np.std(np.clip(column, low, high)) / NORMAL or 1.0


def test_the_spread_of_every_column_is_the_definition(rng):
    x = mixed(rng)
    parts = [x[:1500], x[1500:]]
    scaler = Scaler.fit(parts, "features")
    np.testing.assert_allclose(scaler.scale, [expected_spread(column) for column in x.T], rtol=1e-7)
    assert scaler.scale[6] == 1
    assert scaler.kind == "features"


@pytest.mark.parametrize("share", [0.001, 0.049, 0.051, 0.5, 0.97])
def test_flags_of_any_frequency_are_scaled_alike(share):
    """Within a tenth of their deviation, rare ones too."""
    x = (np.arange(20_000) < share * 20_000).astype(float)[:, None]
    assert Scaler.fit([x], "features").scale[0] == pytest.approx(x.std(), rel=0.1)


def mostly_zero(rng, share, draw, n=20_000):
    """A column of zeros, but for a share of values."""
    other = rng.random(n) < share
    return np.where(other, draw(n), 0.0)


LONG = {
    "lognormal": lambda rng: lambda n: rng.lognormal(0, 2, n),
    "Pareto": lambda rng: lambda n: 1 + rng.pareto(0.7, n),
    "both ways": lambda rng: rng.standard_cauchy,
    "small and large": lambda rng: lambda n: np.where(rng.random(n) < 0.5, 1e-6, 1e6),
}


@pytest.mark.parametrize("law", LONG)
@pytest.mark.parametrize("share", [0.001, 0.03, 0.049, 0.051, 0.12, 0.4, 0.6])
def test_a_column_of_mostly_one_value_weighs_no_more_than_another(rng, share, law):
    """Nor does its scale follow the one largest value, or vanish with a quantile that is nearly zero."""
    column = mostly_zero(rng, share, LONG[law](rng))
    found = Scaler.fit([np.column_stack([column, rng.normal(size=len(column))])], "arcsinh")
    scaled = found.apply(np.column_stack([column, column]))
    assert np.var(scaled[:, 0]) < 1.2
    assert np.abs(scaled[column != 0, 0]).mean() > 0.3  # and the others are seen
    column[np.argmax(column)] = 1e12
    again = Scaler.fit([np.column_stack([column, column])], "arcsinh")
    assert again.scales[0] == pytest.approx(found.scales[0], rel=0.15)


def test_the_scale_does_not_jump_where_the_share_of_zeros_passes_a_quantile(rng):
    values = rng.lognormal(0, 2, 20_000)
    shares = np.linspace(0.01, 0.99, 99)
    scales = [Scaler.fit([np.where(np.arange(20_000) < f * 20_000, values, 0)[:, None]], "arcsinh").scale[0]
              for f in shares]  # fmt: skip
    assert np.abs(np.diff(np.log(scales))).max() < 0.4


ODD = {
    "99.9 % one value": lambda rng, n: (np.arange(n) % 1000 == 0) * 5.0,
    "a value once": lambda rng, n: (np.arange(n) == 7) * 1e9,
    "flags": lambda rng, n: rng.integers(0, 2, n) * 1.0,
    "whole numbers with ties": lambda rng, n: rng.integers(1, 6, n) * 1.0,
    "seconds since 1970": lambda rng, n: 1.7e9 + rng.uniform(0, 3e7, n),
    "dates as numbers": lambda rng, n: 20230000 + 100.0 * rng.integers(1, 13, n) + rng.integers(1, 29, n),
    "the same everywhere": lambda rng, n: np.full(n, 1.7e18),
    "two values far apart": lambda rng, n: np.where(rng.random(n) < 0.5, -1e9, 1e9),
    "two values far apart, one rare": lambda rng, n: np.where(rng.random(n) < 0.02, 1e9, 0),
}


@pytest.mark.parametrize("kind", ODD)
def test_no_column_is_blown_up(rng, kind):
    column = ODD[kind](rng, 20_000)[:, None]
    scaled = Scaler.fit([column], "arcsinh").apply(column)
    assert np.std(scaled) < 1
    assert np.abs(scaled).max() < 6
    assert (np.ptp(scaled) > 1) == (np.ptp(column) > 0)


@pytest.mark.parametrize("outlier", [1e3, 1e200])
def test_outliers_move_neither_scale_nor_centre(rng, outlier):
    x = rng.normal(3, 2, size=(1000, 2))
    clean = Scaler.fit([x], "features")
    x[:30, 0] = outlier
    dirty = Scaler.fit([x], "features")
    np.testing.assert_allclose(dirty.scale, clean.scale, rtol=0.08)
    np.testing.assert_allclose(dirty.centre, clean.centre, atol=0.2)


def test_the_order_of_datasets_does_not_matter(rng, monkeypatch):
    parts = [mixed(rng, n) * 1.1 for n in (500, 700, 501, 1)]
    for bound in (samples.MOST_VALUES, 8 * 600):  # the second keeps samples, with other weights
        monkeypatch.setattr(samples, "MOST_VALUES", bound)
        for scale in ("features", "pooled"):
            found = [Scaler.fit(list(some), scale) for some in permutations(parts)]
            for other in found[1:]:
                np.testing.assert_array_equal(other.centre, found[0].centre)
                np.testing.assert_array_equal(other.scale, found[0].scale)


def test_samples_of_large_datasets_count_as_the_whole_does(rng, monkeypatch):
    a, b = rng.normal(0, 1, size=(40_000, 2)), rng.normal(5, 3, size=(2_000, 2))
    whole = Scaler.fit([a, b], "features")
    monkeypatch.setattr(samples, "MOST_VALUES", 2 * 2_000)
    sampled = Scaler.fit([a, b], "features")
    np.testing.assert_allclose(sampled.scale, whole.scale, rtol=0.06)
    np.testing.assert_allclose(sampled.centre, whole.centre, atol=0.1)


def test_tensors_on_a_device_give_the_same(rng):
    torch = pytest.importorskip("torch")
    from sotdd.inputs.features import DeviceFeatures

    x = mixed(rng, 9000)
    codes = np.zeros(len(x), np.int32)
    there = LabelledData("there", DeviceFeatures(torch.tensor(x)), ("all",), codes)
    for scale in ("features", "pooled"):
        here, found = Scaler.fit([x], scale), Scaler.fit([there], scale)
        np.testing.assert_allclose(found.scale, here.scale, rtol=1e-9)
        np.testing.assert_allclose(found.centre, here.centre, rtol=1e-9)
    assert [str(said).replace("there", "0") for said in found.remarks] == list(map(str, here.remarks))


@pytest.mark.parametrize("scale", ["features", "pooled"])
def test_the_strangest_numbers_are_scaled_or_refused(rng, scale):
    """Never a warning, never a scaler that depends on the order of datasets."""
    numbers = np.array([0, 1, -1, 5e-324, 1e-310, 1e-200, 1e200, -1e308, 1.7e308, 1e13, 1e13 + 1, 0.1])
    scaled = 0
    for _ in range(100):
        some = rng.choice(numbers, size=rng.integers(1, 5))
        parts = [rng.choice(some, size=(rng.integers(1, 8), 3)) for _ in range(rng.integers(1, 5))]
        try:
            there, back = Scaler.fit(parts, scale), Scaler.fit(parts[::-1], scale)
        except sotdd.SotddError:
            continue
        np.testing.assert_array_equal(there.centre, back.centre)
        np.testing.assert_array_equal(there.scales, back.scales)
        scaled += 1
    assert scaled > 25


# ------------------------------------------------------------------ who uses them, and what is said of them


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
    for expected, sources in (("arcsinh", features), ("pooled", pooled)):
        for source in sources.values():
            assert sotdd.distance(source, source, n_projections=64).scale == expected
    assert sotdd.distance(frame, x, n_projections=64).scale == "arcsinh"
    assert sotdd.distance(x, frame, n_projections=64, scale="pooled").scale == "pooled"


def test_engines_and_peers_scale_every_feature(rng):
    pytest.importorskip("torch")
    from sotdd.compute.comparison import compare
    from sotdd.compute.torch.engine import TorchEngine

    a, b = mixed(rng, 400)[:, :6], mixed(rng, 300)[:, :6]
    scaler = Scaler.fit([a, b], "features")
    by_hand = [(part - scaler.centre) / scaler.scale for part in (a, b)]
    found = sotdd.Projections.fit([a, b], n_projections=128, scale="features", tilt=False)
    plain = sotdd.Projections.fit(
        [a, b], n_projections=128, scale=None, label_law=sotdd.projections.Moments(cut=2.5), tilt=False
    )
    expected = sotdd.distance(*by_hand, projections=plain, estimator="plain").value
    data = [LabelledData.of(part, name) for part, name in ((a, "a"), (b, "b"))]
    for engine in (None, TorchEngine("cpu")):
        assert compare(data, [(0, 1)], found, 2, engine=engine)[0, 1].value == pytest.approx(expected, rel=1e-4)
    peer = sotdd.peers.frechet(a[:, :2], b[:, :2], scale="features").value
    assert peer == pytest.approx(sotdd.peers.frechet(*(part[:, :2] for part in by_hand)).value, rel=1e-6)


@pytest.mark.parametrize(
    ("centre", "scale"),
    [([0.0, 1.0], [1.0]), ([0.0], [-1.0]), ([0.0], 0), ([0.0], 1e-320), ([np.inf], 1), ([[0.0]], 1)],
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
    [told] = [said for said in found.remarks if said.kind == "one feature"]
    assert (told.facts["feature"], round(told.facts["share"], 2)) == ("feature 0", 0.98)
    one, other = table(a), table(b)
    seen = sotdd.distance(one, other, noise_floor=True)
    assert not seen.within_noise
    assert seen.value > 5 * seen.noise_floor
    assert seen.remarks == ()
    pooled = sotdd.distance(one, other, scale="pooled").remarks
    assert ("column 'c0'", "features") in [(said.facts.get("feature"), said.facts.get("better")) for said in pooled]


def test_a_column_whose_tail_drowns_the_others_is_told_unless_tails_count_by_their_logarithm(rng):
    x = rng.normal(size=(2000, 4))
    x[:, 2] = rng.lognormal(0, 3, 2000)
    [told] = Scaler.fit([table(x)], "features").remarks
    assert (told.kind, told.facts["feature"], told.facts["better"]) == ("one feature", "column 'c2'", "arcsinh")
    assert told.facts["share"] == pytest.approx(1, abs=0.05)
    scaled = Scaler.fit([table(x)])
    assert scaled.remarks == ()
    assert scaled.apply(x).var(axis=0)[2] < 2 * scaled.apply(x).var(axis=0)[0]


def test_a_far_dataset_is_told(rng):
    x = rng.normal(size=(300, 4))
    near = {"here": x, "there": rng.normal(0.5, 1, size=(300, 4))}
    for scale in ("pooled", "features", "arcsinh"):
        alone = sotdd.pairwise(near, scale=scale, n_projections=200)["here", "there"].value
        matrix = sotdd.pairwise({**near, "far": x + 1000}, scale=scale, n_projections=200)
        [said] = matrix["here", "there"].remarks
        assert (said.kind, said.facts["name"]) == ("one dataset", "far")
        measured = alone / matrix["here", "there"].value
        assert said.facts["farther"] == pytest.approx(measured, rel=0.4)  # the label term does not go with the scale
        assert sotdd.pairwise(near, scale=scale, n_projections=64)["here", "there"].remarks == ()
        many = {**near, "many": rng.normal(0.2, 1, size=(9000, 4))}  # points do not make a scale
        assert sotdd.pairwise(many, scale=scale, n_projections=64)["here", "there"].remarks == ()


@pytest.mark.parametrize(("size", "makes"), [(10, False), (300, True)])
def test_one_outlier_among_500_points_is_told(rng, size, makes):
    a, b = rng.normal(size=(500, 20)), rng.normal(size=(500, 20))
    assert sotdd.distance(a, b, n_projections=64).remarks == ()
    b[123, :10] += size
    [said] = [told for told in sotdd.distance(a, b, n_projections=64).remarks if told.kind == "one point"]
    assert (said.facts["point"], said.facts["makes_the_scale"]) == ("row 123 of 'b'", makes)
    assert Scaler.fit([a, b], "features").remarks == ()


def test_rows_of_large_tables_are_drawn_at_random(monkeypatch):
    """Of rows that repeat with a period, every k-th would be all alike."""
    monkeypatch.setattr("sotdd.projections.scale_statistics.MOST_VALUES", 1 << 10)
    x = np.tile([0.0, 1.0, 2.0, 30.0], 2048)[:, None]
    found = Scaler.fit([x], "features")
    assert found.scale[0] == pytest.approx(Scaler.fit([x[:1024]], "features").scale[0], rel=0.1)
    assert Scaler.fit([x], "features").fingerprint() == found.fingerprint()
