"""How a CSV file is written: what stands between fields, before fractions, and for letters."""

from __future__ import annotations

import csv
import re
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from sotdd.basics.errors import SotddError
from sotdd.inputs.loaders.arrow_columns import arrow
from sotdd.inputs.settings import Settings

# What may stand between fields, the most usual first.
_SEPARATORS = ",;\t|"
# As many bytes as this are looked at.
_HEAD = 1 << 16

_MARKS = {b"\xef\xbb\xbf": "utf-8-sig", b"\xff\xfe": "utf-16", b"\xfe\xff": "utf-16"}
_UTF8 = ("utf-8", "utf-8-sig", "ascii")

_COMMA_NUMBER = re.compile(r"\s*[-+]?\d{1,15},\d+\s*")
_POINT_NUMBER = re.compile(r"\s*[-+]?\d*\.\d+\s*")


@dataclass(frozen=True)
class Dialect:
    """How a CSV file is written; what was not said is told from its first lines.

    Attributes
    ----------
    separator
        The character between fields.
    decimal
        The character before a fraction.
    encoding
        How letters are written.
    """

    separator: str
    decimal: str
    encoding: str

    @classmethod
    def of(cls, path: Path, settings: Settings) -> Dialect:
        """Take what was asked for, and find out the rest."""
        with arrow().input_stream(str(path)) as stream:
            head: bytes = stream.read(_HEAD)
        encoding = settings.encoding or next((name for mark, name in _MARKS.items() if head.startswith(mark)), "utf-8")
        lines = _whole_lines(head, encoding, len(head) == _HEAD, path)
        usual = "\t" if ".tsv" in (suffix.lower() for suffix in path.suffixes) else ","
        separator = settings.separator or _separator(lines, usual)
        return cls(separator, settings.decimal or _decimal(lines, separator), encoding)

    def stream(self, path: Path) -> IO[bytes]:
        """The bytes of the file in UTF-8, decompressed."""
        stream: Any = arrow().input_stream(str(path))
        if self.encoding not in _UTF8:
            stream = arrow().transcoding_input_stream(stream, self.encoding, "utf-8")
        return stream  # type: ignore[no-any-return]  # it reads like a file


def _whole_lines(head: bytes, encoding: str, cut: bool, path: Path) -> list[str]:
    """The first lines of a file; bytes that are no letters are refused."""
    try:
        text = head.decode(encoding)
    except UnicodeDecodeError as error:
        if not (cut and error.start > len(head) - 8):
            raise SotddError(
                f"cannot read {path} (byte {error.start:,} is no letter in {encoding}): say which it is, "
                "such as latin-1 or cp1252, by encoding= (FILE::encoding=latin-1 in a source text)."
            ) from None
        text = head[: error.start].decode(encoding)
    lines = text.splitlines()
    return lines[:-1] if cut and len(lines) > 1 else lines


def _separator(lines: list[str], usual: str) -> str:
    """What divides the header into the most fields, quotes apart; the usual one where there is but one field."""
    header = re.sub(r'"[^"]*"', "", lines[0]) if lines else ""
    most = max(_SEPARATORS, key=lambda separator: (header.count(separator), separator == usual))
    return most if header.count(most) else usual


def _decimal(lines: list[str], separator: str) -> str:
    """A comma where some fields are numbers with one and none has a point; commas between fields leave no choice."""
    if separator == ",":
        return "."
    rows = list(csv.reader(lines[1:], delimiter=separator))
    fields = [field for row in rows for field in row]
    commas = sum(_COMMA_NUMBER.fullmatch(field) is not None for field in fields)
    return "," if commas and not any(_POINT_NUMBER.fullmatch(field) for field in fields) else "."
