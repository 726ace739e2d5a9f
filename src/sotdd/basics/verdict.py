"""What is said of a pair or a batch: one word, with its exit code and its tone wherever it is shown."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from typing import Literal, TypeAlias

Tone: TypeAlias = Literal["good", "bad", "unsure"]


class Verdict(StrEnum):
    """Passed, drift, or undecided; the value is the word of files.

    Examples
    --------
    >>> Verdict.DRIFT.value, Verdict.DRIFT.exit_code, Verdict.DRIFT.tone
    ('drift', 1, 'bad')
    >>> Verdict.combine([Verdict.PASSED, Verdict.UNDECIDED]).value
    'undecided'
    """

    PASSED = "passed"
    DRIFT = "drift"
    UNDECIDED = "undecided"

    @property
    def exit_code(self) -> int:
        """What a command exits with."""
        return _EXIT_CODES[self]

    @property
    def tone(self) -> Tone:
        """How pages colour it."""
        return _TONES[self]

    @property
    def label(self) -> str:
        """The word at the start of a line on the terminal."""
        return "FAILED" if self is Verdict.DRIFT else self.value

    @property
    def colour(self) -> str:
        """The colour of that word."""
        return {"good": "green", "bad": "red", "unsure": "yellow"}[self.tone]

    @property
    def past(self) -> str:
        """The word in a count of batches."""
        return "drifted" if self is Verdict.DRIFT else self.value

    @property
    def drifted(self) -> bool | None:
        """Whether there is drift; None where that is undecided."""
        return None if self is Verdict.UNDECIDED else self is Verdict.DRIFT

    @classmethod
    def combine(cls, verdicts: Iterable[Verdict]) -> Verdict:
        """Combine what several batches say: one that drifted counts most, then one that is undecided."""
        found = set(verdicts)
        return cls.DRIFT if cls.DRIFT in found else cls.PASSED if found == {cls.PASSED} else cls.UNDECIDED


_EXIT_CODES = {Verdict.PASSED: 0, Verdict.DRIFT: 1, Verdict.UNDECIDED: 2}
_TONES: dict[Verdict, Tone] = {Verdict.PASSED: "good", Verdict.DRIFT: "bad", Verdict.UNDECIDED: "unsure"}
