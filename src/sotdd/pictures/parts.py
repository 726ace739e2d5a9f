"""What pages are made of: pieces of HTML, with every text escaped; cards; and the page that begins with a verdict."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from html import escape
from importlib.resources import files
from string import Template
from typing import Any, Literal

from sotdd.basics.text import shown
from sotdd.basics.version import __version__
from sotdd.results.distance import Distance

Tone = Literal["good", "bad", "unsure", "plain"]

_MARKS = {"good": "✓", "bad": "!", "unsure": "?", "plain": "•"}

# The most letters of a name on a page.
_LONGEST_NAME = 40


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
class VerdictPage:
    """A page that begins with a verdict in one sentence: of a gate, a test or an explanation. It needs no script.

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

    def html(self, now: datetime) -> str:
        """The page as one file."""
        label = "Python code that gives these numbers again"
        code = f'  <pre tabindex="0" aria-label="{label}"><code>{escape(self.code)}</code></pre>' if self.code else ""
        return Template(part("verdict.html")).substitute(
            title=escape(self.title),
            subtitle=escape(self.subtitle),
            style=_style(),
            when=f"{now:%Y-%m-%dT%H:%M:%SZ}",
            date=dated(now),
            tone=self.tone,
            mark=_MARKS[self.tone],
            sentence=f"<span>{escape(self.sentence)}</span>",
            details="\n".join(f"  <p>{escape(line)}</p>" for line in self.details),
            sections="\n".join(section.html(number) for number, section in enumerate(self.sections)),
            settings=settings_list({"date": dated(now), "sotdd": __version__, **self.settings}),
            code=code,
            data=as_script(dict(self.data)),
        )


def part(name: str) -> str:
    """A file of the page: its HTML, its style or a script."""
    return files("sotdd.pictures").joinpath("page_parts", name).read_text(encoding="utf-8")


def table(
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


def scrolling(content: str, label: str) -> str:
    """What may be wider or longer than its place, which takes the focus so that keys can move it."""
    return f'<div class="scroll" tabindex="0" role="region" aria-label="{escape(label)}">{content}</div>'


def stacking(content: str, label: str) -> str:
    """A table whose rows become cards of their own on a phone, so that nothing is out of sight."""
    return f'<div class="stack">{scrolling(content, label)}</div>'


def settings_list(settings: Mapping[str, str]) -> str:
    """Names and values, side by side where there is room."""
    return "\n".join(f"<div><dt>{escape(name)}</dt><dd>{escape(value)}</dd></div>" for name, value in settings.items())


def as_script(data: object) -> str:
    """JSON that is safe inside a script element: nothing in it ends the element or begins another."""
    text = json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    for letter in "<>&\u2028\u2029":
        text = text.replace(letter, f"\\u{ord(letter):04x}")
    return text


def short_names(names: Sequence[str]) -> list[str]:
    """Names as a page shows them: of paths the last part, unless two have the same; long ones are cut in the middle.

    Examples
    --------
    >>> short_names(["data/train.csv::label=kind", "2024/a.csv", "2025/a.csv", "a/b"])
    ['train.csv', '2024/a.csv', '2025/a.csv', 'a/b']
    """
    paths = [_named_or_path(name) for name in names]
    last = [re.split(r"[/\\]", path.rstrip("/\\"))[-1] for path in paths]
    ends = [end if "." in end else path for end, path in zip(last, paths, strict=True)]
    both = [end if ends.count(end) == 1 else path for end, path in zip(ends, paths, strict=True)]
    short = [shown(name, _LONGEST_NAME) for name in both]
    again = Counter(short)
    return [name if again[name] == 1 else f"{name} ({place})" for place, name in enumerate(short, 1)]


def _named_or_path(name: str) -> str:
    """The name that a source gives itself, or its path without options."""
    path, _, options = name.partition("::")
    named = re.search(r"(?:^|,)name=([^,]+)", options)
    return named[1] if named else path


def sentence(text: str) -> str:
    """Words as a sentence."""
    return text[:1].upper() + text[1:] + ("" if text.endswith(".") else ".")


def dated(now: datetime) -> str:
    """A date as people write it, with the time of Greenwich."""
    return f"{now.day} {now:%B %Y, %H:%M} UTC"


def reliability(distance: Distance) -> list[str]:
    """Noise and roughness, as a terminal shows them."""
    said = []
    if distance.noise is not None:
        close = "borderline, " if distance.noise.borderline else ""
        within = "within" if distance.within_noise else "beyond"
        said.append(f"{within} noise ({close}floor {distance.noise.value:.3g})")
    if distance.unreliable is not None:
        said.append(f"rough: {distance.unreliable}")
    return said


def aspects_section(aspects: Mapping[str, float], about: str = "") -> list[Section]:
    """What stands out in a test; nothing where it looks at one thing only."""
    if len(aspects) < 2:
        return []
    rows = [(name, f"{value:.3g}") for name, value in sorted(aspects.items(), key=lambda item: item[1])]
    note = (
        "Order 1 sees small shifts of everything, order 2 what few points do; labels are where classes lie. Single "
        "p-values are not corrected for there being several."
    )
    body = table(("what is compared", "p-value by itself"), rows, numbers=(1,))
    return [Section("What stands out", body, f"{about}{note}")]


def _style() -> str:
    """The style of all pages, dark where the reader's system is; paper is always light."""
    style = part("page.css")
    dark = re.search(r':root\[data-theme="dark"\] (\{.*?\n\})', style, re.DOTALL)
    assert dark is not None
    of_verdict = "{ .good { --tone: #6cc495; } .bad { --tone: #f2a765; } .unsure, .plain { --tone: #a3b0bd; } "
    return (
        f"{style}\n{part('verdict.css')}\n@media screen and (prefers-color-scheme: dark) {of_verdict}:root {dark[1]} }}"
    )
