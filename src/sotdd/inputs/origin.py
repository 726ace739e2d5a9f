"""Where a dataset comes from: what was decided about it when it was opened, and what its reader should know."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sotdd.basics.remarks import Remark, Remarks, join_remarks

Names = tuple[str, ...]

# What a column holds that is left out, or the number of categories that it has more than.
Why: TypeAlias = Literal["id", "numbers", "date", "text", "list", "image", "empty", "other"] | int


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
        The columns of the table that are no features, and why.
    one_hot
        The columns that became one feature per value, and the names of these: ``column=value``.
    remarks
        What else a reader should know.
    target
        The numbers behind the classes, where these are bins.
    rows_lost, rows_read
        How many rows were left out for a missing value or label, and how many there were; zero where none was.

    Examples
    --------
    >>> from sotdd.inputs.origin import Origin
    >>> Origin(left_out={"signup": "date", "note": 20}).said
    (Remark: left out: signup (date), note (text, more than 20 values),)
    """

    labelled: bool = True
    left_out: Mapping[str, Why] = field(default_factory=dict)
    one_hot: Mapping[str, Names] = field(default_factory=dict)
    remarks: Remarks = ()
    target: Target | None = None
    rows_lost: int = 0
    rows_read: int = 0

    @property
    def said(self) -> Remarks:
        """All remarks, of which the columns that were left out are one."""
        left_out = [Remark("columns left out", columns=dict(self.left_out))] if self.left_out else []
        return (*left_out, *self.remarks)

    def take(self, rows: NDArray[np.integer]) -> Origin:
        """The same for some of the rows."""
        if self.target is None:
            return self
        return replace(self, target=Target(self.target.values[rows], self.target.bins))

    def also(self, *remarks: Remark) -> Origin:
        """The same with further remarks."""
        return replace(self, remarks=join_remarks(self.remarks, remarks)) if remarks else self


# Of datasets about which nothing had to be decided.
PLAIN = Origin()
# Of datasets without labels.
UNLABELLED = Origin(labelled=False)
