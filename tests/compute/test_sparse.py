"""Sparse points are compared as their dense arrays are, in memory of the size of what is stored."""

import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse as sp

import sotdd
from laws import Circles
from sotdd.compute.cpu.engine import CpuEngine
from sotdd.compute.cpu.rows import multiplies_stored
from sotdd.projections.scale_statistics import FeatureMoments


def drawn(rng, shape, density, sampler):
    """A sparse array with this share of values; SciPy names the arguments of its own way by version."""
    places = rng.choice(shape[0] * shape[1], int(density * shape[0] * shape[1]), replace=False)
    return sp.csr_array((sampler(size=len(places)), np.divmod(places, shape[1])), shape=shape)


def drawn_pair(rng, n, d, density, dtype=float):
    """Two sparse datasets with labels that matter, of which the second is stretched."""
    pair = []
    for stretch, size in ((1.0, n), (1.5, n + 23)):
        x = drawn(rng, (size, d), density, rng.exponential)
        pair.append(((x * stretch * 3).astype(dtype), np.asarray(x.sum(axis=1) > np.median(x.sum(axis=1))).ravel()))
    return pair


def dense(pair):
    return [(x.toarray(), y) for x, y in pair]


def assert_same(pair, **settings):
    ours, theirs = sotdd.distance(*pair, **settings), sotdd.distance(*dense(pair), **settings)
    np.testing.assert_allclose(ours.per_projection, theirs.per_projection, rtol=1e-4)
    np.testing.assert_allclose([ours.value, ours.stderr], [theirs.value, theirs.stderr], rtol=2e-5)


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"estimator": "plain", "directions": sotdd.projections.Hadamard()},
        {"directions": sotdd.projections.Sphere()},
        {"scale": "features"},
        {"scale": None},
        {"label_law": sotdd.projections.ClassQuantiles(8), "p": 1},
        {"noise_floor": True},
    ],
    ids=str,
)
@pytest.mark.parametrize(("n", "d", "density"), [(300, 40, 0.05), (20, 2500, 0.01), (150, 1, 0.1)])
def test_sparse_points_are_those_of_the_dense_array(rng, n, d, density, settings):
    pair = drawn_pair(rng, n, d, density, np.float32 if d == 1 else float)
    assert_same(pair, n_projections=192, **settings)


def test_values_far_from_zero_are_made_dense(rng):
    """The difference of two sums would lose the digits in which such values differ."""
    x = sp.csr_array(np.column_stack([1.7e9 + rng.normal(size=500), *(rng.random((20, 500)) < 0.02)]))
    data = sotdd.open_dataset(x)
    assert not multiplies_stored(data, sotdd.Projections.fit([data], scale="features"))
    pair = (x[:250], np.arange(250) % 2), (x[250:], np.arange(250) % 2)
    assert_same(pair, n_projections=64, scale="features")


@pytest.mark.parametrize("scale", [1.0, 1e150, 1e-150])
def test_moments_of_features(rng, scale):
    x = drawn_pair(rng, 300, 40, 0.1)[0][0] * scale
    x = sp.hstack([x, np.full((300, 1), 3e5 * scale), rng.normal(1e6 * scale, scale, size=(300, 1))], format="csr")
    ours, theirs = (FeatureMoments.of(sotdd.LabelledData.of(source, "x")) for source in (x, x.toarray()))
    for name in ("centre", "deviations", "spread", "farthest"):
        np.testing.assert_allclose(getattr(ours, name), getattr(theirs, name), rtol=1e-9, atol=1e-12 * scale)
    assert ours.deviations[40] == 0
    assert ours.name_of_farthest == theirs.name_of_farthest
    assert ours.n_points == 300


def test_ranges_beyond_float64_are_refused():
    x = sp.csr_array(np.array([[1.7e308, 0], [-1.7e308, 1]]))
    with pytest.raises(sotdd.SotddError, match="cannot be scaled in float64"):
        sotdd.distance(x, x)
    with pytest.raises(sotdd.SotddError, match="too small for float32"):
        sotdd.distance(sp.csr_array(np.eye(40) * 1e-60), np.eye(40), scale=None)
    with pytest.raises(sotdd.SotddError, match=r"dataset 'a'.*too large"):
        sotdd.distance(sp.csr_array(np.eye(40) * 1e60), np.eye(40), scale=None)


def test_every_verb(rng):
    pair = drawn_pair(rng, 120, 150, 0.02)
    full = dense(pair)
    few = {"n_projections": 64}
    np.testing.assert_allclose(sotdd.paper(*pair, **few).value, sotdd.paper(*full, **few).value, rtol=1e-5)
    both = [sotdd.pairwise([*side, full[0]], **few).values for side in (pair, full)]
    np.testing.assert_allclose(both[0], both[1], rtol=1e-4, atol=1e-3)
    both = [sotdd.test(*side, n_permutations=19, **few) for side in (pair, full)]
    assert both[0].p_value == both[1].p_value
    both = [sotdd.explain(*side, **few).features for side in (pair, full)]
    np.testing.assert_allclose(both[0], both[1], rtol=1e-3)
    projections = sotdd.Projections.fit(pair, **few).evenly()
    both = [sotdd.sketch(side, projections) for side in (pair[0], full[0])]
    assert both[0].distance(both[1]).value < 1e-4
    streamed = [sotdd.sketch_stream([side, side], projections) for side in (pair[0], full[0])]
    assert streamed[0].distance(streamed[1]).value < 1e-4
    both = [sotdd.DriftReference.fit(side[0], **few).test(side[1], n_permutations=19).p_value for side in (pair, full)]
    assert both[0] == both[1]
    both = [sotdd.peers.mmd(*side).value for side in (pair, full)]
    np.testing.assert_allclose(both[0], both[1], rtol=1e-9)
    scalers = [sotdd.Scaler.fit([side[0][0], side[1][0]], "features") for side in (pair, full)]
    np.testing.assert_allclose(scalers[0].scale, scalers[1].scale, rtol=1e-9)


def test_laws_of_ones_own_and_the_torch_engine_see_dense_blocks(rng):
    from sotdd.compute.torch.engine import TorchEngine

    pair = drawn_pair(rng, 90, 30, 0.05)
    assert_same(pair, n_projections=64, directions=Circles())
    data = [sotdd.open_dataset(side) for side in pair]
    projections = sotdd.Projections.fit(data, n_projections=64)
    with CpuEngine() as engine:
        ours = [view.rows[1].copy() for view in engine.walk(data, projections)]
    with TorchEngine("cpu") as engine:
        theirs = [np.asarray(view.rows[1]).copy() for view in engine.walk(data, projections)]
    np.testing.assert_allclose(np.concatenate(ours), np.concatenate(theirs), rtol=1e-3, atol=1e-4)


CHILD = """
import numpy as np, scipy.sparse as sp, sotdd

def peak():
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("VmHWM")) / 1024

def words(n, d, per_point, seed):
    rng = np.random.default_rng(seed)
    values, columns = rng.random(n * per_point, np.float32), rng.integers(0, d, n * per_point)
    return sp.csr_array((values, columns, np.arange(n + 1) * per_point), shape=(n, d)), rng.integers(0, 4, n)

small = words(30, 1000, 5, 0)
sotdd.distance(small, small, n_projections=64)  # loads and compiles
a, b = words(100_000, 20_000, 20, 1), words(50_000, 20_000, 20, 2)
before = peak()
print(sotdd.distance(a, b, n_projections=64).value, peak() - before)
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="peak memory is read as Linux has it")
def test_what_would_be_gigabytes_takes_memory_of_a_few_blocks():
    """Dense, the datasets take 8 and 4 GB."""
    done = subprocess.run([sys.executable, "-c", CHILD], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    value, grown = map(float, done.stdout.split())
    assert value > 0
    assert grown < 500  # MB
