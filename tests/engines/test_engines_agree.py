"""The verbs of the torch engine, on the processor, beside those of the engine for processors."""

import subprocess
import sys
from itertools import pairwise

import numpy as np
import pytest

import sotdd
from sotdd import LabelledData
from sotdd.engines.cpu.engine import CpuEngine
from sotdd.inputs import data as opened_data

pytest.importorskip("torch", reason="one of the two engines is torch's")
from sotdd.engines.torch.engine import TorchEngine  # imports torch


@pytest.fixture
def pair(rng):
    a = LabelledData.of((rng.normal(size=(700, 6)) + np.arange(700)[:, None] % 3, np.arange(700) % 3), "a")
    b = LabelledData.of((rng.normal(0.5, 2, size=(450, 6)), rng.choice(list("abcde"), size=450)), "b")
    return [a, b]


@pytest.mark.parametrize("at_a_time", [1, 4, 6])
@pytest.mark.parametrize("scale", [None, "pooled", "features"])
def test_sums_over_points_agree(pair, scale, at_a_time, monkeypatch):
    monkeypatch.setattr(opened_data, "_CLASS_BYTES", 8 * 3 * at_a_time)  # features of the first dataset
    scaler = sotdd.Projections.fit(pair, scale=scale).scaler
    with CpuEngine() as cpu, TorchEngine("cpu") as torch:
        ours, theirs = cpu.point_sums(pair, scaler), torch.point_sums(pair, scaler)
    for data, one, other in zip(pair, ours, theirs, strict=True):
        np.testing.assert_allclose(other.lengths, one.lengths, rtol=1e-6)
        np.testing.assert_allclose(other.total, one.total, rtol=1e-6, atol=1e-4)
        assert other.between == pytest.approx(one.between, rel=1e-6)
        points = data.rows(slice(None)) if scaler is None else (data.rows(slice(None)) - scaler.centre) / scaler.scales
        squares = np.sum(points**2, axis=1)
        np.testing.assert_allclose(one.lengths, [np.sum(squares**k) for k in (1, 2, 3)], rtol=1e-5)
        np.testing.assert_allclose(one.total, points.sum(axis=0), rtol=1e-5, atol=1e-3)
        classes = [points[data.codes == code] for code in range(len(data.classes))]
        expected = sum(len(members) * np.sum(members.mean(axis=0) ** 2) for members in classes)
        assert one.between == pytest.approx(expected, rel=1e-5)


@pytest.mark.slow
def test_many_classes_of_many_features_take_little_memory():
    """One class to a point: sums of each class over all features would be as large as the data in float64."""
    run = """
import resource
import numpy as np, sotdd
rng = np.random.default_rng(0)
x = rng.standard_normal((30_000, 1500), np.float32)  # at once, so that the peak is not there
sotdd.distance((x[:64], np.arange(64)), (x[64:128], np.arange(64)), n_projections=64)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
result = sotdd.distance((x, np.arange(30_000)), (x[:100], np.arange(100)), n_projections=64, device="cpu")
assert "controlled" in result.estimator
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) >> 10)
"""
    grown = subprocess.run([sys.executable, "-c", run], capture_output=True, text=True, check=True).stdout
    assert int(grown) < 250, "MB; the sums of all classes would take 343"


@pytest.mark.parametrize("label_law", ["moments", "quantiles"])
@pytest.mark.parametrize("shared", [True, False])
def test_rows_by_class_agree(pair, label_law, shared):
    settings = {"n_projections": 200, "label_law": label_law, "shared_directions": shared}
    projections = sotdd.Projections.fit(pair, **settings)
    by_engine = {}
    for engine in (CpuEngine(chunk=64), TorchEngine("cpu", chunk=64)):
        with engine as active:
            views = [
                [np.asarray(rows).copy() for rows in view.rows]
                for view in active.views(pair, projections, by_class=True)
            ]
        by_engine[type(engine)] = [np.concatenate(parts) for parts in zip(*views, strict=True)]
    for data, ours, theirs in zip(pair, by_engine[CpuEngine], by_engine[TorchEngine], strict=True):
        assert ours.shape == theirs.shape == (200, data.n_points)
        np.testing.assert_allclose(theirs, ours, rtol=1e-4, atol=1e-4)
        edges, _ = data.grouping()
        for first, last in pairwise(edges):
            assert (np.diff(ours[:, first:last], axis=1) >= 0).all(), "each class is sorted on its own"


def test_rows_by_class_hold_what_whole_rows_hold(pair):
    projections = sotdd.Projections.fit(pair, n_projections=128)
    with CpuEngine() as cpu:
        [by_class] = [[rows.copy() for rows in view.rows] for view in cpu.views(pair, projections, by_class=True)]
        [whole] = [[rows.copy() for rows in view.rows] for view in cpu.views(pair, projections)]
    for one, other in zip(by_class, whole, strict=True):
        np.testing.assert_array_equal(np.sort(one, axis=1), other)
