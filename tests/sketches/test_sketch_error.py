"""How far off distances of sketches may be: the stated bound holds, and is told where it matters."""

import numpy as np
import pytest

import sotdd
from sotdd.demo import digits
from sotdd.sketches.levels import Levels


def normal_halves(rng):
    x = rng.normal(size=(10_000, 6))
    return x[:5000], x[5000:]


def digit_halves(rng):
    images, labels = digits()
    first, second = np.array_split(rng.permutation(len(images)), 2)
    return (images[first], labels[first]), (images[second], labels[second])


def heavy_halves(rng):
    x = rng.standard_t(3, size=(4000, 6))
    return x[:2000], x[2000:]


def outlier(rng):
    x = rng.normal(size=(3000, 6))
    far = x.copy()
    far[0] += 200
    return x, far


def counts(rng):
    x = rng.poisson(0.5, size=(4000, 6)).astype(float)
    return (x[:1500], x[:1500, 0] > 0), (x[1500:], x[1500:, 1] > 0)


def moved(rng):
    x = rng.normal(size=(6000, 6))
    return x[:3000], x[3000:] + 0.6


CASES = [normal_halves, digit_halves, heavy_halves, outlier, counts, moved]


def sketched(data, projections, way, n_quantiles):
    if way == "whole":
        return sotdd.sketch(data, projections, n_quantiles=n_quantiles)
    builder = sotdd.SketchBuilder(projections, n_quantiles=n_quantiles)
    if way == "two passes":
        statistics = sotdd.ClassStatistics(projections)
        statistics.add(*data) if isinstance(data, tuple) else statistics.add(data)
        builder = sotdd.SketchBuilder(projections, statistics, n_quantiles=n_quantiles)
    return (builder.add(*data) if isinstance(data, tuple) else builder.add(data)).finish()


@pytest.mark.first(8)
@pytest.mark.parametrize("label", ["moments", "quantiles"])
@pytest.mark.parametrize(
    "ways", [("whole", "whole"), ("stream", "stream"), ("stream", "whole"), ("two passes", "stream")]
)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_the_bound_holds(rng, case, ways, label):
    a, b = case(rng)
    settings = {"label_law": label} if label == "quantiles" else {"moments": sotdd.projections.UniformOrders(2)}
    projections = sotdd.Projections.fit([a, b], n_projections=128, **settings)
    for p in (1, 1.3, 2):
        true = sotdd.distance(a, b, projections=projections, p=p)
        for kept in (16, 256):
            one, other = (sketched(*what, kept) for what in zip((a, b), [projections] * 2, ways, strict=True))
            found = one.distance(other, p)
            assert abs(found.value - true.value) <= found.sketch_error * (1 + 1e-6)


@pytest.mark.parametrize("case", [normal_halves, heavy_halves], ids=lambda case: case.__name__)
@pytest.mark.parametrize("way", ["whole", "stream"])
def test_nearly_identical_sets_come_with_a_remark(rng, case, way):
    a, b = case(rng)
    projections = sotdd.Projections.fit([a, b], n_projections=128, label_law="quantiles")
    found = sketched(a, projections, way, 24).distance(sketched(b, projections, way, 24))
    assert found.sketch_error > 0.05 * found.value
    said = found.remarks[-1]
    assert f"may be off by up to {found.sketch_error:.2g}" in said
    assert said in repr(found)
    assert found.to_dict()["sketch_error"] == found.sketch_error


@pytest.mark.parametrize("way", ["whole", "stream"])
@pytest.mark.parametrize("p", [1, 2])
def test_sets_that_differ_come_without(rng, way, p):
    a, b = moved(rng)
    projections = sotdd.Projections.fit([a, b], n_projections=128)
    found = sketched(a, projections, way, 512).distance(sketched(b, projections, way, 512), p)
    assert found.remarks == ()
    assert 0 < found.sketch_error < 0.05 * found.value


def test_nothing_is_lost_where_every_value_is_kept(rng):
    a, b = (rng.normal(size=(n, 3)) for n in (400, 600))
    projections = sotdd.Projections.fit([a, b], n_projections=64)
    one, other = (sotdd.sketch(data, projections, n_quantiles=None) for data in (a, b))
    found = one.distance(other)
    assert (found.sketch_error, found.remarks) == (0.0, ())
    assert found.value == pytest.approx(sotdd.distance(a, b, projections=projections).value, rel=1e-7)


@pytest.mark.parametrize("levels", [Levels(48), Levels(256), Levels(48, "even")])
def test_both_engines_find_the_same_loss(rng, levels):
    pytest.importorskip("torch")
    from sotdd.engines.cpu.engine import CpuEngine
    from sotdd.engines.torch.engine import TorchEngine

    data = sotdd.LabelledData.of(rng.normal(size=(700, 4)))
    projections = sotdd.Projections.fit([data], n_projections=64)
    found = []
    for engine in (CpuEngine(), TorchEngine("cpu")):
        with engine as active:
            (view,) = active.views([data], projections)
            means = active.quantiles(view.rows[0], levels.edges)
            found.append((means, active.losses(view.rows[0], means, levels.edges, levels.smooth)))
    for ours, theirs in zip(*found, strict=True):
        np.testing.assert_allclose(theirs, ours, rtol=1e-4, atol=1e-5)


def test_powers_above_two_have_no_bound(rng):
    a, b = normal_halves(rng)
    projections = sotdd.Projections.fit([a, b], n_projections=64)
    found = sotdd.sketch(a, projections).distance(sotdd.sketch(b, projections), 3)
    assert found.sketch_error is None
    assert "sketch_error" not in found.to_dict()


# --------------------------------------------------------------------------- files


def test_a_file_keeps_what_was_lost(rng, tmp_path):
    a, b = normal_halves(rng)
    projections = sotdd.Projections.fit([a, b], n_projections=64)
    one, other = (sotdd.sketch(data, projections) for data in (a, b))
    one.save(tmp_path / "whole")
    one.save(tmp_path / "half", half=True)
    whole, half = (sotdd.Sketch.load(tmp_path / name) for name in ("whole", "half"))
    assert whole.distance(other).sketch_error == one.distance(other).sketch_error
    rounded = half.distance(other)
    assert rounded.sketch_error > one.distance(other).sketch_error
    assert abs(rounded.value - sotdd.distance(a, b, projections=projections).value) <= rounded.sketch_error
