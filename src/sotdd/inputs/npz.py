"""NumPy archives: a file of named arrays, of which one holds features and one labels."""

from __future__ import annotations

import struct
import tokenize
import zipfile
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sotdd.checks import first_line
from sotdd.errors import SotddError

# All that was seen to come out of damaged, encrypted or foreign archives.
_UNREADABLE = (
    OSError,
    ValueError,
    TypeError,
    KeyError,
    EOFError,
    MemoryError,
    OverflowError,
    NotImplementedError,
    RuntimeError,
    SyntaxError,
    struct.error,
    tokenize.TokenError,
    zipfile.BadZipFile,
    zlib.error,
)

_ADVICE = "name arrays as FILE::features=NAME,label=NAME"


@dataclass(frozen=True)
class NpzSource:
    """Where in which file features and labels are.

    Examples
    --------
    >>> from sotdd.inputs.npz import NpzSource
    >>> NpzSource.parse("digits.npz::features=X_train,label=y_train")
    NpzSource(path=PosixPath('digits.npz'), features='X_train', label='y_train', label_is_given=True)
    """

    path: Path
    features: str = "X"
    label: str = "y"
    label_is_given: bool = False

    @classmethod
    def parse(cls, text: str, features: str | None = None, label: str | None = None) -> NpzSource:
        """Read ``FILE`` or ``FILE::features=NAME,label=NAME``; names in the text come first."""
        path, _, options = text.partition("::")
        names = {"features": features, "label": label}
        for option in filter(None, options.split(",")):
            key, _, value = option.partition("=")
            if key not in names or not value:
                raise SotddError(f"cannot read {option!r} in {text!r}: {_ADVICE}.")
            names[key] = value
        return cls(Path(path), names["features"] or "X", names["label"] or "y", names["label"] is not None)

    def read(self) -> tuple[NDArray[Any], NDArray[Any] | None]:
        """Return features, and labels or None where the file has none and none were named."""
        if self.path.suffix.lower() != ".npz":
            raise SotddError(f"{self.path} is not an .npz file: save features X and labels y with numpy.savez.")
        try:
            with self.path.open("rb") as file:  # opened here, so that it is closed whatever happens
                arrays = np.load(file, allow_pickle=False)
                if not isinstance(arrays, np.lib.npyio.NpzFile):
                    raise SotddError(f"{self.path} holds a single array: save X and y with numpy.savez.")
                with arrays:
                    return self._array(arrays, self.features), self._labels(arrays)
        except SotddError:
            raise
        except FileNotFoundError as error:
            raise SotddError(f"there is no file {self.path}: check the path.") from error
        except _UNREADABLE as error:
            objects = "pickle" in str(error) and zipfile.is_zipfile(self.path)
            reason = "it holds Python objects" if objects else first_line(error)
            raise SotddError(
                f"cannot read {self.path} ({reason}): expected an .npz file of number and text arrays."
            ) from error

    def _labels(self, arrays: np.lib.npyio.NpzFile) -> NDArray[Any] | None:
        if self.label not in arrays and not self.label_is_given:
            return None
        return self._array(arrays, self.label)

    def _array(self, arrays: np.lib.npyio.NpzFile, name: str) -> NDArray[Any]:
        if name not in arrays:
            raise SotddError(f"{self.path} has no array {name!r}, only {', '.join(arrays.files) or 'none'}: {_ADVICE}.")
        array: NDArray[Any] = arrays[name]
        return array
