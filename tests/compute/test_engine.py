"""The CPU engine: the same numbers for any chunk and any number of threads, and good manners."""

import inspect
import threading
import tracemalloc
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise as neighbours

import numpy as np
import pytest
import threadpoolctl

import sotdd
from sotdd import LabelledData
from sotdd.basics.resources import Workers, find_libraries
from sotdd.compute.comparison import compare
from sotdd.compute.cpu_engine import CpuData, CpuEngine
from sotdd.compute.engine import Engine, LoadedData
from sotdd.compute.numpy_engine import NumpyData, NumpyEngine
from sotdd.compute.torch.engine import TorchEngine
from sotdd.compute.torch.loaded import TorchData
from sotdd.projections.labels import Polynomials, find_class_terms


def blas_threads():
    return [library["num_threads"] for library in threadpoolctl.threadpool_info() if library["user_api"] == "blas"]


# ------------------------------------------------------------------ the same numbers


@pytest.mark.parametrize(("n", "m", "d"), [(1501, 1000, 784), (700, 1500, 17), (1, 1, 1)])
@pytest.mark.parametrize(
    ("count", "settings"),
    [
        (513, {}),
        (500, {"label_law": "paper", "label_directions": "own"}),
        (65, {"tilt": False}),
        (320, {"label_law": "quantiles"}),
    ],
)
def test_chunk_size_and_threads_do_not_matter_bit_for_bit(rng, n, m, d, count, settings):
    datasets = [
        LabelledData.of((rng.normal(size=(size, d)), rng.integers(0, 5, size=size)), name)
        for name, size in {"a": n, "b": m}.items()
    ]
    projections = sotdd.Projections.fit(datasets, n_projections=count, **settings)

    def compared(threads, chunk):
        engine = CpuEngine(threads, chunk)
        return compare(datasets, [(0, 1)], projections, 2, engine=engine, estimator="controlled")[0, 1]

    expected = compared(1, 512)
    for threads, chunk in [(1, 64), (2, 320), (5, None)]:
        found = compared(threads, chunk)
        np.testing.assert_array_equal(found.per_projection, expected.per_projection)
        assert found.value == expected.value
    if count > 256:
        later = compare(datasets, [(0, 1)], projections.from_block(3, 65), 2, engine=CpuEngine(2, 128))[0, 1]
        # Some processors round products of other shapes otherwise.
        np.testing.assert_allclose(later.per_projection, expected.per_projection[192:257], rtol=1e-5)


# ------------------------------------------------------------------ the same verbs


@pytest.mark.parametrize(
    ("protocol", "own"),
    [
        *((Engine, engine) for engine in (NumpyEngine, CpuEngine, TorchEngine)),
        *((LoadedData, data) for data in (NumpyData, CpuData, TorchData)),
    ],
)
def test_every_engine_has_the_verbs_of_the_protocol(protocol, own):
    verbs = {name: verb for name, verb in vars(protocol).items() if callable(verb) and not name.startswith("_")}
    assert verbs
    for name, verb in verbs.items():
        assert list(inspect.signature(getattr(own, name)).parameters) == list(inspect.signature(verb).parameters)


# ------------------------------------------------------------------ kernels against NumPy


@pytest.mark.parametrize("degree", [0, 1, 3, 4, 5, 11])
def test_class_means_of_polynomials(rng, degree):
    rows = rng.normal(size=(3, 2500)).astype(np.float32)
    coefficients = rng.normal(size=(3, degree + 3))
    coefficients[:, degree + 1 :] = 0
    coefficients[:, degree] = 1
    offsets = np.array([0, 1, 700, 2500])
    means = find_class_terms(rows, offsets, Polynomials(np.ones(3), coefficients))
    for line in range(3):
        values = np.polynomial.polynomial.polyval(rows[line].astype(np.float64), coefficients[line])
        expected = [values[first:last].mean() for first, last in neighbours(offsets)]
        np.testing.assert_allclose(means[line], expected, rtol=1e-10)


# ------------------------------------------------------------------ manners


def test_thread_settings_are_left_as_found(rng):
    a, b = rng.normal(size=(2, 50, 4))
    alive = threading.active_count()
    for limit in (2, 1):
        with threadpoolctl.threadpool_limits(limit):
            before = blas_threads()
            sotdd.distance(a, b)
            assert blas_threads() == before
            with pytest.raises(sotdd.SotddError):
                sotdd.distance(a * 1e20, b, scale=None)
            assert blas_threads() == before
    assert threading.active_count() == alive


def test_the_process_decides_how_many_threads():
    with threadpoolctl.threadpool_limits(1, user_api="blas"), Workers() as workers:
        assert set(workers.each(lambda _: threading.get_ident(), range(50))) == {threading.get_ident()}


@pytest.fixture
def two_blas_threads():
    find_libraries.cache_clear()  # other tests may have loaded another BLAS since, which no product here uses
    with threadpoolctl.threadpool_limits(2, user_api="blas"):
        if max(blas_threads()) < 2:
            pytest.skip("BLAS has one thread here whatever is asked for")
        yield blas_threads()


def test_the_hold_works_from_any_thread_and_ends_with_the_last(two_blas_threads):
    """Whoever comes first and whoever leaves last: one thread inside, restored outside."""
    entered, may_leave = threading.Event(), threading.Event()
    seen = []

    def other():
        with Workers(1) as workers:
            seen.extend(workers.each(lambda _: max(blas_threads()), range(3)))
            entered.set()
            may_leave.wait(10)

    thread = threading.Thread(target=other)
    with Workers(1):
        thread.start()
        assert entered.wait(10)
    assert max(blas_threads()) == 1  # the other is still inside
    may_leave.set()
    thread.join()
    assert seen == [1, 1, 1]
    assert blas_threads() == two_blas_threads

    alone = threading.Thread(target=other)
    alone.start()
    alone.join()
    assert seen == [1] * 6
    assert blas_threads() == two_blas_threads


def test_many_callers_at_once_get_the_right_answers(rng):
    pairs = [(rng.normal(size=(200, 5)), rng.normal(i, 1, size=(150, 5))) for i in range(16)]
    expected = [sotdd.distance(a, b, n_projections=200).value for a, b in pairs]
    before = blas_threads()
    with ThreadPoolExecutor(16) as pool:
        found = list(pool.map(lambda pair: sotdd.distance(*pair, n_projections=200).value, pairs))
    assert found == expected
    assert blas_threads() == before


def test_the_first_failure_is_raised_and_nothing_hangs():
    before = threading.active_count()

    def fail(x):
        if x >= 3:
            raise sotdd.SotddError(f"item {x}")

    with pytest.raises(sotdd.SotddError, match="item 3"), Workers(2) as workers:
        workers.each(fail, range(100))
    assert threading.active_count() == before


@pytest.mark.slow
def test_memory_is_bounded(rng):
    """Much less than projections × points (here 800 MB) is held, and features are not copied whole."""
    images = rng.integers(0, 256, size=(20_000, 784), dtype=np.uint8)
    labels = rng.integers(0, 10, size=20_000)
    a, b = (images[:10_000], labels[:10_000]), (images[10_000:], labels[10_000:])
    sotdd.distance(a, b, n_projections=1)
    tracemalloc.start()
    sotdd.distance(a, b, n_projections=10_000)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 120e6  # rows of a whole turn of 1,024 directions are 82 MB
