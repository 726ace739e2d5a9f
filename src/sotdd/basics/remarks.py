"""Verdicts, and remarks on what a reader should know beside a number: facts, and the one place where they become words.

A remark has a kind and the names and numbers it is about. Programs look at those; people read `str(remark)`. Sentences
name settings through a `Naming`, so that the command line says ``--scale pooled`` where Python says ``scale='pooled'``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import StrEnum
from types import MappingProxyType
from typing import Any, Literal, TypeAlias

from sotdd.basics.text import join_names, one_line, quote, say_count, show

Tone: TypeAlias = Literal["good", "bad", "unsure"]


class Verdict(StrEnum):
    """Passed, drift, copied, or undecided; the value is the word of files.

    Examples
    --------
    >>> Verdict.DRIFT.value, Verdict.DRIFT.exit_code, Verdict.DRIFT.tone
    ('drift', 1, 'bad')
    >>> Verdict.combine([Verdict.PASSED, Verdict.UNDECIDED]).value
    'undecided'
    """

    PASSED = "passed"
    DRIFT = "drift"
    COPIED = "copied"
    UNDECIDED = "undecided"

    @property
    def exit_code(self) -> int:
        """What a command exits with."""
        return _EXIT_CODES[self]

    @property
    def tone(self) -> Tone:
        """How pages colour it."""
        return _TONES.get(self, "bad")

    @property
    def label(self) -> str:
        """The word at the start of a line on the terminal."""
        return "FAILED" if self.exit_code == 1 else self.value

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


_EXIT_CODES = {Verdict.PASSED: 0, Verdict.DRIFT: 1, Verdict.COPIED: 1, Verdict.UNDECIDED: 2}
_TONES: dict[Verdict, Tone] = {Verdict.PASSED: "good", Verdict.UNDECIDED: "unsure"}


# How a reader writes a setting: a function of its name, alone or with a value.
Naming: TypeAlias = Callable[..., str]


def in_python(setting: str, value: object = ...) -> str:
    """A setting as a keyword of a call.

    Examples
    --------
    >>> in_python("scale", "pooled"), in_python("n_projections")
    ("scale='pooled'", 'n_projections')
    """
    return setting if value is ... else f"{setting}={value!r}"


class Remark:
    """One thing that a reader should know.

    Parameters
    ----------
    kind
        What it is: one of `SENTENCES`.
    about
        The dataset that it is about, where others are beside it; empty for all.
    facts
        The names and numbers of the sentence: texts, numbers, or tuples and dicts of them.

    Examples
    --------
    >>> Remark("sampled", taken=500, n_points=9000, name="train")
    Remark: 500 of the 9,000 points of 'train' were sampled
    """

    def __init__(self, kind: str, about: str = "", **facts: Any) -> None:  # noqa: ANN401  # JSON values
        self.kind: str = kind
        self.about: str = about
        self.facts: dict[str, Any] = facts

    def of(self, name: str) -> Remark:
        """The same, about one dataset."""
        return Remark(self.kind, name, **self.facts)

    def say(self, naming: Naming = in_python) -> str:
        """The sentence, without a full stop."""
        sentence = SENTENCES[self.kind](naming, **self.facts)
        return one_line(f"{self.about}: {sentence}" if self.about else sentence)

    def to_dict(self) -> dict[str, Any]:
        """The kind, the sentence and the facts, as JSON values."""
        about = {"about": self.about} if self.about else {}
        return {"kind": self.kind, "text": str(self), **about, **self.facts}

    def __str__(self) -> str:
        return self.say()

    def __repr__(self) -> str:
        return f"Remark: {self}"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Remark) and vars(self) == vars(other)

    def __hash__(self) -> int:
        return hash((self.kind, self.about))


Remarks = tuple[Remark, ...]


def join_remarks(*groups: Iterable[Remark]) -> Remarks:
    """Remarks of several sources, each once, in order."""
    return tuple(dict.fromkeys(remark for group in groups for remark in group))


# ------------------------------------------------------------------ the sentences


def say_why(why: str) -> str:
    """Why a column is left out: what it holds."""
    return "neither number, date nor text" if why == "other" else why


def _judged(naming: Naming, columns: Sequence[str], left_out: Mapping[str, Mapping[str, Any]]) -> str:
    of = len(columns) + len(left_out)
    why = [f"{column}, {say_why(left['why'])}" for column, left in left_out.items()]
    said = f" (left out: {'; '.join(map(show, why[:6]))}{'; …' if len(why) > 6 else ''})" if why else ""
    return f"judged {len(columns):,} of {say_count(of, 'column')}{said}"


def say_gaps(rows: int, n_points: int, columns: Mapping[str, int]) -> str:
    """How many rows lack a value, and in which columns."""
    most_first = sorted(columns.items(), key=lambda item: -item[1])
    named = join_names([f"{show(column)} ({count:,})" for column, count in most_first])
    return f"{rows:,} of {say_count(n_points, 'row')}, {named}"


def _no_labels(naming: Naming, names: Sequence[str], passed: Mapping[str, str] = MappingProxyType({})) -> str:
    """Why there are no labels: nothing is called so, or what is called so holds measurements, or nothing."""
    if not passed:
        return f"compared without labels, since nothing is called {' or '.join(names)}: name them by {naming('label')}"
    column, why = next(iter(passed.items()))
    if why == "empty":
        return f"compared without labels, since {show(column)} has no values"
    how = f"{naming('label', column)} and {naming('bins', 10)}"
    return f"compared without labels: {show(column)} holds many floats, so it is a feature; otherwise use {how}"


def _coarse(naming: Naming, error: float, by_bins: bool) -> str:
    cause, advice = (
        ("the bins that values were counted in", "sketch the data whole, not as a stream")
        if by_bins
        else ("the quantiles kept", f"sketch with more {naming('n_quantiles')}")
    )
    return f"{cause} are coarse for a difference this small: the value may be off by up to {error:.2g}; {advice}"


def _one_dataset(naming: Naming, name: str, farther: float) -> str:
    times = f"about {farther:,.2g} ×" if farther < 100 else f"about {farther:,.0f} ×"
    return f"dataset {name!r} makes the scale: without it the others would be {times} farther apart"


def _say_dependent(naming: Naming) -> str:
    return f"if rows belong together, say so by {naming('groups')} or {naming('blocks')}, or p-values are too small"


def _join_columns(columns: Iterable[str]) -> str:
    return join_names([column or "a column without a name" for column in columns])


def _retyped(
    naming: Naming, column: str, before: str, after: str, value: str | None = None, row: int | None = None
) -> str:
    several = {"id": "ids", "date": "dates", "list": "lists", "image": "images", "empty": "no values"}
    held, expected = (several.get(why, say_why(why)) for why in (after, before))
    example = "" if value is None or row is None else f", such as {quote(value)} in row {row:,}"
    return f"column {quote(column)} holds {held}{example}" + (f"; the reference has {expected}" if before else "")


def _dates_moved(naming: Naming, column: str, before: Sequence[str], after: Sequence[str]) -> str:
    spans = [first if first == last else f"{first} to {last}" for first, last in (after, before)]
    return f"dates in column {quote(column)} are {spans[0]}; the reference has {spans[1]}"


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %" if share < 0.995 else "nearly all"


SENTENCES: dict[str, Callable[..., str]] = {
    # How data were read.
    "columns left out": lambda naming, columns: (
        "left out: "
        + join_names([f"{column or 'a column without a name'} ({say_why(why)})" for column, why in columns.items()])
    ),
    "columns judged": _judged,
    "nothing to exclude": lambda naming, columns: f"no column {join_names([*map(repr, columns)])} to leave out",
    "columns not in reference": lambda naming, columns: (
        f"left out, since the reference has none: {join_names(columns)}"
    ),
    "new values": lambda naming, owner, values: f"values that {owner} does not have: {join_names(values, 6)}",
    "numbers in text": lambda naming, columns: (
        "read as numbers: " + join_names([f"{column} (such as {value})" for column, value in columns.items()])
    ),
    "gaps not in reference": lambda naming, owner, **gaps: (
        f"values are missing where {owner} has none missing: {say_gaps(**gaps)}"
    ),
    "may be ids": lambda naming, columns: (
        f"every value differs, as of an id: {join_names(columns)}; leave it out with {naming('exclude')} if so"
    ),
    "rows dropped": lambda naming, **gaps: f"rows with missing values left out: {say_gaps(**gaps)}",
    "values filled": lambda naming, **gaps: (
        f"values missing in {say_gaps(**gaps)}; numbers are filled in by the mean of their column"
    ),
    "labels missing": lambda naming, rows: f"{say_count(rows, 'row')} without a label left out",
    "no labels": _no_labels,
    "many classes": lambda naming, classes: (
        f"labels are {classes:,} different numbers: if they measure something, use {naming('bins', 10)}"
    ),
    "fewer bins": lambda naming, bins, asked: f"labels repeat so often that there are {bins:,} bins, not {asked:,}",
    "matched by position": lambda naming, name, projections_have_names: (
        f"the columns of {name!r} have no names and are matched by position"
        if projections_have_names
        else f"the projections were fitted on columns without names, so those of {name!r} are matched by position"
    ),
    "ranges differ": lambda naming, whole, fractions: (
        f"values of {whole!r} go up to 255 and those of {fractions!r} up to 1: divide the former by 255 if both are "
        "images"
    ),
    "sampled": lambda naming, taken, n_points, name="": (
        f"{taken:,} of the {n_points:,} points{f' of {name!r}' if name else ''} were sampled"
    ),
    # What changed in a table, apart from how its values are distributed.
    "extra columns": lambda naming, columns: f"columns that the reference does not have: {_join_columns(columns)}",
    "dropped columns": lambda naming, columns: f"columns of the reference that are missing: {_join_columns(columns)}",
    "emptied columns": lambda naming, columns: f"columns that have become empty: {_join_columns(columns)}",
    "retyped column": _retyped,
    "constant column": lambda naming, column, value: (
        f"column {quote(column)} has become constant: every value is {quote(value)}"
    ),
    "dates moved": _dates_moved,
    "more rows repeat": lambda naming, repeated, rows, before, before_rows: (
        f"{repeated:,} of {say_count(rows, 'row')} repeat others exactly; the reference has "
        f"{before:,} of {before_rows:,}"
    ),
    "rows of reference": lambda naming, found, rows: (
        f"{found:,} of {say_count(rows, 'row')} stand in the reference too, equal in every column"
    ),
    "rows in both": lambda naming, found, rows, name, other: (
        f"{found:,} of {say_count(rows, 'row')} of {name!r} stand in {other!r} too, equal in every column"
    ),
    "too alike": lambda naming, p_value, shared, stderr, visible: (
        f"nearer than samples of one source are: as if {100 * shared:.0f} ± {100 * stderr:.0f} % of rows stood in both"
    ),
    "no holdout": lambda naming: (
        f"only exact copies were looked for: to find others, give a {naming('holdout')} that the generator never saw"
    ),
    "few rows": lambda naming, rows: f"only {say_count(rows, 'row')}: too few to judge",
    # How features were scaled.
    "one feature": lambda naming, feature, share, better: (
        f"{feature} carries {_percent(share)} of the spread: {naming('scale', better)} weighs them more alike"
    ),
    "one point": lambda naming, point, share, makes_the_scale: (
        f"one point {'makes the scale' if makes_the_scale else 'stands out'}: {point} carries {_percent(share)} of the "
        "spread"
    ),
    "one dataset": _one_dataset,
    # How exact a number is.
    "far from zero": lambda naming: (
        f"points are so far from zero that float32 does not tell them apart: use {naming('scale', 'pooled')}"
    ),
    "rounding": lambda naming, noise: (
        f"projected values are so large that float32 rounding is up to {noise:.2g}: bring outliers in, scale the "
        "features or take lower orders"
    ),
    "tolerance missed": lambda naming, max_projections, rel_tol, unreliable: (
        f"{max_projections:,} projections did not reach {naming('rel_tol', rel_tol)}"
        + (" with an error that can be relied on" if unreliable else "")
    ),
    "uncontrolled": lambda naming, share: (
        f"the controls disagree with the projections that they control (they take {share:.0%} of the mean cost), so "
        "this is the plain mean"
    ),
    "one projection": lambda naming: "a single projection cannot tell its error",
    "few projections": lambda naming, count, needed: (
        f"{say_count(count, 'projection')} are too few to judge the tail: use {needed} or more"
    ),
    "heavy tail": lambda naming, index, needed, count: (
        f"the costs of projections have a heavy tail (index {index:.1f}): a 95 % interval would need about "
        f"{needed:,} projections to hold, there are {count:,}"
    ),
    "wild tail": lambda naming, index: (
        f"the costs of projections have so heavy a tail (index {index:.1f}) that controls of it mislead"
    ),
    "rough errors": lambda naming, rough, of: (
        f"{'the error is' if of == 1 else f'{rough} of {of} errors are'} rough, since few projections carry most of "
        "the cost: use more projections"
    ),
    "coarse sketch": _coarse,
    "private": lambda naming, name, epsilon, delta, off: (
        f"{name!r} was noised for privacy (ε = {epsilon:g}, δ = {delta:g}): that moves its distances by up to about "
        f"{off:.2g}"
    ),
    "farther again": lambda naming, step, nearest, end: (
        f"nearest after {say_count(step, 'step')}, at {nearest:.4g}, and {end:.4g} at the end: use a smaller "
        f"{naming('learning_rate')}, or fewer {naming('steps')}"
    ),
    # What was compared.
    "names matched": lambda naming: "classes are matched by name",
    "targets count": lambda naming: "targets count as numbers",
    "unknown classes": lambda naming, classes, points, n_points: (
        f"classes that the reference does not have: {join_names(classes, 5)} ({points:,} of "
        f"{say_count(n_points, 'point')})"
    ),
    "halves compared": lambda naming, size: f"halves of {say_count(size, 'point')} were compared",
    "rows repeat": lambda naming, repeated, rows: (
        f"{repeated:,} of {say_count(rows, 'row')} repeat others exactly: {_say_dependent(naming)}"
    ),
    "few groups": lambda naming, groups: (
        f"{say_count(groups, 'group')} of rows: with so few, a difference is hardly found; have ten or more"
    ),
    "neighbours alike": lambda naming, column, correlation: (
        f"neighbouring rows are alike (correlation {correlation:.2f} in {column}): {_say_dependent(naming)}"
    ),
    "errors at most": lambda naming, names: (
        f"single sketches bound errors and noise from above, and keep no parts to estimate them: {join_names(names)}"
    ),
    "labels in sketches": lambda naming: (
        "these sketches have labels in them: shares are right only where no class is in two sources; sketch features "
        "alone otherwise"
    ),
    "below floor": lambda naming, by: f"{by:.4g} below the sampling floor, which counts as 0",
}
