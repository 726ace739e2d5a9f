"""Statistics of scales: they merge over batches, travel, and refuse what does not fit."""

import math
import pickle

import numpy as np
import pytest
from scipy import integrate, stats

import sotdd
from projections.tables import mixed, table
from sotdd import Scaler, ScaleStatistics
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
    with pytest.raises(sotdd.SotddError, match="expected ScaleStatistics"):
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
