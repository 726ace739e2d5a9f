"""Sketches: against the exact distance and against slow code, with data, and as vectors."""

import numpy as np
import pytest

import reference
import sotdd
from sketches.cases import labelled
from sotdd.sketches.levels import QUANTILES, Levels


def slow_bin_means(row, parts):
    """Repeat every value so that parts hold whole copies."""
    return np.repeat(np.asarray(row, np.float64), parts).reshape(parts, -1).mean(axis=1)


@pytest.mark.parametrize(("n", "parts"), [(10, 10), (10, 5), (10, 3), (7, 16), (1, 4), (513, 512), (1000, 64)])
def test_means_over_equal_parts_are_those_of_repeated_values(rng, n, parts):
    rows = np.sort(rng.normal(size=(5, n)), axis=1).astype(np.float32)
    expected = np.stack([slow_bin_means(row, parts) for row in rows])
    even = Levels(parts, "even")
    np.testing.assert_allclose(even.means(rows), expected, rtol=1e-6, atol=1e-7)
    torch = pytest.importorskip("torch")
    from sotdd.engines.torch import verbs as torch_verbs

    for levels in (even, Levels(parts)):
        found = torch_verbs.part_means(torch.from_numpy(rows), levels.edges)
        np.testing.assert_allclose(found, levels.means(rows), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("p", [1, 1.5, 2, 3])
def test_exact_sketches_give_the_exact_distance(pair, projections, p):
    a, b = (sotdd.sketch(data, projections, n_quantiles=None) for data in pair)
    direct = sotdd.distance(*pair, projections=projections, p=p)
    found = a.distance(b, p)
    np.testing.assert_allclose(found.per_projection, direct.per_projection, rtol=1e-5, atol=1e-9)
    assert found.classes == direct.classes
    assert found.n_points == direct.n_points
    assert found.fingerprint == direct.fingerprint


def test_class_terms_are_means_of_the_polynomial_over_each_class(rng):
    x, y = labelled(rng, 60, d=3, classes=3)
    given = reference.draw(rng, 40, 3)
    made = sotdd.sketch((x, y), sotdd.Projections.from_arrays(**given))
    from math import factorial

    for line in range(40):
        t = x @ given["theta"][line]
        for place, label in enumerate(made.classes):
            total = sum(
                weight * np.sum(t[y == label] ** order) / factorial(order)
                for weight, order in zip(given["psi"][line][1:], given["orders"][line], strict=True)
            )
            found = made.class_terms[line, place] * made.counts[place]
            assert found == pytest.approx(total, rel=1e-4, abs=1e-4)


def test_the_torch_engine_makes_the_same_sketch(pair, projections):
    pytest.importorskip("torch")
    from sotdd.engines.torch.engine import TorchEngine

    here = sotdd.sketch(pair[0], projections)
    known = sotdd.LabelledData.of(pair[0])
    with TorchEngine("cpu") as engine:
        for view in engine.views([known], projections):
            made = engine.quantiles(view.rows[0], here.levels.edges)
            np.testing.assert_allclose(made, here.quantiles[view.part], rtol=1e-4, atol=1e-4)
            np.testing.assert_allclose(engine.collect(view.terms), here.class_terms[view.part], rtol=1e-4, atol=1e-5)


def test_sketches_and_data_are_compared_together(pair, projections):
    a, b = pair
    sketch = sotdd.sketch(a, projections, name="stored")
    mixed = sotdd.distance(sketch, b)
    assert mixed.value == sketch.distance(sotdd.sketch(b, projections)).value
    assert sotdd.distance(b, sketch).value == mixed.value
    matrix = sotdd.pairwise({"first": sketch, "second": b, "third": sotdd.sketch(b, projections)})
    assert matrix["first", "second"].value == mixed.value
    assert matrix["second", "third"].value == 0
    assert sotdd.pairwise([sketch, b, sketch]).names == ("stored", "1", "stored (2)")


def test_sketches_bring_their_settings(pair, projections):
    sketch = sotdd.sketch(pair[0], projections)
    with pytest.raises(sotdd.SotddError, match="seed cannot be chosen for a sketch"):
        sotdd.distance(sketch, pair[1], seed=3)
    with pytest.raises(sotdd.SotddError, match="projections cannot be chosen for a sketch"):
        sotdd.pairwise([sketch, pair[1]], projections=projections)
    with pytest.raises(sotdd.SotddError, match="expected a Sketch"):
        sketch.distance(pair[1])
    with pytest.raises(sotdd.SotddError, match="projections is None"):
        sotdd.sketch(pair[0], None)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"seed": 4}, "seed is 3 and 4"),
        ({"n_projections": 100}, "n_projections is 200 and 100"),
        ({"n_moments": 2}, "label n_moments is 5 and 2"),
        ({"directions": sotdd.projections.Orthogonal()}, "directions law is 'sphere' and 'orthogonal'"),
        ({"scale": None}, "scaler is .* and None"),
    ],
)
def test_other_projections_are_refused_by_what_differs(pair, projections, change, said):
    a = sotdd.sketch(pair[0], projections.evenly())
    other = sotdd.Projections.fit(list(pair), **{"n_projections": 200, "seed": 3, **change}, tilt=False)
    with pytest.raises(sotdd.SotddError, match=said):
        a.distance(sotdd.sketch(pair[1], other))


def test_numbers_of_quantiles_must_go_together(pair, projections):
    a, b = pair
    one = sotdd.sketch(a, projections, n_quantiles=512)
    assert one.distance(sotdd.sketch(b, projections, n_quantiles=128)).value > 0
    with pytest.raises(sotdd.SotddError, match="one that divides the other"):
        one.distance(sotdd.sketch(b, projections, n_quantiles=100))


# ------------------------------------------------------------------ vectors


@pytest.mark.parametrize("kept", [(None, None), (512, None), (128, 512), (None, 64), (100, 1000)])
def test_vectors_compare_whatever_the_sketches_keep(pair, projections, kept):
    """Sketches of 400 and 600 points, of all values or of few: one length, and the distance up to what is averaged."""
    (x, y), (u, v) = pair
    data = (x[:400], y[:400]), (u[:600], v[:600])
    a, b = (sotdd.sketch(part, projections, n_quantiles=count) for part, count in zip(data, kept, strict=True))
    assert a.vector().shape == b.vector().shape == (200 * QUANTILES,)
    exact = sotdd.distance(*data, projections=projections, estimator="plain").value
    whole = float(np.linalg.norm(a.vector() - b.vector()))
    assert whole <= exact * (1 + 1e-5)
    assert whole == pytest.approx(exact, rel=0.02)


def test_short_vectors_keep_the_squared_distance_on_average(pair, projections):
    a, b = (sotdd.sketch(data, projections, n_quantiles=64) for data in pair)
    true = a.distance(b, estimator="plain").value ** 2
    found = [np.sum((a.vector(256, seed=s) - b.vector(256, seed=s)) ** 2, dtype=np.float64) for s in range(200)]
    ratios = np.array(found) / true
    assert abs(ratios.mean() - 1) < 4 * ratios.std() / np.sqrt(200)
    assert 0.5 * np.sqrt(2 / 256) < ratios.std() < 1.5 * np.sqrt(2 / 256)
    assert np.array_equal(a.vector(16), a.vector(16))


# --------------------------------------------------------------------------- what sizes alone give


@pytest.mark.parametrize("p", [1, 2])
def test_sketches_know_what_their_sizes_give_as_data_do(rng, p, tmp_path):
    bare = [sotdd.open_dataset(rng.normal(size=(n, 3)), label=None) for n in (60, 9)]  # one class each
    data = {"few": bare[0], "many": (rng.normal(size=(700, 3)), rng.integers(3, size=700))}
    projections = sotdd.Projections.fit(data, n_projections=100)
    expected = sotdd.pairwise({**data, "third": bare[1]}, projections=projections, p=p)["few", "many"]
    few, many = (sotdd.sketch(part, projections, n_quantiles=None) for part in data.values())
    found = few.distance(many, p)
    halves = found.sampling.distances.reshape(2, -1)  # halved more often, first in the same ways
    np.testing.assert_allclose(halves[:, :4].ravel(), expected.sampling.distances, rtol=1e-6)
    assert found.excess == pytest.approx(found.value**p - np.mean(halves**p), rel=1e-9)
    assert found.within_noise is bool(found.value <= found.noise.limit())
    few.save(tmp_path / "few.sotdd", half=True)
    again = sotdd.Sketch.load(tmp_path / "few.sotdd")
    np.testing.assert_array_equal(again.halves, few.halves)
    assert sotdd.pairwise([again, many], p=p).distances[0, 1].excess == pytest.approx(found.excess, rel=1e-3)


def test_one_sketch_that_knows_its_halves_is_enough(rng):
    a, b = rng.normal(size=(100, 3)), rng.normal(size=(50, 3))
    projections = sotdd.Projections.fit([a, b], n_projections=64)
    statistics = sotdd.ClassStatistics(projections).add(a)
    streamed = sotdd.SketchBuilder(projections, statistics).add(a).finish()  # the second of two passes knows none
    assert streamed.halves is None
    assert streamed.distance(streamed).excess is None
    assert sotdd.sketch(b, projections).distance(streamed).excess is not None
    assert sotdd.sketch(b, projections).distance(streamed, p=1.5).excess is None
    assert sotdd.sketch(b[:1], projections).halves is None
