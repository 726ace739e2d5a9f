"""The peers against the authors' outputs, known answers and each other."""

import math
import sys

import numpy as np
import ot
import pytest
from scipy.spatial.distance import cdist, pdist, squareform

import sotdd
from sotdd import peers
from sotdd.basics import resources
from sotdd.basics.remarks import Remark
from sotdd.compute.kernels.rows import Overlaps, transport_rows
from sotdd.peers import METHODS
from sotdd.peers.embeddings import busemann, embed, project

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
    rows = [np.sort(project(data[f"X{i}"], data[f"y{i}"], known["theta"], heights)).astype(np.float32) for i in which]
    n, m = (part.shape[1] for part in rows)
    found = transport_rows(*rows, 2.0, None if n == m else Overlaps.of(n, m))
    np.testing.assert_allclose(found, known[f"w2sq_{which}"], rtol=1e-4)


# ------------------------------------------------------------------ WTE, CHSW, SW, MMD


def test_wte_is_near_the_transport_that_it_stands_for(rng):
    """A shift moves every barycentre by the same vector: the distance is its length, labels apart."""
    x = rng.normal(size=(80, 3))
    embedded = peers.wte([x, x + np.array([3.0, 0.0, 4.0])])
    labels_apart = 5.0  # one class each, as far apart as the features, on the label axis
    assert embedded.matrix.values[0, 1] == pytest.approx(math.hypot(5, labels_apart), rel=1e-3)
    gap = np.linalg.norm(embedded.vectors[0] - embedded.vectors[1])
    assert gap == pytest.approx(embedded.matrix.values[0, 1])


def test_sliced_wasserstein_against_pot(rng):
    a, b = rng.normal(size=(70, 3)), rng.normal(1, 2, size=(50, 3))
    result = peers.sliced_wasserstein(a, b, n_projections=5000)
    low, high = result.interval(0.999)
    assert low < ot.sliced_wasserstein_distance(a, b, n_projections=20_000, seed=1) < high


def test_mmd_by_hand(rng):
    a, b = rng.normal(size=(700, 3)), rng.normal(1, 1, size=(60, 3))
    kernel = [np.exp(-cdist(x, y, "sqeuclidean") / (2 * 1.5**2)).mean() for x, y in ((a, a), (b, b), (a, b))]
    expected = math.sqrt(kernel[0] + kernel[1] - 2 * kernel[2])
    assert peers.mmd(a, b, bandwidth=1.5).value == pytest.approx(expected)
    assert peers.mmd(a, a).value == pytest.approx(0, abs=1e-7)


# ------------------------------------------------------------------ one call shape


@pytest.mark.parametrize("method", METHODS)
def test_every_method_through_pairwise(pair, rng, method):
    third = rng.normal(size=(30, 4)), [0] * 30
    calls = []
    matrix = sotdd.pairwise(
        {"a": pair[0], "b": pair[1], "again": pair[0], "c": third},
        method=method,
        progress=lambda done, total: calls.append((done, total)),
    )
    assert matrix["a", "b"].n_points == (60, 45)
    assert matrix["a", "again"].value == pytest.approx(0, abs=1e-5)
    assert matrix["a", "b"].value == pytest.approx(matrix["again", "b"].value, rel=1e-5)
    assert matrix["a", "b"].value > 0.05
    assert calls[-1][0] == calls[-1][1]
    (x, y), _ = pair
    blind = sotdd.distance(x, x, method=method).value == sotdd.distance((x, y), (x, y[::-1]), method=method).value
    assert blind == (method in ("frechet", "sw", "mmd"))


@pytest.mark.parametrize("method", METHODS)
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
    assert result.remarks[0] == Remark("sampled", taken=20, n_points=60, name="0")
    again = sotdd.pairwise(list(pair), method="otdd", max_points=20)
    assert again.values[0, 1] == result.value
    assert sotdd.pairwise(list(pair), method="otdd", max_points=20, seed=1).values[0, 1] != result.value


@pytest.mark.parametrize("unit", [1e-30, 1e8])
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


# ------------------------------------------------------------------ bad input


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda a, b: peers.otdd(a, b, inner="best"), "inner is 'best'"),
        (lambda a, b: peers.otdd(a, b, p=0.5), "p is 0.5"),
        (lambda a, b: peers.otdd(a, b, max_points=0), "max_points is 0"),
        (lambda a, b: peers.otdd(a, b, seed=-1), "seed is -1"),
        (lambda a, b: peers.otdd(a, np.zeros((3, 9))), "9 features"),
        (lambda a, b: peers.mmd(a, b, bandwidth=-1), "bandwidth is -1"),
        (lambda a, b: peers.mmd(a, b, bandwidth=1e-200), "leaves float64"),
        (lambda a, b: peers.otdd(a, b, p=700), "costs overflow"),
        (lambda a, b: peers.frechet(a, b, scale="minmax"), "scale is 'minmax'"),
    ],
)  # fmt: skip
def test_bad_settings(pair, call, said):
    with pytest.raises(sotdd.SotddError, match=said):
        call(*pair)


def test_memory_is_estimated_before_it_is_taken(monkeypatch):
    monkeypatch.setattr(resources, "available_bytes", lambda: 10**9)
    x = np.zeros((20_000, 2), np.float32)
    with pytest.raises(sotdd.SotddError, match=r"about 19\.2 GB") as caught:
        peers.otdd(x, x)
    assert caught.value.use == {"max_points": 4082}
    with pytest.raises(sotdd.SotddError, match=r"about 8\.0 GB"):
        peers.frechet(np.broadcast_to(np.uint8(0), (10**6, 1000)), np.zeros((3, 1000)))


@pytest.mark.parametrize("call", [peers.otdd, lambda a, b: peers.wte([a, b])])
def test_without_the_extra_it_says_what_to_install(pair, monkeypatch, call):
    monkeypatch.setitem(sys.modules, "ot", None)
    with pytest.raises(sotdd.SotddError, match=r"pip install 'sotdd\[peers\]'"):
        call(*pair)
