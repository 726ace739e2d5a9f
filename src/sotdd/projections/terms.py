"""Sampled label terms: what a class's projected points add to each of them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace
from itertools import pairwise
from typing import Any, ClassVar, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from sotdd.basics.errors import OutOfRange, SotddError, as_array, check_limit

Rows = NDArray[np.float32]  # (B, n): one row per projection, points grouped by class
Doubles = NDArray[np.float64]

# From this many values on, rows and classes are sorted by their digits.
_LONG_ROW = 1024


@dataclass(frozen=True, eq=False)
class LabelTerms:
    """How labels enter, as a label law samples it: a point becomes ``weight * t + the term of its class``.

    For terms of your own, write a subclass with one of two methods. ``evaluate`` maps each projected value to a number
    whose mean over a class is its term: such terms are ``additive``. ``class_terms`` computes them in any other way.

    Attributes
    ----------
    weights
        (B,) what the feature projection t is multiplied by.
    coefficients
        (B, q) whatever else was sampled.
    additive
        Whether terms are means of ``evaluate``: their sums over classes add up over parts of a dataset, as streams,
        builders and private sketches need.
    differentiable
        Whether ``evaluate_tensor`` does the same with torch tensors, as the loss needs.
    polynomial
        Whether ``coefficients`` are those of polynomials in t, lowest order first: then means over label terms follow
        from class moments, as control variates need.
    binned
        Whether they are those of means over equal bins of a class's sorted values.
    """

    weights: Doubles
    coefficients: Doubles
    law: str = field(default="a label law", kw_only=True)  # whose they are, for errors

    additive: ClassVar[bool] = False
    differentiable: ClassVar[bool] = False
    polynomial: ClassVar[bool] = False
    binned: ClassVar[bool] = False

    @property
    def limit(self) -> float:
        """Where the values that polynomials are taken of are cut: infinite where they are not."""
        return math.inf

    def evaluate(self, values: NDArray[np.floating]) -> NDArray[np.floating]:
        """Map projected values (B, m) to the numbers (B, m) whose mean over a class is its term."""
        raise NotImplementedError(f"{type(self).__name__} has neither evaluate nor class_terms: write one of the two.")

    def evaluate_tensor(self, values: Any) -> Any:  # noqa: ANN401  # torch is loaded late
        """The same with tensors, differentiable."""
        raise NotImplementedError(f"{type(self).__name__} says that it is differentiable: write evaluate_tensor.")

    def class_terms(self, rows: Rows, offsets: NDArray[np.int64]) -> NDArray[np.floating]:
        """The term (B, C) of each class, which offsets (C + 1,) bound; may reorder the values within a class."""
        return self.class_sums(rows, offsets) / np.diff(offsets)

    def class_sums(self, rows: Rows, offsets: NDArray[np.int64]) -> Doubles:
        """Sums (B, C) of ``evaluate`` over each class, which add up over parts of a dataset."""
        return np.add.reduceat(self.point_terms(rows), offsets[:-1], axis=1)

    def point_terms(self, rows: NDArray[np.floating]) -> Doubles:
        """What ``evaluate`` returns, in float64, once it is checked."""
        return self.check_result(self.evaluate(_show(rows)), rows.shape, rows, "evaluate")

    def describe_bad(self, name: str, largest: float, line: int, projection: int) -> SotddError:
        """Say why the term at this line is not finite or too large; ``largest`` is the size of the largest t."""
        return SotddError(
            f"{self.law} made a term of dataset {name!r} that is not finite in projection {projection:,}: check how it "
            "computes class terms."
        )

    def part(self, rows: slice) -> Self:
        """Some consecutive projections."""
        return replace(self, weights=self.weights[rows], coefficients=self.coefficients[rows])

    def check_result(self, result: object, shape: tuple[int, ...], rows: NDArray[np.floating], method: str) -> Doubles:
        """Hold what a method made of rows to finite numbers of this shape, and return them in float64."""
        found = np.asarray(result)
        if found.shape != shape or found.dtype.kind not in "iuf":
            raise SotddError(
                f"{method} of {self.law} returned {found.dtype} of shape {found.shape}: expected real numbers of shape "
                f"{shape}, one row per projection."
            )
        if not self.polynomial and not np.isfinite(found).all() and np.isfinite(rows).all():
            raise SotddError(f"{method} of {self.law} made terms of finite values that are not finite: check it.")
        return found.astype(np.float64, copy=False)

    @classmethod
    def check(cls, terms: object, law: str, n_projections: int) -> Self:
        """Hold what a label law sampled, perhaps a user's own, to finite float64 of the right shapes."""
        if not isinstance(terms, cls) or np.shape(terms.weights)[:1] != (n_projections,):
            raise SotddError(
                f"the label law {law} must draw Polynomials, Quantiles, Summaries or other LabelTerms, one row for "
                f"each of the {n_projections} projections asked for: check its draw method."
            )
        weights, numbers = as_array(terms.weights, "weights"), as_array(terms.coefficients, "coefficients")
        shapes = weights.ndim == 1 and numbers.ndim == 2 and len(numbers) == n_projections and numbers.size > 0
        if not shapes or any(
            part.dtype.kind not in "iuf" or not np.isfinite(part).all() for part in (weights, numbers)
        ):
            raise SotddError(
                f"the label law {law} drew weights of shape {weights.shape} and coefficients of shape "
                f"{numbers.shape}: expected finite numbers, one weight and one row per projection."
            )
        checked = weights.astype(np.float64), numbers.astype(np.float64, order="C")
        return replace(terms, weights=checked[0], coefficients=checked[1], law=f"the label law {law}")

    @classmethod
    def join(cls, parts: Sequence[Self]) -> Self:
        """Those of consecutive blocks together, which must be of one kind; polynomials are padded with zeros."""
        first, widths = parts[0], {part.coefficients.shape[-1] for part in parts}
        if len(parts) == 1:
            return first
        shared = [each.name for each in fields(first) if each.name not in ("weights", "coefficients")]
        alike = all(
            type(part) is type(first) and all(getattr(part, name) == getattr(first, name) for name in shared)
            for part in parts
        )
        if not alike or (len(widths) > 1 and not first.polynomial):
            raise SotddError(
                "a label law must draw the same kind of terms, with the same cut or summary function, every time: put "
                "what is random into the coefficients."
            )
        weights, done = np.concatenate([part.weights for part in parts]), 0
        coefficients = np.zeros((*weights.shape, max(widths)))
        for part in parts:
            coefficients[done : done + len(part.weights), ..., : part.coefficients.shape[-1]] = part.coefficients
            done += len(part.weights)
        return replace(first, weights=weights, coefficients=coefficients)


def find_class_terms(rows: Rows, offsets: NDArray[np.int64], terms: LabelTerms) -> Doubles:
    """The label term (B, C) of every class in every projection; may reorder the values within a class."""
    return terms.check_result(terms.class_terms(rows, offsets), (len(rows), len(offsets) - 1), rows, "class_terms")


def sort_classes(rows: Rows, offsets: NDArray[np.int64]) -> None:
    """Sort the values of each class within every row, in place: few by NumPy, many by their digits."""
    from sotdd.projections.class_kernels import sort_digits

    spare, counts = np.empty(rows.shape[1], np.int32), np.empty((3, 2048), np.uint32)
    for first, last in pairwise(offsets.tolist()):
        if last - first < _LONG_ROW:
            rows[:, first:last].sort(axis=1)
        else:
            sort_digits(rows.view(np.int32), first, last, spare, counts)


def describe_overflow(name: str, projection: int) -> SotddError:
    """Features that float32 products cannot hold."""
    return OutOfRange(
        f"features of dataset {name!r} are too large for float32 products (projection {projection:,} is not finite)",
        use={"scale": "pooled"},
    )


def _show(rows: NDArray[np.floating]) -> NDArray[np.floating]:
    """The same rows, read-only."""
    shown = rows.view()
    shown.flags.writeable = False
    return shown


@dataclass(frozen=True, eq=False)
class Polynomials(LabelTerms):
    """A class's term is the mean of a polynomial over its projected points.

    A data point's projection is ``weight * t + term of its class``. The sums of the polynomial
    over each class add up over parts of a dataset, so this kind of term can be merged.

    Attributes
    ----------
    coefficients
        (B, D + 1) of the polynomials, lowest order first.
    cut
        The polynomial sees t cut to ±cut, so that no tail can make a class's term; None for t as it is.
        The feature itself is never cut.
    """

    cut: float | None = None

    additive: ClassVar[bool] = True
    differentiable: ClassVar[bool] = True
    polynomial: ClassVar[bool] = True

    def __post_init__(self) -> None:
        """Check the cut."""
        check_limit(self.cut, "cut")

    @property
    def limit(self) -> float:
        """The cut as a number: infinite where there is none."""
        return math.inf if self.cut is None else self.cut

    @property
    def degrees(self) -> NDArray[np.int64]:
        """(B,) the degree of each polynomial: where its last non-zero coefficient is."""
        used = self.coefficients != 0
        last = used.shape[1] - 1 - np.argmax(used[:, ::-1], axis=1)
        return np.where(used.any(axis=1), last, 0)

    def evaluate(self, values: NDArray[np.floating]) -> Doubles:
        """By Horner's rule, in float64."""
        cut = np.clip(values, -self.limit, self.limit).astype(np.float64, copy=False)
        result = np.zeros(cut.shape)
        for column in self.coefficients.T[::-1]:
            result *= cut
            result += column[:, None]
        return result

    def evaluate_tensor(self, values: Any) -> Any:  # noqa: ANN401
        """By Horner's rule."""
        cut = values.clamp(-self.limit, self.limit)
        columns = values.new_tensor(self.coefficients).unsqueeze(2).unbind(1)  # from the lowest order, (B, 1) each
        result = columns[-1].expand_as(cut)
        for column in reversed(columns[:-1]):
            result = column.addcmul(result, cut)
        return result

    def point_terms(self, rows: NDArray[np.floating]) -> Doubles:
        """By a compiled loop, where values are as points are projected."""
        from sotdd.projections.class_kernels import evaluate_polynomials

        if rows.dtype != np.float32:
            return super().point_terms(rows)
        values = np.empty(rows.shape)
        evaluate_polynomials(rows, self.coefficients, self.limit, values)
        return values

    def describe_bad(self, name: str, largest: float, line: int, projection: int) -> SotddError:
        """Name the order that is too high for such values."""
        order = int(self.degrees[line])
        return OutOfRange(
            f"class moments of dataset {name!r} overflow: order {order} of projected values as large as {largest:.3g} "
            f"(projection {projection:,}). Use scale='pooled', bring outliers in, or take lower orders, such as "
            "moments=sotdd.projections.UniformOrders(4)."
        )


@dataclass(frozen=True, eq=False)
class Quantiles(LabelTerms):
    """A class's term is a linear functional of its quantile function, by means over K equal bins.

    With q_k the mean of the class's projected points over the k-th of K bins of equal probability, the
    term is Σ_k coefficient_k q_k; see `ClassQuantiles`.

    Attributes
    ----------
    coefficients
        (B, K) of the bins, lowest first.
    """

    binned: ClassVar[bool] = True

    def class_terms(self, rows: Rows, offsets: NDArray[np.int64]) -> Doubles:
        """Sort each class, and take means over its bins."""
        from sotdd.projections.class_kernels import quantile_terms

        terms = np.empty((len(rows), len(offsets) - 1))
        sort_classes(rows, offsets)
        quantile_terms(rows, offsets, self.coefficients, terms)
        return terms

    def describe_bad(self, name: str, largest: float, line: int, projection: int) -> SotddError:
        """They are means of projected values: these are at fault."""
        return describe_overflow(name, projection)


class ClassSummary(Protocol):
    """Summarises the projected points of one class, (B, m), into one number per projection, (B,)."""

    def __call__(self, values: Rows, coefficients: Doubles, /) -> NDArray[np.floating]:
        """Summarise; row l of ``coefficients`` (B, q) belongs to row l of ``values``."""


@dataclass(frozen=True, eq=False)
class Summaries(LabelTerms):
    """A class's term is any function of its projected points: the general case, called class by class.

    Attributes
    ----------
    summary
        The function of the points and the coefficients, the same for every draw.
    """

    summary: ClassSummary

    def __post_init__(self) -> None:
        """Check the function."""
        if not callable(self.summary):
            raise SotddError(f"the summary of a label law is a {type(self.summary).__name__}: expected a function.")

    def class_terms(self, rows: Rows, offsets: NDArray[np.int64]) -> Doubles:
        """Call the function on the points of each class, which it sees read-only."""
        classes = [_show(rows[:, first:last]) for first, last in pairwise(offsets)]
        found = [self.summary(values, self.coefficients) for values in classes]
        return np.stack([self.check_result(one, (len(rows),), rows, "the summary function") for one in found], axis=1)
