"""The skeleton of all pages: a verdict in one sentence, cards below it, settings and code; and pieces of HTML."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from html import escape
from importlib.resources import files
from pathlib import Path, PureWindowsPath
from string import Template
from typing import Any, Literal

from sotdd.basics import __version__
from sotdd.basics.errors import SotddError
from sotdd.basics.files import check_path, refuse_unwritable, write_whole
from sotdd.basics.text import quote, show
from sotdd.compute.distance import Distance
from sotdd.inputs.sources import SourceText
from sotdd.projections.recipe import Projections
from sotdd.projections.scaler import Scaler

Tone = Literal["good", "bad", "unsure", "plain"]

_MARKS = {"good": "✓", "bad": "!", "unsure": "?", "plain": "•"}
_POLICY = "style-src 'unsafe-inline'; img-src data:"
_POLICY_OF_SCRIPTS = f"script-src 'unsafe-inline'; {_POLICY} blob:"

# The most letters of a name on a page.
_LONGEST_NAME = 40

# What of a recipe is shown, and under which name.
_RECIPE = {
    "seed": "seed",
    "n_features": "features",
    "directions": "directions",
    "label": "labels",
}


@dataclass(frozen=True)
class Section:
    """A card of the page: its title, a line that helps to read it, and its HTML."""

    title: str
    body: str
    note: str = ""

    def html(self, number: int) -> str:
        """The card, with a name for those who cannot see it."""
        note = f'  <p class="note">{escape(self.note)}</p>\n' if self.note else ""
        title = f'  <h2 id="card-{number}">{escape(self.title)}</h2>\n'
        return f'<section aria-labelledby="card-{number}">\n{title}{note}  {self.body}\n</section>'


@dataclass(frozen=True)
class Page:
    """A page that begins with a verdict in one sentence. Texts are escaped, so nothing in them is read as HTML.

    Attributes
    ----------
    title, subtitle
        Above the verdict.
    tone
        Whether the verdict is good, bad, unsure, or only plain news.
    sentence
        The verdict.
    details
        Sentences below it.
    sections
        The cards, in order.
    settings
        By name, in words.
    code
        Python that gives the same numbers again; empty for none.
    data
        The numbers, for programs.
    charts, scripts
        HTML above the cards that scripts draw in, and those scripts; most pages need none.
    """

    title: str
    subtitle: str
    tone: Tone
    sentence: str
    details: Sequence[str]
    sections: Sequence[Section]
    settings: Mapping[str, str] = field(default_factory=dict)
    code: str = ""
    data: Mapping[str, Any] = field(default_factory=dict)
    charts: str = ""
    scripts: Sequence[str] = ()

    def html(self, now: datetime) -> str:
        """The page as one file."""
        settings = {"sotdd": __version__, **self.settings}
        label = "Python code that gives these numbers again"
        code = f'  <pre tabindex="0" aria-label="{label}"><code>{escape(self.code)}</code></pre>' if self.code else ""
        button = '<button type="button" id="theme" aria-pressed="false">Dark</button>'
        return Template(read_part("page.html")).substitute(
            policy=_POLICY_OF_SCRIPTS if self.scripts else _POLICY,
            title=escape(self.title),
            subtitle=escape(self.subtitle),
            style=read_part("page.css"),
            when=f"{now:%Y-%m-%dT%H:%M:%SZ}",
            date=f"{now.day} {now:%B %Y, %H:%M} UTC",
            button=button if self.scripts else "",
            tone=self.tone,
            mark=_MARKS[self.tone],
            sentence=escape(self.sentence),
            details="\n".join(f"  <p>{escape(line)}</p>" for line in self.details),
            charts=self.charts,
            sections="\n".join(section.html(number) for number, section in enumerate(self.sections)),
            settings="\n".join(
                f"<div><dt>{escape(name)}</dt><dd>{escape(value)}</dd></div>" for name, value in settings.items()
            ),
            code=code,
            data=as_script(dict(self.data)),
            scripts="\n".join(f"<script>{script}</script>" for script in self.scripts),
        )

    def write(self, path: Path) -> Path:
        """Write it, whole or not at all; returns the path."""
        write_whole(path, self.html(datetime.now(UTC)).encode("utf-8", "backslashreplace"))
        return path


def refuse_page(path: str | os.PathLike[str]) -> Path:
    """Refuse a page that could not be written, or would be taken for something else, before anything is measured."""
    target = check_path(path)
    if target.suffix.lower() not in (".html", ".htm"):
        raise SotddError(f"cannot write {quote(target)}: the report is a web page; call it {target.stem + '.html'!r}.")
    refuse_unwritable(target)
    return target


def read_part(name: str) -> str:
    """A file that pages are made of: HTML, the style or a script."""
    return files("sotdd.reports").joinpath("page_parts", name).read_text(encoding="utf-8")


def make_table(
    header: Sequence[str], rows: Iterable[Sequence[str]], *, numbers: Collection[int] = (), marks: Sequence[str] = ()
) -> str:
    """A table whose first column names its rows; ``numbers`` are columns aligned right, ``marks`` classes of rows."""
    side = [' class="number"' if column in numbers else "" for column in range(len(header))]
    named = [f' data-name="{escape(cell)}"' for cell in header]  # which a phone writes before the cell
    head = "".join(f'<th scope="col"{side[place]}>{escape(cell)}</th>' for place, cell in enumerate(header))
    body = []
    for number, row in enumerate(rows):
        mark = f' class="{escape(marks[number])}"' if number < len(marks) and marks[number] else ""
        cells = "".join(f"<td{side[place]}{named[place]}>{escape(cell)}</td>" for place, cell in enumerate(row[1:], 1))
        body.append(f'<tr{mark}><th scope="row">{escape(row[0])}</th>{cells}</tr>')
    return f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(body)}</tbody></table>"


def scroll(content: str, label: str, *, stacks: bool = False) -> str:
    """What may be wider or longer than its place, which takes the focus so that keys can move it.

    A table that ``stacks`` has rows that become cards of their own on a phone, so that nothing is out of sight.
    """
    region = f'<div class="scroll" tabindex="0" role="region" aria-label="{escape(label)}">{content}</div>'
    return f'<div class="stack">{region}</div>' if stacks else region


def as_script(data: object) -> str:
    """JSON that is safe inside a script element: nothing in it ends the element or begins another."""
    text = json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    for letter in "<>&\u2028\u2029":
        text = text.replace(letter, f"\\u{ord(letter):04x}")
    return text


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
        source = SourceText.parse(name)
    except SotddError:
        return name
    return str(source.options.get("name", source.path))


def sentence(text: str) -> str:
    """Words as a sentence."""
    return text[:1].upper() + text[1:] + ("" if text.endswith(".") else ".")


def say_reliability(distance: Distance) -> list[str]:
    """Noise and roughness, as a terminal shows them."""
    said = []
    if distance.noise is not None:
        close = "borderline, " if distance.noise.borderline else ""
        within = "within" if distance.within_noise else "beyond"
        said.append(f"{within} noise ({close}floor {distance.noise.value:.3g})")
    if distance.unreliable is not None:
        said.append(f"rough: {distance.unreliable}")
    return said


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
    return f"each feature by its own spread, from {scaler.scale.min():.3g} to {scaler.scale.max():.3g}"


def _say_setting(value: object) -> str:
    if isinstance(value, Mapping):
        parts = {key.replace("_", " "): _say_setting(part) for key, part in value.items()}
        return ", ".join([parts.pop("law", "own law"), *(f"{name} {part}" for name, part in parts.items())])
    if isinstance(value, (list, tuple)):
        return " ".join(map(_say_setting, value))
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:g}" if isinstance(value, float) else f"{value:,}" if isinstance(value, int) else str(value)
