"""Where a dataset comes from: what was decided about it when it was opened, and what its reader should know."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from sotdd.basics.text import counted

if TYPE_CHECKING:
    from sotdd.inputs.data import LabelledData

# How the reason begins for which a column of too many categories is left out.
TOO_MANY = "text, more than"
# Lines list this many columns.
_SHOWN = 8


@dataclass(frozen=True, eq=False)
class Target:
    """Labels that are numbers, as of a regression, which are cut into classes.

    Attributes
    ----------
    values
        (n,) the numbers themselves.
    bins
        How many classes were asked for.
    """

    values: NDArray[np.float64]
    bins: int


@dataclass(frozen=True, eq=False)
class Origin:
    """What was decided when a dataset was opened.

    Attributes
    ----------
    labelled
        Whether there are labels, or one class was asked for; False where a source simply had none.
    left_out
        The columns of the table that are no features, and what they hold.
    one_hot
        The columns that became one feature per value, called ``column=value``.
    remarks
        What else a reader should know.
    target
        The numbers behind the classes, where these are bins.
    rows_lost, rows_read
        How many rows were left out for a missing value or label, and how many there were; zero where none was.

    Examples
    --------
    >>> from sotdd.inputs.origin import Origin
    >>> Origin(left_out={"signup": "date", "note": "text"}).said
    ('left out: signup (date), note (text)',)
    """

    labelled: bool = True
    left_out: Mapping[str, str] = field(default_factory=dict)
    one_hot: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()
    target: Target | None = None
    rows_lost: int = 0
    rows_read: int = 0

    @property
    def said(self) -> tuple[str, ...]:
        """All remarks, of which the columns that were left out are one."""
        return (*([left_out_line(self.left_out)] if self.left_out else []), *self.remarks)

    def take(self, rows: NDArray[np.integer]) -> Origin:
        """The same for some of the rows."""
        if self.target is None:
            return self
        return replace(self, target=Target(self.target.values[rows], self.target.bins))

    def also(self, *remarks: str) -> Origin:
        """The same with further remarks."""
        return replace(self, remarks=tuple(dict.fromkeys([*self.remarks, *remarks])))


# Of datasets about which nothing had to be decided.
PLAIN = Origin()
# Of datasets without labels.
UNLABELLED = Origin(labelled=False)


def left_out_line(columns: Mapping[str, str]) -> str:
    """The one line that names the columns that were left out, and what they hold."""
    shown = [f"{column or 'a column without a name'} ({why})" for column, why in list(columns.items())[:_SHOWN]]
    more = len(columns) - len(shown)
    return f"left out: {', '.join(shown)}" + (f" and {counted(more, 'more column')}" if more > 0 else "")


def remarks_of_sides(sides: Sequence[LabelledData]) -> tuple[str, ...]:
    """What is to be said of several datasets: once where it goes for all of them, or else with the name of each."""
    several = len({side.name for side in sides}) > 1
    shared = [remark for remark in sides[0].origin.said if all(remark in side.origin.said for side in sides)]
    own = [
        f"{side.name}: {remark}" if several else remark
        for side in sides
        for remark in side.origin.said
        if remark not in shared
    ]
    return tuple(dict.fromkeys([*shared, *own]))
