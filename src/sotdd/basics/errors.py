"""The errors that the package raises for input it cannot use."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from types import ModuleType

from sotdd.basics.remarks import Naming, Remarks, in_python
from sotdd.basics.text import one_line


class SotddError(ValueError):
    """Raised for input that cannot be used; one line says what arrived and what to do.

    Examples
    --------
    >>> import sotdd
    >>> try:
    ...     sotdd.distance([[0.0], [1.0]], [[0.0, 1.0]])
    ... except sotdd.SotddError as error:
    ...     print(error)
    dataset 'b' has 2 features but dataset 'a' has 1: give all the same features.

    What an error is about is kept as a value, so that the command line can call it by the name of its option.

    >>> SotddError("is 0: expected an integer of at least 1.", setting="n_projections")
    SotddError('n_projections is 0: expected an integer of at least 1.')
    >>> SotddError("the features are too large for float32", use={"scale": "pooled"})
    SotddError("the features are too large for float32: use scale='pooled'.")
    >>> SotddError("'b' has no column 'age', unlike 'a': choose others", by=("features", "exclude"))
    SotddError("'b' has no column 'age', unlike 'a': choose others by features or exclude.")

    So is what it found out about the columns of a table, as ``remarks``.
    """

    def __init__(
        self,
        message: object = "",
        *,
        setting: str | None = None,
        use: Mapping[str, object] | None = None,
        by: Sequence[str] = (),
        remarks: Remarks = (),
    ) -> None:
        self.message: object = message
        self.setting: str | None = setting
        self.use: Mapping[str, object] | None = use
        self.by: Sequence[str] = by
        self.remarks: Remarks = remarks
        super().__init__(self.say(in_python))

    def say(self, naming: Naming) -> str:
        """The line: the setting it is about first, what arrived, and the settings to use instead or to mend it by."""
        subject = "" if self.setting is None else f"{naming(self.setting)} "
        advice = ", ".join(naming(name, value) for name, value in (self.use or {}).items())
        means = f" by {' or '.join(map(naming, self.by))}." if self.by else f": use {advice}." if advice else ""
        return one_line(f"{subject}{self.message}{means}")  # names in it are those of the data


class OutOfRange(SotddError):  # noqa: N818  # the name says what is wrong
    """Raised for data too far apart to measure: a distance or a power of it overflows."""


class UnknownSetting(SotddError, TypeError):  # noqa: N818  # as above; Python raises a TypeError for unknown keywords
    """Raised for a setting that does not exist."""


def require(module: str, purpose: str, install: str) -> ModuleType:
    """Import an optional dependency, or say what it is for and how to install it.

    One that is there and cannot be loaded, for want of memory or of a library of its own, is not called missing.
    """
    try:
        return import_module(module)
    except (ImportError, OSError, AttributeError, MemoryError) as error:
        if isinstance(error, ModuleNotFoundError) and error.name in (module, module.partition(".")[0]):
            raise SotddError(f"{purpose} needs {module}, which is not installed: pip install {install}") from error
        why = (str(error).splitlines() or [type(error).__name__])[0].rstrip(".")
        found = f"{purpose} needs {module}, which is installed but cannot be loaded ({why})"
        raise SotddError(f"{found}: free memory, or pip install --upgrade {install}") from error
