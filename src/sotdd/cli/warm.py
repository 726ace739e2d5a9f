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
    NUMBA_CACHE_DIR where that is set, otherwise beside the installation or in the user's cache.
    """
    started = time.perf_counter()
    with show_work("Compiling …", asked.quiet):
        folders = _compile_loops()
    if not folders:
        raise SotddError("no folder for compiled loops can be written: set NUMBA_CACHE_DIR to one that can.")
    seconds = time.perf_counter() - started
    asked.print(
        {"seconds": seconds, "folders": folders},
        lambda: say(f"compiled in {seconds:.1f} s, kept in {', '.join(folders)}"),
    )


def _compile_loops() -> list[str]:
    """Make the calls once, for each kind of data; returns the folders in which their loops are now."""
    import numpy as np

    import sotdd
    from sotdd.compute.kernels import rows
    from sotdd.projections import kernels
    from sotdd.projections.compile_cache import find_folders

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
    found = [find_folders(str(module.__file__)) for module in (kernels, rows)]
    kept = [next((folder for folder in folders if any(folder.glob("*.nbc"))), None) for folders in found]
    return [str(folder) for folder in kept if folder is not None]
