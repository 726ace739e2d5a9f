"""Features scaled each by its own spread: what the spread is, and what it survives."""

import math
from itertools import permutations

import numpy as np
import pytest
from scipy import integrate, stats

import sotdd
from projections.tables import mixed
from sotdd import LabelledData, Scaler
from sotdd.projections import row_samples as samples


def of_normal_law():
    """The standard deviation of a standard normal variable cut to its 5 % and 95 % quantiles, by quadrature."""
    low, high = stats.norm.ppf([0.05, 0.95])
    square, _ = integrate.quad(lambda t: np.clip(t, low, high) ** 2 * stats.norm.pdf(t), -12, 12, points=[low, high])
    return math.sqrt(square)


NORMAL = of_normal_law()


def expected_spread(column):
    """The definition, in plain NumPy."""
    low, high = np.quantile(column, [0.05, 0.95], method="inverted_cdf")
    spread = np.std(np.clip(column, low, high)) / NORMAL
    return spread or np.std(column) or 1.0


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
