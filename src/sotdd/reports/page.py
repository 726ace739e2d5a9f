"""Pages: one file of HTML each, made from the templates beside this module, with every name escaped."""

from __future__ import annotations

import math
import os
from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from datetime import UTC, datetime
from functools import cache
from pathlib import Path, PureWindowsPath
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from sotdd.basics import __version__
from sotdd.basics.errors import SotddError, require
from sotdd.basics.files import check_path, refuse_unwritable, write_whole
from sotdd.basics.remarks import Tone as VerdictTone
from sotdd.basics.text import join_names, quote, say_count, show, with_error
from sotdd.compute.distance import gather_remarks
from sotdd.compute.matrix import DistanceMatrix
from sotdd.inputs.sources import parse_source
from sotdd.measure.changes import Changes, say_chance, say_share
from sotdd.measure.explanation import (
    Explanation,
    list_cells,
    say_changes,
    say_lost_classes,
    say_parts,
)
from sotdd.projections.projections import Projections
from sotdd.projections.scaler import Scaler
from sotdd.reports.datasets import compare_shares, limit_colours, say_unit

if TYPE_CHECKING:
    from jinja2 import Environment

Tone = VerdictTone | Literal["plain"]

# The most letters of a name on a page; squares along an image; classes in a heat map.
_LONGEST_NAME, _MOST_SQUARES, _MOST_CLASSES = 40, 32, 30

# What of a recipe is shown, and under which name.
_RECIPE = {
    "seed": "seed",
    "n_features": "features",
    "directions": "directions",
    "label": "labels",
}


def refuse_page(path: str | os.PathLike[str]) -> Path | str:
    """Refuse a page that could not be made, or not be written, before anything is measured."""
    require("jinja2", "a report", "'sotdd[report]'")
    target = check_path(path)
    name = Path(target)
    if name.suffix.lower() not in (".html", ".htm"):
        raise SotddError(f"cannot write {quote(target)}: the report is a web page; call it {name.stem + '.html'!r}.")
    refuse_unwritable(target)
    return target


def write_page(
    path: str | os.PathLike[str],
    template: str,
    tone: Tone,
    **shown: Any,  # noqa: ANN401  # what a template shows
) -> Path | str:
    """Write a page, whole or not at all; returns its path.

    Parameters
    ----------
    path
        Where to write it.
    template
        The file among the templates that extends ``page.html``.
    tone
        Whether the verdict is good, bad, unsure, or only plain news.
    shown
        What the template shows. All pages take ``title`` (None for the question that the page answers),
        ``settings`` by name, in words, and ``data``, the numbers as JSON values.
    """
    target = refuse_page(path)
    page = _environment().get_template(template).render(tone=tone, now=datetime.now(UTC), **shown)
    write_whole(target, page.encode("utf-8", "backslashreplace"))
    return target


def write_result(result: object) -> str:
    """A result as HTML for the output of a notebook."""
    cells = None
    if isinstance(result, DistanceMatrix):
        cells = [[None if i == j else value for j, value in enumerate(row)] for i, row in enumerate(result.values)]
    template = _environment().get_template("notebook.html")
    return template.render(result=result, kind=type(result).__name__, cells=cells)


@cache
def _environment() -> Environment:
    """The templates, and the words and numbers that they write."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    made = Environment(
        loader=PackageLoader("sotdd.reports"), autoescape=True, undefined=StrictUndefined, extensions=["jinja2.ext.do"],
        trim_blocks=True, lstrip_blocks=True,
    )  # fmt: skip
    made.policies["json.dumps_kwargs"] = {"allow_nan": False, "separators": (",", ":")}
    made.filters |= {"show": show, "sentence": _write_sentence, "span": _write_range, "python": write_python}
    functions: tuple[Callable[..., object], ...] = (
        say_count, say_parts, say_changes, say_lost_classes, say_share, say_chance, say_unit, with_error, join_names,
        list_cells, gather_remarks, find_top, compare_shares, pool_pixels, choose_classes, round_up, say_recipe,
        say_scaling,
    )  # fmt: skip
    made.globals |= {"version": __version__, **{one.__name__: one for one in functions}}
    return made


def _write_sentence(text: object) -> str:
    """A sentence with a capital and a full stop; a remark on a dataset begins with its name, as it is written."""
    said = str(text)
    first = said[:1] if getattr(text, "about", "") else said[:1].upper()
    return first + said[1:] + ("" if said.endswith(".") else ".")


def _write_range(ends: tuple[float, float] | None) -> str:
    """Two numbers as people read them, such as 91,734 or 0.25 or 3e+09; a dash where they are not known."""
    if ends is None:
        return "–"
    return " to ".join(f"{end:,.0f}" if 1000 <= abs(end) < 1e7 else f"{end:.4g}" for end in ends)


def write_python(value: object) -> str:
    """A setting as code: laws of this package with all that they are made of, ``...`` for a user's own objects."""
    if isinstance(value, (np.generic, np.ndarray)):
        value = value.tolist()
    if isinstance(value, (str, int, float, bool, type(None))):
        return repr(value)
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(write_python, value))}]"
    kind = type(value)
    if not is_dataclass(value) or not kind.__module__.startswith("sotdd.projections."):
        return "..."
    settings = ", ".join(f"{part.name}={write_python(getattr(value, part.name))}" for part in fields(value))
    return f"sotdd.projections.{kind.__name__}({settings})"


def pool_pixels(features: Changes) -> list[list[float]]:
    """Shares of pixels as rows of squares, several pixels together in a large image."""
    pixels = features.pixels
    step = -(-max(pixels.shape) // _MOST_SQUARES)
    height, width = (side // step for side in pixels.shape)
    squares = pixels[: height * step, : width * step].reshape(height, step, width, step).sum(axis=(1, 3))
    return list(squares.tolist())


def choose_classes(
    why: Explanation,
) -> tuple[list[Hashable], list[Hashable], list[list[float]], list[tuple[int, int]]]:
    """Of the classes with the largest shares: labels of rows and columns, distances, and where counterparts are."""
    rows, columns = (
        np.sort(np.argsort(-share, kind="stable")[:_MOST_CLASSES]).tolist() for share in why.by_class.shares
    )
    labels = [[side[place] for place in places] for side, places in zip(why.classes, (rows, columns), strict=True)]
    matched = why.counterparts
    framed = [(i, columns.index(matched[row])) for i, row in enumerate(rows) if matched.get(row) in columns]
    return labels[0], labels[1], why.by_class.distances[np.ix_(rows, columns)].tolist(), framed


def find_top(values: Sequence[Sequence[float | None]]) -> float:
    """Where the colours of cells end."""
    return limit_colours(np.array([value for row in values for value in row if value is not None], np.float64))


def round_up(largest: float) -> float:
    """A round number a little above, where a scale ends."""
    least = 1.08 * max(largest, 1e-12)
    power = 10.0 ** math.floor(math.log10(least))
    return next(factor * power for factor in (1, 1.2, 1.6, 2, 2.4, 3.2, 4, 5, 6, 8, 10, 20) if factor * power >= least)


def shorten_names(names: Sequence[str]) -> list[str]:
    """Names as a page shows them: of paths the last part, unless two have the same; long ones are cut in the middle.

    Examples
    --------
    >>> shorten_names(["data/train.csv::label=kind", "2024/a.csv", "2025/a.csv", "a/b"])
    ['train.csv', '2024/a.csv', '2025/a.csv', 'a/b']
    """
    paths = [_name_source(name) for name in names]
    ends = [PureWindowsPath(path).name if PureWindowsPath(path).suffix else path for path in paths]
    both = [end if ends.count(end) == 1 else path for end, path in zip(ends, paths, strict=True)]
    short = [show(name, _LONGEST_NAME) for name in both]
    again = Counter(short)
    return [name if again[name] == 1 else f"{name} ({place})" for place, name in enumerate(short, 1)]


def _name_source(name: str) -> str:
    """The name that a source gives itself, or its path without options; a name that is no source stays."""
    try:
        path, options = parse_source(name)
    except SotddError:
        return name
    return str(options.get("name", path))


def say_recipe(projections: Projections) -> dict[str, str]:
    """What data are seen through: how many projections, of which laws, how scaled, and their fingerprint."""
    recipe = projections.recipe()
    return {
        "projections": f"{projections.n_projections:,}",
        **{name: _say_setting(recipe[key]) for key, name in _RECIPE.items() if key in recipe},
        "scaling": say_scaling(projections.scaler),
        "fingerprint": projections.fingerprint,
    }


def say_scaling(scaler: Scaler | None) -> str:
    """What features are divided by."""
    if scaler is None:
        return "none"
    if isinstance(scaler.scale, float):
        return f"all features by {scaler.scale:.6g}, the pooled spread"
    then = ", then arcsinh" if scaler.arcsinh else ""
    return f"each feature by its own spread, from {scaler.scale.min():.3g} to {scaler.scale.max():.3g}{then}"


def _say_setting(value: object) -> str:
    if isinstance(value, Mapping):
        parts = {key.replace("_", " "): _say_setting(part) for key, part in value.items()}
        return ", ".join([parts.pop("law", "own law"), *(f"{name} {part}" for name, part in parts.items())])
    if isinstance(value, (list, tuple)):
        return " ".join(map(_say_setting, value))
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:g}" if isinstance(value, float) else f"{value:,}" if isinstance(value, int) else str(value)
