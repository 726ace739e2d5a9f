"""Calls of sketches and streams with what they cannot use, and in processes with little memory: one line."""

import subprocess
import sys
import textwrap

import numpy as np
import pytest

import sotdd
from sotdd.sketches import counting


@pytest.fixture(scope="module")
def x():
    return np.random.default_rng(0).normal(size=(50, 3))


@pytest.fixture(scope="module")
def projections(x):
    return sotdd.Projections.fit([x], n_projections=8)


class NoIterator:
    """It says that it can be iterated over, and cannot."""

    def __iter__(self):
        return 5


@pytest.mark.parametrize(
    ("batches", "said"),
    [
        (lambda: 5, r"what batches\(\) returned is 5: expected a list"),
        (lambda: None, r"what batches\(\) returned is None"),
        (lambda: "abc", r"what batches\(\) returned is 'abc'"),
        (NoIterator, r"what batches\(\) returned is a NoIterator"),
        (int, r"what batches\(\) returned is 0"),
        (lambda seed: [], "batches is a function that needs arguments"),
        (NoIterator(), "batches is a NoIterator"),
        (5, "batches is 5"),
        (b"abc", "batches is a bytes"),
        ([5], "features of dataset 'batch' are 5"),
        ([None], "dataset 'batch' is None"),
    ],
)
def test_batches_that_are_none(projections, batches, said):
    with pytest.raises(sotdd.SotddError, match=said):
        sotdd.sketch_stream(batches, projections)


def test_objects_that_only_seem_to_be_data(projections, x):
    """A delayed value of Dask has every attribute that it is asked for."""
    delayed = pytest.importorskip("dask").delayed(lambda: x)()
    for call, said in [
        (lambda: sotdd.sketch_stream(delayed, projections), "is a Delayed: expected a list"),
        (lambda: sotdd.ClassStatistics(projections).add(delayed), "batch"),
        (lambda: sotdd.ClassStatistics(projections).terms(), "there are no points yet"),
        (lambda: sotdd.sketch(x, projections).save("never", half=x), "half is a ndarray"),
    ]:
        with pytest.raises(sotdd.SotddError, match=said):
            call()


def test_errors_of_the_batches_themselves_are_their_own(projections, x):
    def broken():
        yield x
        raise RuntimeError("the disk is on fire")

    with pytest.raises(RuntimeError, match="on fire"):
        sotdd.sketch_stream(broken, projections)


def test_names_that_no_file_could_keep(projections, x):
    for call in (
        lambda: sotdd.sketch_stream([x], projections, name=5),
        lambda: sotdd.SketchBuilder(projections).add(x).finish(None),
    ):
        with pytest.raises(sotdd.SotddError, match=r"name is .*: expected text"):
            call()


def test_projections_of_a_file_that_are_none(projections, x, tmp_path):
    path = tmp_path / "builder"
    for kept in (sotdd.SketchBuilder(projections).add(x), sotdd.ClassStatistics(projections)):
        kept.save(path)
        with pytest.raises(sotdd.SotddError, match=r"projections is 0.0: expected Projections.fit"):
            type(kept).load(path, 0.0)


def test_numbers_of_quantiles_have_bounds(projections, x):
    one = sotdd.sketch(x, projections, n_quantiles=8)
    for call, said in [
        (lambda: sotdd.sketch_stream([x], projections, n_quantiles=10**12), "n_quantiles is .*: expected at most"),
        (lambda: sotdd.SketchBuilder(projections, n_quantiles=10**30), "n_quantiles is .*: expected at most"),
        (lambda: one.vector(n_quantiles=10**9), "n_quantiles is .*: expected at most"),
        (lambda: one.vector(n_quantiles=10**30), "n_quantiles is .*: expected at most"),
        (lambda: one.vector(10**30), "dim is .*: expected at most"),
        (lambda: one.vector(5000), "dim is 5,000: expected at most 3,072"),
    ]:
        with pytest.raises(sotdd.SotddError, match=said):
            call()


def test_a_builder_that_was_interrupted_is_not_gone_on_with(projections, x, monkeypatch):
    """A batch after the interrupted one does not make it whole."""
    builder = sotdd.SketchBuilder(projections).add(x)
    with monkeypatch.context() as patched:

        def interrupted(*_):
            raise MemoryError

        patched.setattr(counting.Histograms, "count", interrupted)
        with pytest.raises(sotdd.SotddError, match="does not fit into memory"):
            builder.add(x)
    for call in (
        lambda: builder.add(x),
        builder.finish,
        lambda: builder.merge(sotdd.SketchBuilder(projections).add(x)),
    ):
        with pytest.raises(sotdd.SotddError, match="start again with a new builder"):
            call()


def test_a_batch_that_is_refused_leaves_the_builder_as_it_was(projections, x):
    builder = sotdd.SketchBuilder(projections).add(x, np.zeros(50, int))
    with pytest.raises(sotdd.SotddError):
        builder.add(x, ["a"] * 50)  # text among numbers
    assert builder.add(x, np.ones(50, int)).finish().n_points == 100


LITTLE = """
    import os, resource, sys
    import numpy as np, sotdd
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(20000, 20)).astype(np.float32), rng.integers(5, size=20000)
    many = np.arange(20000) % 60
    projections = sotdd.Projections.fit([(x, y)], n_projections=512)
    small = (x[:200], y[:200])
    one = sotdd.sketch(small, projections)
    one.distance(one), sotdd.sketch_stream([small], projections)  # everything is loaded and compiled
    whole = sotdd.sketch((x, y), projections, n_quantiles=None)
    whole.save("whole.sotdd")
    builders = [sotdd.SketchBuilder(projections).add(x, many + 60 * k) for k in range(2)]
    builders[0].save("builder")
    calls = {
        "sketch": lambda: sotdd.sketch((x, y), projections, n_quantiles=None),
        "save": lambda: whole.save("again"),
        "load": lambda: sotdd.Sketch.load("whole.sotdd"),
        "vector": lambda: whole.vector(n_quantiles=1 << 17),
        "builder save": lambda: builders[0].save("again"),
        "builder load": lambda: sotdd.SketchBuilder.load("builder"),
        "builder merge": lambda: builders[0].merge(builders[1]),
        "stream": lambda: sotdd.sketch_stream([(x, y)], projections, n_quantiles=1 << 20),
        "catalog": lambda: sotdd.Catalog("catalog").add("a", whole),
    }
    sotdd.Catalog("catalog").add("small", one)
    for name, call in calls.items():
        used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (used + 20_000_000, resource.RLIM_INFINITY))
        try:
            call()
        except sotdd.SotddError as error:
            print(name, error, sep=": ", flush=True)
        resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY,) * 2)
    print("again" in os.listdir(), [name for name in os.listdir() if name.endswith(".part")])
"""


@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="limits of memory as Linux has them")
def test_little_memory_is_one_line(tmp_path):
    pytest.importorskip("lancedb")
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(LITTLE)], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    *said, left = done.stdout.splitlines()
    assert len(said) == 9, said
    for line in said:
        assert "does not fit into memory (" in line
        assert "free): " in line
    assert left == "False []"
