"""The laws of `examples/`: a label law and a law of directions in a file each, which work wherever laws do."""

import importlib
import sys
from pathlib import Path

import numpy as np
import pytest

import reference
import sotdd
from sotdd.compute.comparison import compare
from sotdd.compute.cpu_engine import CpuEngine
from sotdd.compute.numpy_engine import NumpyEngine
from sotdd.compute.resampling import Plan, Resampling
from sotdd.compute.slices import slice_datasets
from sotdd.inputs import open_pair
from sotdd.projections import LabelTerms, Summaries

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture(scope="module")
def laws():
    """The settings of calls with each law, and with both."""
    sys.path.insert(0, str(EXAMPLES))
    try:
        cosine, circles = (importlib.import_module(name) for name in ("cosine_law", "great_circles"))
    finally:
        sys.path.remove(str(EXAMPLES))
    label, directions = {"label_law": cosine.Cosines()}, {"directions": circles.GreatCircles(), "scale": None}
    return {"label": label, "directions": directions, "both": {**label, **directions}}


@pytest.fixture
def pair(rng):
    """Unit vectors with labels."""
    sides = []
    for n, shift in ((60, 0.0), (45, 0.4)):
        x = rng.normal(size=(n, 4)) + shift
        sides.append((x / np.linalg.norm(x, axis=1, keepdims=True), rng.integers(3, size=n)))
    return sides


WHICH = pytest.mark.parametrize("which", ["label", "directions", "both"])


def project(block, x, y):
    """Data point projections (B, n) of one side by plain NumPy, class terms by their definition."""
    terms = block.terms
    t = block.features(x.astype(np.float32)).astype(np.float64)
    values = terms.evaluate(t)
    means = np.stack([values[:, y == label].mean(axis=1) for label in y], axis=1)
    return terms.weights[:, None] * t + means


@WHICH
def test_distances_are_those_of_the_definition(laws, pair, which):
    settings = {"n_projections": 100, "tilt": False, **laws[which]}
    projections = sotdd.Projections.fit([x for x, _ in pair], **{**settings, "scale": None})
    block = projections.draw(0, 100)
    a, b = (project(block, x, y) for x, y in pair)
    expected = [reference.wasserstein(a[line], b[line], 2) for line in range(100)]
    found = sotdd.distance(*pair, projections=projections, estimator="plain")
    np.testing.assert_allclose(found.per_projection, expected, rtol=1e-4)


@WHICH
def test_sketches_and_streams(laws, pair, which):
    projections = sotdd.Projections.fit([x for x, _ in pair], n_projections=128, **laws[which])
    plain = sotdd.distance(*pair, projections=projections, estimator="plain").value
    a, b = (sotdd.sketch(side, projections, n_quantiles=None) for side in pair)
    assert a.distance(b, estimator="plain").value == pytest.approx(plain, rel=1e-5)
    builder, (x, y) = sotdd.SketchBuilder(projections), pair[0]
    for part in (slice(25), slice(25, None)):
        builder.add(x[part], y[part])
    assert builder.finish().distance(b, estimator="plain").value == pytest.approx(plain, rel=0.02)


def test_private_sketches(laws, rng):
    pytest.importorskip("opendp")
    x, y = rng.normal(size=(4000, 3)), rng.integers(2, size=4000)
    projections = sotdd.Projections.fit([x[:500] + 0.1], n_projections=32, **laws["label"])
    released = sotdd.PrivateBuilder(projections, classes=[0, 1]).add(x, y).release(epsilon=4, delta=1e-6)
    assert released.distance(sotdd.sketch((x, y), projections)).value < 0.3


@WHICH
def test_the_loss_is_the_distance_and_has_a_gradient(laws, pair, which):
    torch = pytest.importorskip("torch")
    from sotdd.gradients import sotdd_loss

    projections = sotdd.Projections.fit([x for x, _ in pair], n_projections=64, **laws[which])
    (x, y), (x2, y2) = pair
    points, others = (torch.tensor(part, dtype=torch.float64) for part in (x, x2))
    points.requires_grad_()
    loss = sotdd_loss(points, y, others, y2, projections)
    assert loss.item() ** 0.5 == pytest.approx(
        sotdd.distance(*pair, projections=projections, estimator="plain").value, rel=1e-4
    )
    (slope,) = torch.autograd.grad(loss, points)
    step = 1e-6 * torch.randn(points.shape, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        further = sotdd_loss(points + step, y, others, y2, projections)
    assert float(further - loss.detach()) == pytest.approx(float((slope * step).sum()), rel=1e-3)


@WHICH
@pytest.mark.parametrize("device", ["numpy", "torch"])
def test_engines_agree(laws, pair, which, device):
    if device == "torch":
        pytest.importorskip("torch")
    from sotdd.compute.torch.engine import TorchEngine

    data = open_pair(*pair)
    projections = sotdd.Projections.fit(data, n_projections=70, **laws[which])
    engine = NumpyEngine() if device == "numpy" else TorchEngine("cpu")
    found = compare(data, [(0, 1)], projections, 2, engine=engine)[0, 1]
    expected = compare(data, [(0, 1)], projections, 2, engine=CpuEngine())[0, 1]
    np.testing.assert_allclose(found.per_projection, expected.per_projection, rtol=1e-4)


@WHICH
def test_permutations_go_by_class_terms_of_each_side(laws, pair, which):
    """Sides of splits, point by point, against the definition; the test itself finds what differs."""
    data = open_pair(*pair)
    projections = sotdd.Projections.fit(data, n_projections=20, tilt=False, **{**laws[which], "scale": None})
    plan = Plan.of_pair(data, (0, 1), 5, 0, (2.0,))
    resampling = Resampling([plan])
    with CpuEngine() as engine:
        for slices in slice_datasets(data, projections, engine, unsorted=20):
            resampling.add(slices)
    x, y = (np.concatenate(parts) for parts in zip(*pair, strict=True))
    for number in range(5):
        left, right = (project(projections.draw(0, 20), x[side.index], y[side.index]) for side in plan.draw(number))
        expected = [reference.wasserstein(left[line], right[line], 2) for line in range(20)]
        np.testing.assert_allclose(resampling.result()[0][:, number, 0], expected, rtol=1e-4)
    assert sotdd.test(*pair, n_permutations=99, **laws[which]).p_value < 0.05


def lose(values, coefficients):
    """A summary that is no number."""
    return np.full(len(values), np.nan)


class Broken(LabelTerms):
    """Terms that are no numbers."""

    additive = True

    def evaluate(self, values):
        return np.full(values.shape, np.nan)


def make_label_law(terms):
    return type("Lost", (), {"describe": lambda self: {}, "draw": lambda self, rng, n: terms(n)})()


@pytest.mark.parametrize(
    "settings",
    [
        {"label_law": make_label_law(lambda n: Broken(np.ones(n), np.ones((n, 1))))},
        {"label_law": make_label_law(lambda n: Summaries(np.ones(n), np.ones((n, 1)), lose))},
        {
            "directions": type(
                "Lost",
                (),
                {
                    "describe": lambda self: {},
                    "draw": lambda self, rng, n, d: lambda points: np.full((n, len(points)), np.nan),
                },
            )()
        },
    ],
)
def test_a_law_that_returns_nan_is_named(settings, pair):
    for call in (sotdd.distance, sotdd.test):
        with pytest.raises(sotdd.SotddError, match="Lost"):
            call(*pair, **settings)


def test_a_subclass_without_a_method_says_which_to_write(pair):
    with pytest.raises(NotImplementedError, match="evaluate nor class_terms"):
        sotdd.distance(*pair, label_law=make_label_law(lambda n: LabelTerms(np.ones(n), np.ones((n, 1)))))
