"""Sparse points are compared as their dense arrays are, bit for bit, in memory of the size of what is stored."""

import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse as sp

import sotdd
from laws import Circles
from sotdd.compute.cpu_engine import CpuEngine
from sotdd.compute.slices import slice_datasets


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
    np.testing.assert_array_equal(ours.per_projection, theirs.per_projection)
    assert [ours.value, ours.stderr] == [theirs.value, theirs.stderr]


@pytest.mark.parametrize(
    "settings",
    [
        {},
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
    few = {"n_projections": 64}
    projections = sotdd.Projections.fit(pair, **few).evenly()
    for measure in (
        lambda a, b: sotdd.paper(a, b, **few).value,
        lambda a, b: sotdd.pairwise([a, b, a], **few).values.tolist(),
        lambda a, b: sotdd.test(a, b, n_permutations=19, **few).p_value,
        lambda a, b: sotdd.explain(a, b, **few).features,
        lambda a, b: sotdd.sketch(a, projections).quantiles.tolist(),
        lambda a, b: sotdd.sketch_stream([a, b], projections).quantiles.tolist(),
        lambda a, b: sotdd.DriftReference.fit(a, **few).test(b, n_permutations=19).p_value,
        lambda a, b: sotdd.peers.mmd(a, b).value,
        lambda a, b: sotdd.Scaler.fit([a[0], b[0]], "features").scale.tolist(),
    ):
        assert measure(*pair) == measure(*dense(pair))


def test_laws_of_ones_own_and_the_torch_engine(rng):
    from sotdd.compute.torch.engine import TorchEngine

    pair = drawn_pair(rng, 90, 30, 0.05)
    assert_same(pair, n_projections=64, directions=Circles())
    data = [sotdd.open_dataset(side) for side in pair]
    projections = sotdd.Projections.fit(data, n_projections=64)
    with CpuEngine() as engine:
        ours = [slices.rows[1].copy() for slices in slice_datasets(data, projections, engine)]
    with TorchEngine("cpu") as engine:
        theirs = [np.asarray(slices.rows[1]).copy() for slices in slice_datasets(data, projections, engine)]
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
a, b = words(40_000, 20_000, 20, 1), words(20_000, 20_000, 20, 2)
before = peak()
print(sotdd.distance(a, b, n_projections=64).value, peak() - before)
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="peak memory is read as Linux has it")
def test_what_would_be_gigabytes_takes_memory_of_a_few_blocks():
    """Dense, the datasets take 3.2 and 1.6 GB."""
    done = subprocess.run([sys.executable, "-c", CHILD], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    value, grown = map(float, done.stdout.split())
    assert value > 0
    assert grown < 500  # MB
