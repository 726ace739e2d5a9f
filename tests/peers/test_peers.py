"""The peers against the authors' outputs, known answers and each other."""

import math
import sys
from importlib import import_module

import numpy as np
import ot
import pytest
from scipy import optimize
from scipy.linalg import sqrtm
from scipy.spatial.distance import cdist, pdist, squareform

import sotdd
from sotdd import peers
from sotdd.kernels.rows import Overlaps, transport_rows
from sotdd.peers import points as points_module
from sotdd.peers.gaussians import Gaussian
from sotdd.peers.hyperbolic import _stress, busemann, lorentz_scaling, project
from sotdd.peers.label_distances import label_coordinates, label_distances
from sotdd.peers.methods import METHODS
from sotdd.peers.task_embedding import embed

PEERS = ["otdd", "otdd-gaussian", "wte", "chsw", "frechet", "sw", "mmd"]


@pytest.fixture
def pair(rng):
    a = rng.normal(size=(60, 4)) + 2 * (np.arange(60) % 3)[:, None], np.arange(60) % 3
    b = rng.normal(0.5, 1.5, size=(45, 4)), rng.choice(["cat", "dog"], size=45)
    return a, b


# ------------------------------------------------------------------ the authors' outputs


@pytest.mark.parametrize("other", [1, 2])
def test_otdd_exact(authors, other):
    data, known = authors("sotdd_linear"), authors("otdd")
    result = peers.otdd((data["X0"], data["y0"]), (data[f"X{other}"], data[f"y{other}"]))
    assert result.value**2 == pytest.approx(known[f"pot_otdd_0{other}"], rel=1e-6)
    order = np.argsort(result.classes[0])[:, None], np.argsort(result.classes[1])[None, :]
    np.testing.assert_allclose(result.label_distances[order], known[f"pot_labeldist_0{other}"], rtol=1e-6)


def test_wte_embeddings(authors):
    known = authors("wte")
    vectors = [embed(known[f"Z{i}"].astype(float), known["reference"].astype(float)) for i in range(3)]
    found = squareform(pdist([vector.ravel() for vector in vectors]))
    np.testing.assert_allclose(found, known["distances"], rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("which", ["01", "02", "12"])
def test_chsw_projections(authors, which):
    data, known = authors("sotdd_linear"), authors("chsw")
    heights = busemann(known["label_points"], known["horosphere_directions"])
    rows = [
        np.sort(project(data[f"X{i}"], data[f"y{i}"], known["theta"], heights, tuple(known["weights"]))).astype(
            np.float32
        )
        for i in which
    ]
    n, m = (part.shape[1] for part in rows)
    found = transport_rows(*rows, 2.0, None if n == m else Overlaps.of(n, m))
    np.testing.assert_allclose(found, known[f"w2sq_{which}"], rtol=1e-4)


# ------------------------------------------------------------------ OTDD


def test_otdd_against_an_assignment_solver(rng):
    """For equal sizes transport is an assignment, which SciPy solves by another algorithm."""
    a, b = rng.normal(size=(2, 40, 3))
    labels = np.arange(40) % 2, np.arange(40) // 20
    groups = [[x[y == c] for c in (0, 1)] for x, y in zip((a, b), labels, strict=True)]
    between = np.zeros((2, 2))
    for i in range(2):
        for j in range(2):
            cost = cdist(groups[0][i], groups[1][j], "sqeuclidean")
            between[i, j] = cost[optimize.linear_sum_assignment(cost)].mean()
    cost = cdist(a, b, "sqeuclidean") + between[labels[0]][:, labels[1]]
    expected = cost[optimize.linear_sum_assignment(cost)].mean()
    result = peers.otdd((a, labels[0]), (b, labels[1]))
    np.testing.assert_allclose(result.label_distances, between)
    assert result.value == pytest.approx(math.sqrt(expected))


@pytest.mark.parametrize("p", [1, 2, 3])
def test_otdd_of_two_points(p):
    """One point each at distance 5: feature cost 5^p, and label cost the same."""
    result = peers.otdd(([[0.0, 0.0]], ["a"]), ([[3.0, 4.0]], ["b"]), p=p)
    assert result.value == pytest.approx((2 * 5**p) ** (1 / p))


@pytest.mark.parametrize("settings", [{}, {"inner": "gaussian"}, {"outer": "sinkhorn"}, {"max_points": 30}])
def test_otdd_of_a_dataset_with_itself(pair, settings):
    assert peers.otdd(pair[0], pair[0], **settings).value == pytest.approx(0, abs=1e-5)


def test_otdd_sees_permuted_labels(pair, rng):
    (x, y), _ = pair
    assert peers.otdd((x, y), (x, rng.permutation(y))).value > 0.5
    assert peers.otdd((x, y), (x, np.array(["u", "v", "w"])[y])).value == pytest.approx(0, abs=1e-5)


def test_sinkhorn_approaches_exact_transport(pair):
    exact = peers.otdd(*pair).value
    near = [peers.otdd(*pair, outer="sinkhorn", regularisation=strength).value for strength in (10.0, 1.0, 0.1)]
    errors = [abs(value - exact) for value in near]
    assert errors[2] < errors[1] < errors[0]
    assert near[2] == pytest.approx(exact, rel=0.01)
    assert peers.otdd(*pair, outer="sinkhorn", regularisation=0.1).remarks == ()


def test_the_two_ways_of_sinkhorn_agree(pair, monkeypatch):
    module = import_module("sotdd.peers.optimal_transport")
    plain = peers.otdd(*pair, outer="sinkhorn", regularisation=2.0).value
    monkeypatch.setattr(module, "_DEEPEST", 0.0)
    assert peers.otdd(*pair, outer="sinkhorn", regularisation=2.0).value == pytest.approx(plain, rel=1e-4)


def test_sinkhorn_says_when_it_did_not_converge(pair, monkeypatch):
    module = import_module("sotdd.peers.optimal_transport")
    monkeypatch.setattr(module, "_MOST_ITERATIONS", 3)
    result = peers.otdd(*pair, outer="sinkhorn", regularisation=0.05)
    assert "did not converge" in result.remarks[0]
    assert "did not converge" in repr(result)


# ------------------------------------------------------------------ Gaussians


def test_bures_distance_of_known_gaussians():
    """Commuting covariances: the distance of their standard deviations."""
    a = Gaussian(np.array([0.0, 0.0]), np.diag([1.0, 2.0]))
    b = Gaussian(np.array([3.0, 4.0]), np.diag([4.0, 6.0]))
    assert a.squared_distance(b) == pytest.approx(25 + 9 + 16)


@pytest.mark.parametrize(("n", "m", "d"), [(50, 60, 4), (3, 5, 20), (1, 30, 6), (1, 1, 3)])
def test_bures_distance_against_matrix_roots(rng, n, m, d):
    """More features than points, where covariances are singular, is the normal case."""
    x, y = rng.normal(size=(n, d)), rng.normal(1, 2, size=(m, d)) @ rng.normal(size=(d, d))
    first, second = (np.atleast_2d(np.cov(z.T, bias=True)) if len(z) > 1 else np.zeros((d, d)) for z in (x, y))
    root = np.real(sqrtm(first + 1e-13 * np.eye(d)))
    cross = np.linalg.eigvalsh(root @ second @ root)
    expected = (
        np.sum((x.mean(0) - y.mean(0)) ** 2)
        + np.trace(first)
        + np.trace(second)
        - 2 * np.sum(np.sqrt(np.maximum(cross, 0)))
    )
    assert Gaussian.fit(x).squared_distance(Gaussian.fit(y)) == pytest.approx(expected, rel=1e-4)


def test_gaussian_and_exact_labels_agree_on_gaussians(rng):
    """W₂ between large Gaussian samples is near the closed form."""
    groups = [rng.normal(0, 1, size=(1500, 2)), rng.normal(3, 2, size=(1500, 2))]
    exact, gaussian = (label_distances(groups, groups, inner)[0, 1] for inner in ("exact", "gaussian"))
    assert exact == pytest.approx(18 + 2, rel=0.1)
    assert gaussian == pytest.approx(exact, rel=0.05)


def test_frechet_of_point_masses_and_copies(rng):
    assert peers.frechet([[0.0, 0.0]], [[3.0, 4.0]]).value == pytest.approx(5)
    x = rng.normal(size=(100, 5))
    assert peers.frechet(x, x).value == pytest.approx(0, abs=1e-6)
    assert peers.frechet(x, x * 2 - x.mean(0)).value == pytest.approx(np.sqrt(np.trace(np.cov(x.T, bias=True))))


# ------------------------------------------------------------------ label placements


def test_labels_are_placed_where_their_distances_say(rng):
    places = rng.normal(size=(8, 3))
    distances = squareform(pdist(places))
    np.testing.assert_allclose(squareform(pdist(label_coordinates(distances, 3))), distances, atol=1e-4)
    assert label_coordinates(distances, 10).shape == (8, 10)


def test_the_stress_has_the_gradient_it_says(rng):
    distances = squareform(pdist(rng.normal(size=(6, 3))))
    error = optimize.check_grad(
        lambda z: _stress(z, distances, 4)[0], lambda z: _stress(z, distances, 4)[1], rng.normal(size=24)
    )
    assert error < 1e-4


def test_hyperbolic_placement_recovers_hyperbolic_distances(rng):
    z = rng.normal(size=(7, 2))
    time = np.sqrt(1 + np.sum(z**2, axis=1))
    distances = np.arccosh(np.maximum(np.outer(time, time) - z @ z.T, 1))
    placed = lorentz_scaling(distances, 2)
    np.testing.assert_allclose(-(placed[:, 0] ** 2) + np.sum(placed[:, 1:] ** 2, axis=1), -1)
    product = np.outer(placed[:, 0], placed[:, 0]) - placed[:, 1:] @ placed[:, 1:].T
    np.testing.assert_allclose(np.arccosh(np.maximum(product, 1)), distances, atol=1e-3)


def test_horospherical_coordinates_measure_along_geodesics():
    """On the geodesic in the direction v, the coordinate is minus the distance from the origin."""
    t = np.array([-1.0, 0.0, 0.5, 2.0])
    line = np.stack([np.cosh(t), np.sinh(t), np.zeros(4)], axis=1)
    np.testing.assert_allclose(busemann(line, np.array([[0.0, 1.0, 0.0]]))[0], -t, atol=1e-12)


# ------------------------------------------------------------------ WTE, CHSW, SW, MMD


def test_wte_is_near_the_transport_that_it_stands_for(rng):
    """A shift moves every barycentre by the same vector: the distance is its length, labels apart."""
    x = rng.normal(size=(80, 3))
    embedded = peers.wte([x, x + np.array([3.0, 0.0, 4.0])], n_reference=80)
    labels_apart = 5.0  # one class each, as far apart as the features, on the label axis
    assert embedded.matrix.values[0, 1] == pytest.approx(math.hypot(5, labels_apart), rel=1e-3)
    gap = np.linalg.norm(embedded.vectors[0] - embedded.vectors[1])
    assert gap == pytest.approx(embedded.matrix.values[0, 1])


def test_wte_takes_a_reference(pair, rng):
    reference = rng.normal(size=(30, 4 + 10))
    embedded = peers.wte(list(pair), reference=reference)
    np.testing.assert_array_equal(embedded.reference, reference)
    with pytest.raises(sotdd.SotddError, match=r"reference has shape \(30, 4\)"):
        peers.wte(list(pair), reference=reference[:, :4])


def test_sliced_wasserstein_against_pot(rng):
    a, b = rng.normal(size=(70, 3)), rng.normal(1, 2, size=(50, 3))
    result = peers.sliced_wasserstein(a, b, n_projections=5000)
    low, high = result.interval(0.999)
    assert low < ot.sliced_wasserstein_distance(a, b, n_projections=20_000, seed=1) < high


def test_labels_are_ignored_where_that_is_said(pair):
    (a, _), (b, _) = pair
    for method in ("frechet", "sw", "mmd"):
        with_labels = sotdd.pairwise(list(pair), method=method).values[0, 1]
        assert sotdd.pairwise([a, b], method=method).values[0, 1] == pytest.approx(with_labels)


def test_mmd_by_hand(rng):
    a, b = rng.normal(size=(700, 3)), rng.normal(1, 1, size=(60, 3))
    kernel = [np.exp(-cdist(x, y, "sqeuclidean") / (2 * 1.5**2)).mean() for x, y in ((a, a), (b, b), (a, b))]
    expected = math.sqrt(kernel[0] + kernel[1] - 2 * kernel[2])
    assert peers.mmd(a, b, bandwidth=1.5).value == pytest.approx(expected)
    assert peers.mmd(a, a).value == pytest.approx(0, abs=1e-7)


def test_chsw_sees_features_and_labels(pair, rng):
    (x, y), _ = pair
    assert peers.chsw((x, y), (x, y)).value == 0
    assert peers.chsw((x, y), (x + 1, y)).value > 0.1
    assert peers.chsw((x, y), (x, rng.permutation(y))).value > 0.1


# ------------------------------------------------------------------ one call shape


@pytest.mark.parametrize("method", PEERS)
def test_every_method_through_pairwise(pair, rng, method):
    third = rng.normal(size=(30, 4)), [0] * 30
    calls = []
    matrix = sotdd.pairwise(
        {"a": pair[0], "b": pair[1], "again": pair[0], "c": third},
        method=method,
        progress=lambda done, total: calls.append((done, total)),
    )
    assert isinstance(matrix, sotdd.DistanceMatrix)
    assert matrix["a", "b"].n_points == (60, 45)
    assert matrix["a", "again"].value == pytest.approx(0, abs=1e-5)
    assert matrix["a", "b"].value == pytest.approx(matrix["again", "b"].value, rel=1e-5)
    assert matrix["a", "b"].value > 0.05
    assert calls
    assert calls[-1][0] == calls[-1][1]
    assert set(METHODS) == set(PEERS)


@pytest.mark.parametrize("method", PEERS)
def test_every_method_follows_the_unit_of_the_features(pair, method):
    """Ten times the features: ten times the distance, or the same where the method has no unit."""
    small = sotdd.pairwise(list(pair), method=method).values[0, 1]
    large = sotdd.pairwise([(10 * x, y) for x, y in pair], method=method).values[0, 1]
    assert large / small == pytest.approx(1 if method == "mmd" else 10, rel=0.02)
    scaled = sotdd.pairwise([(10 * x, y) for x, y in pair], method=method, scale="pooled").values[0, 1]
    assert scaled == pytest.approx(sotdd.pairwise(list(pair), method=method, scale="pooled").values[0, 1], rel=0.02)


def test_samples_are_taken_and_told(pair):
    result = sotdd.pairwise(list(pair), method="otdd", max_points=20)[("0", "1")]
    assert result.n_points == (20, 20)
    assert result.remarks == ("20 of the 60 points of '0' were sampled", "20 of the 45 points of '1' were sampled")
    assert result.to_dict()["remarks"] == list(result.remarks)
    again = sotdd.pairwise(list(pair), method="otdd", max_points=20)
    assert again.values[0, 1] == result.value
    assert sotdd.pairwise(list(pair), method="otdd", max_points=20, seed=1).values[0, 1] != result.value


@pytest.mark.parametrize("unit", [1e-30, 1e-8, 1e8])
@pytest.mark.parametrize("method", ["otdd", "otdd-gaussian", "wte"])
def test_solvers_do_not_mind_the_unit(pair, method, unit):
    """The tolerances of network simplex are absolute."""
    small = sotdd.pairwise([(x * unit, y) for x, y in pair], method=method).values[0, 1]
    assert small / unit == pytest.approx(sotdd.pairwise(list(pair), method=method).values[0, 1], rel=1e-5)


@pytest.mark.parametrize("method", ["otdd", "otdd-gaussian", "wte", "chsw", "frechet", "mmd"])
@pytest.mark.parametrize("unit", [1e-200, 1e200])
def test_squares_that_leave_float64_are_told(pair, method, unit):
    with pytest.raises(sotdd.SotddError, match="cannot be squared in float64"):
        sotdd.pairwise([(x * unit, y) for x, y in pair], method=method)


def test_mmd_is_symmetric(rng):
    a, b = rng.normal(size=(1500, 2)), rng.normal(0.1, 1, size=(900, 2))
    assert peers.mmd(a, b).value == pytest.approx(peers.mmd(b, a).value, rel=1e-9)


# ------------------------------------------------------------------ bad input


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda a, b: peers.otdd(a, b, inner="best"), "inner is 'best'"),
        (lambda a, b: peers.otdd(a, b, outer="best"), "outer is 'best'"),
        (lambda a, b: peers.otdd(a, b, p=0.5), "p is 0.5"),
        (lambda a, b: peers.otdd(a, b, max_points=0), "max_points is 0"),
        (lambda a, b: peers.otdd(a, b, seed=-1), "seed is -1"),
        (lambda a, b: peers.otdd(a, b, regularisation=1.0), "belongs to outer='sinkhorn'"),
        (lambda a, b: peers.otdd(a, b, outer="sinkhorn", regularisation=0.0), "regularisation is 0.0"),
        (lambda a, b: peers.otdd(a, np.zeros((3, 9))), "9 features"),
        (lambda a, b: peers.mmd(a, b, bandwidth=-1), "bandwidth is -1"),
        (lambda a, b: peers.mmd(a, b, bandwidth=1e-200), "leaves float64"),
        (lambda a, b: peers.otdd(a, b, outer="sinkhorn", regularisation="a"), "regularisation is 'a'"),
        (lambda a, b: peers.otdd(a, b, p=700), "costs overflow"),
        (lambda a, b: peers.wte([a, b], reference="abc"), "reference does not form"),
        (lambda a, b: peers.wte([a, b], reference=np.zeros((0, 14))), "reference has shape"),
        (lambda a, b: sotdd.pairwise([a, b], method="otdd", device="cuda"), "works on the processor only"),
        (lambda a, b: peers.chsw(a, b, label_dimensions=0), "label_dimensions is 0"),
        (lambda a, b: peers.wte([a, b], n_reference=1.5), "n_reference is 1.5"),
        (lambda a, b: peers.frechet(a, b, scale="minmax"), "scale is 'minmax'"),
        (lambda a, b: sotdd.pairwise([a, b], method="emd"), "method is 'emd': expected one of sotdd, otdd"),
        (lambda a, b: sotdd.pairwise([a, b], method="otdd", n_moments=5), "has no setting n_moments: it takes p"),
        (lambda a, b: sotdd.pairwise([a, b], method="sw", projections=3), "'sw' has no setting projections"),
        (lambda a, b: sotdd.pairwise([a, b], max_points=5), "no setting max_points of s-OTDD"),
    ],
)  # fmt: skip
def test_bad_settings(pair, call, said):
    with pytest.raises(sotdd.SotddError, match=said):
        call(*pair)


def test_memory_is_estimated_before_it_is_taken(monkeypatch):
    monkeypatch.setattr(points_module, "available_bytes", lambda: 10**9)
    x = np.zeros((20_000, 2), np.float32)
    with pytest.raises(sotdd.SotddError, match=r"needs about 19\.2 GB .*pass max_points=4,082") as caught:
        peers.otdd(x, x)
    assert "method 'sotdd'" in str(caught.value)
    with pytest.raises(sotdd.SotddError, match=r"float64 needs about 8\.0 GB"):
        peers.frechet(np.broadcast_to(np.uint8(0), (10**6, 1000)), np.zeros((3, 1000)))


def test_memory_that_is_free_is_a_number():
    assert 10**8 < points_module.available_bytes() < 10**15


@pytest.mark.parametrize("call", [peers.otdd, lambda a, b: peers.wte([a, b])])
def test_without_the_extra_it_says_what_to_install(pair, monkeypatch, call):
    monkeypatch.setitem(sys.modules, "ot", None)
    with pytest.raises(sotdd.SotddError, match=r"pip install 'sotdd\[peers\]'"):
        call(*pair)
