"""Quotes of a CSV file, followed while its bytes are read: one that is left open swallows all that comes after it."""

from __future__ import annotations

import io
import re
from typing import IO

import numpy as np

from sotdd.basics.errors import SotddError

# A byte order mark, which some programs put in front.
_MARK = b"\xef\xbb\xbf"


class CheckedQuotes(io.RawIOBase):
    r"""The bytes of a CSV file as they are, refused where a quote swallows lines.

    A quote opens a field only at its beginning, and is closed by the next one that is not doubled. Fields with line
    breaks are fine if something ends them: the delimiter or the end of the line follows. Else the quote that seems to
    close them opened a field of its own, and the one before it was left open.

    Parameters
    ----------
    stream
        What is read.
    path
        What messages call the file.
    delimiter
        The character between fields.
    longest
        A quote that is still open after this many bytes is refused.

    Examples
    --------
    >>> import io
    >>> from sotdd.inputs.loaders.csv_quotes import CheckedQuotes
    >>> CheckedQuotes(io.BytesIO(b'a,b\n1,"two\nlines"\n'), "t.csv", ",", 1 << 20).read(1 << 20)
    b'a,b\n1,"two\nlines"\n'
    """

    def __init__(self, stream: IO[bytes], path: str, delimiter: str, longest: int) -> None:
        self._stream = stream
        self._path = path
        self._longest = longest
        self._before = b"\n"  # the last byte that was followed
        self._rest = b""  # what is not followed yet: part of a line, or a quote that is still open
        self._line = 1  # where that begins
        self._begun = False
        self._edges = np.isin(np.arange(256), [*b"\r\n", *delimiter.encode()])
        edge = rb"[\r\n" + re.escape(delimiter.encode()) + rb"]"
        opening, inside = rb"(?<=" + edge + rb')"', rb'(?:[^"]++|"")*+'
        on_one_line = opening + rb'(?:[^"\r\n]++|"")*+"(?=[^"])'
        over_lines = opening + inside + rb'"(?=[ \t]*' + edge + rb")"
        literal = rb"(?<!" + edge + rb')"'
        self._followed = re.compile(rb'(?:[^"]++|' + on_one_line + rb"|" + over_lines + rb"|" + literal + rb")*+")
        self._misplaced = re.compile(opening + inside + rb'"[ \t]*[^"\s]')

    def readable(self) -> bool:
        """It is for reading only."""
        return True

    def read(self, size: int = -1) -> bytes:
        """The next bytes, at most ``size`` of them."""
        chunk = self._stream.read(size)
        self._follow(chunk if self._begun else chunk.removeprefix(_MARK), is_end=not chunk)
        self._begun = True
        return chunk

    def close(self) -> None:
        """Close the file too."""
        self._stream.close()
        super().close()

    def _follow(self, chunk: bytes, is_end: bool) -> None:
        if not self._rest and b'"' not in chunk:
            self._passed(chunk)
            return
        text = self._before + self._rest + chunk + (b"\n" if is_end else b"")
        whole_lines = text.rfind(b"\n") + 1
        if self._is_plain(text[:whole_lines]):
            self._passed(text[1:whole_lines])
            self._rest = text[max(1, whole_lines) :]
            return
        match = self._followed.match(text, 1)
        assert match is not None  # it matches nothing, too
        stop = match.end()
        self._passed(text[1:stop])
        self._rest = text[stop:]
        if self._rest and (is_end or len(self._rest) > self._longest or self._misplaced.match(text, stop)):
            raise SotddError(
                f"{self._path} opens a quote in line {self._line:,} that is not closed where a field ends and takes "
                "the lines after it for text: close that quote, or double it if it is part of the text."
            )

    def _is_plain(self, lines: bytes) -> bool:
        """Whether every quote opens or closes a whole field within one line, told much faster than by following."""
        letters = np.frombuffer(lines, np.uint8)
        quotes = 1 + np.flatnonzero(letters[1:] == ord('"'))  # the first letter was followed before
        if len(quotes) % 2:
            return False
        opening, closing = quotes[::2], quotes[1::2]
        if not (self._edges[letters[opening - 1]].all() and self._edges[letters[closing + 1]].all()):
            return False
        ends = np.flatnonzero(letters == ord("\n"))
        return np.array_equal(np.searchsorted(ends, opening), np.searchsorted(ends, closing))

    def _passed(self, text: bytes) -> None:
        self._line += text.count(b"\n")
        self._before = text[-1:] or self._before
