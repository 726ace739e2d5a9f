"""Sketches: against slow code, by both engines, with data, and as vectors."""

from dataclasses import replace
from math import factorial

import numpy as np
import pytest

import reference
import sotdd
from sketches.cases import assert_same_controls, labelled
from sotdd.sketches.quantiles import QUANTILES


def test_class_terms_are_means_of_the_polynomial_over_each_class(rng):
    x, y = labelled(rng, 60, d=3, classes=3)
    given = reference.draw(rng, 40, 3)
    made = sotdd.sketch((x, y), sotdd.Projections.from_arrays(**given))
    for line in range(40):
        t = x @ given["theta"][line]
        for place, label in enumerate(made.classes):
            total = sum(
                weight * np.sum(t[y == label] ** order) / factorial(order)
                for weight, order in zip(given["psi"][line][1:], given["orders"][line], strict=True)
            )
            found = made.class_terms[line, place] * made.counts[place]
            assert found == pytest.approx(total, rel=1e-4, abs=1e-4)


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


def test_what_does_not_go_with_a_sketch_is_refused(pair, projections):
    a, b = pair
    even = projections.evenly()
    one = sotdd.sketch(a, even, n_quantiles=512)

    def compare_with(**change):
        other = sotdd.Projections.fit(list(pair), **{"n_projections": 200, "seed": 3, "tilt": False, **change})
        return lambda: one.distance(sotdd.sketch(b, other))

    for call, named in [
        (compare_with(seed=4), "seed is 3 and 4"),
        (compare_with(n_projections=100), "n_projections is 200 and 100"),
        (compare_with(n_moments=2), "n_moments is 5 and 2"),
        (compare_with(directions=sotdd.projections.Orthogonal()), "'sphere' and 'orthogonal'"),
        (compare_with(scale=None), "scaler is .* and None"),
        (lambda: one.distance(sotdd.sketch(b, even, n_quantiles=256)), "the same number"),
        (lambda: one.distance(b), "Sketch"),
        (lambda: sotdd.distance(one, b, seed=3), "seed"),
        (lambda: sotdd.pairwise([one, b], projections=projections), "projections"),
        (lambda: sotdd.sketch(a, None), "projections is None"),
        (lambda: one.vector(n_quantiles=0), "n_quantiles is 0"),
        (lambda: one.vector(10**6), "dim is 1,000,000"),
    ]:
        with pytest.raises(sotdd.SotddError, match=named):
            call()


@pytest.mark.parametrize("kept", [48, None])
def test_both_engines_make_the_same_sketch(pair, projections, kept, monkeypatch):
    pytest.importorskip("torch")
    from sotdd.compute.torch.engine import TorchEngine

    usual = sotdd.sketch(pair[1], projections, n_quantiles=kept)
    monkeypatch.setattr("sotdd.sketches.sketching.choose_engine", lambda *_, **__: TorchEngine("cpu"))
    by_torch = sotdd.sketch(pair[1], projections, n_quantiles=kept)
    for name in ("quantiles", "class_terms", "lost", "halves"):
        np.testing.assert_allclose(getattr(by_torch, name), getattr(usual, name), rtol=1e-4, atol=1e-4, err_msg=name)
    assert_same_controls(by_torch.controls, usual.controls)


@pytest.mark.parametrize("kept", [(None, None), (512, None), (100, 1000)])
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
    found = [np.sum((a.vector(256, seed=s) - b.vector(256, seed=s)) ** 2, dtype=np.float64) for s in range(100)]
    ratios = np.array(found) / true
    assert abs(ratios.mean() - 1) < 4 * ratios.std() / np.sqrt(100)
    assert 0.5 * np.sqrt(2 / 256) < ratios.std() < 1.5 * np.sqrt(2 / 256)
    assert np.array_equal(a.vector(16), a.vector(16))


@pytest.mark.parametrize("p", [1, 2])
def test_sketches_know_what_their_sizes_give_as_data_do(rng, p, tmp_path):
    bare = [sotdd.open_dataset(rng.normal(size=(n, 3)), label=None) for n in (60, 9)]  # one class each
    data = {"few": bare[0], "many": (rng.normal(size=(700, 3)), rng.integers(3, size=700))}
    projections = sotdd.Projections.fit(data, n_projections=100)
    expected = sotdd.pairwise({**data, "third": bare[1]}, projections=projections, p=p)["few", "many"]
    few, many = (sotdd.sketch(part, projections, n_quantiles=None) for part in data.values())
    found = few.distance(many, p)
    halves = found.sampling.distances.reshape(2, -1)  # halved more often, first in the same ways
    ratios = halves[:, :4] / expected.sampling.distances.reshape(2, -1)
    np.testing.assert_allclose(ratios, np.broadcast_to(ratios[:, :1], ratios.shape), rtol=1e-6)
    assert (np.abs(ratios - 1) < 0.2).all()  # one factor each: how distances of this dataset fall with its size
    assert found.excess == pytest.approx(found.value**p - np.mean(halves**p), rel=1e-9)
    assert found.within_noise is bool(found.value <= found.noise.limit())
    few.save(tmp_path / "few.sotdd")
    again = sotdd.Sketch.load(tmp_path / "few.sotdd")
    np.testing.assert_array_equal(again.halves, few.halves)
    assert sotdd.pairwise([again, many], p=p).distances[0, 1].excess == pytest.approx(found.excess, rel=1e-3)


def test_sketches_of_many_small_classes_know_what_chance_gives(rng):
    shares = 1 / np.arange(1, 101)
    centres, ratios = rng.normal(size=(100, 8)), []
    for seed in range(25):
        sides = rng.choice(100, size=(2, 600), p=shares / shares.sum())
        one_law = [(centres[of] + rng.normal(size=(600, 8)), of) for of in sides]
        projections = sotdd.Projections.fit(one_law, n_projections=128, seed=seed)
        found = sotdd.sketch(one_law[0], projections).distance(sotdd.sketch(one_law[1], projections))
        ratios.append(found.value**2 / found.sampling.power)
    assert 0.85 < np.mean(ratios) < 1.05  # by the root law 1.12


def test_one_sketch_that_knows_its_halves_is_enough(rng):
    a, b = rng.normal(size=(100, 3)), rng.normal(size=(50, 3))
    projections = sotdd.Projections.fit([a, b], n_projections=64)
    streamed = replace(sotdd.sketch(a, projections), halves=None)  # as with more classes than fit
    assert streamed.distance(streamed).excess is None
    assert sotdd.sketch(b, projections).distance(streamed).excess is not None
    assert sotdd.sketch(b, projections).distance(streamed, p=1.5).excess is None
    assert sotdd.sketch(b[:1], projections).halves is None
