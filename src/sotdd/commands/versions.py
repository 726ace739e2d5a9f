"""What ``sotdd --version`` prints: the libraries that results depend on."""

from __future__ import annotations

import platform
from importlib.metadata import PackageNotFoundError, version

from sotdd.basics.version import __version__

# Always installed, and listed if installed.
_CORE = ("numpy", "scipy", "numba", "safetensors")
_OPTIONAL = ("torch", "triton", "POT", "pyarrow", "lancedb", "dask", "plotly")


def versions() -> str:
    """Names and versions, one per line, this package first.

    Examples
    --------
    >>> from sotdd.commands.versions import versions
    >>> [line.split()[0] for line in versions().splitlines()[:4]]
    ['sotdd', 'python', 'numpy', 'scipy']
    """
    numbers = {"sotdd": __version__, "python": platform.python_version()}
    for name in (*_CORE, *_OPTIONAL):
        try:
            numbers[name] = version(name)
        except PackageNotFoundError:
            continue
    return "\n".join(f"{name} {number}" for name, number in numbers.items())
