"""The command that compiles ahead of time."""

from __future__ import annotations

import time

from sotdd.basics.errors import SotddError
from sotdd.cli import options as o
from sotdd.cli.terminal import say, show_work

EXAMPLES = o.examples("sotdd warm")

# Tables, embeddings and images: loops are compiled for each kind of number, and wide points have loops of their own.
_KINDS = ((4, "float64"), (130, "float32"), (130, "uint8"))

# Enough for the loops that sort long rows.
_POINTS = 3000


@o.takes()
def warm_command(asked: o.Asked) -> None:
    """Compile now what distance, check and explain compile at their first run.

    For the image of a container, or a job of CI whose cache is kept. Compiled loops are kept in
    NUMBA_CACHE_DIR where that is set, otherwise in the user's cache.
    """
    from sotdd.projections.compiling import find_cache

    started = time.perf_counter()
    if (folder := find_cache()) is None:
        raise SotddError("no folder for compiled loops can be written: set NUMBA_CACHE_DIR to one that can.")
    with show_work("Compiling …", asked.quiet):
        _compile_loops()
    seconds = time.perf_counter() - started
    asked.print(
        {"seconds": seconds, "folder": str(folder)},
        lambda: say(f"compiled in {seconds:.1f} s, kept in {folder}"),
    )


def _compile_loops() -> None:
    """Make the calls once, for each kind of data."""
    import numpy as np

    import sotdd

    rng = np.random.default_rng(0)
    labels = np.arange(_POINTS) % 3, rng.integers(3, size=_POINTS)  # classes of one size, and of others
    for number, (n_features, kind) in enumerate(_KINDS):
        points = (100 * rng.random((2, _POINTS, n_features))).astype(kind)
        a, b = (points[0], labels[0]), (points[1], labels[number % 2])
        sotdd.distance(a, b, n_projections=64, noise_floor=True)
        sotdd.explain(a, b, n_projections=64)
        for first, second in ((_POINTS, _POINTS), (40, 40), (40, 30)):  # few points are compared by other loops
            reference = sotdd.DriftReference.fit((a[0][:first], a[1][:first]), with_sketch=True)
            reference.test((b[0][:second], b[1][:second]), n_permutations=19)
            reference.distance((b[0][:second], b[1][:second]))
