"""A page that begins with a verdict in one sentence: of a gate, a test or an explanation. It needs no script."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from html import escape
from string import Template
from typing import Any, Literal

from sotdd.basics.version import __version__
from sotdd.pictures.html_parts import as_script, part, settings_list

Tone = Literal["good", "bad", "unsure", "plain"]

_MARKS = {"good": "✓", "bad": "!", "unsure": "?", "plain": "•"}


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
    """Everything that such a page shows.

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


def dated(now: datetime) -> str:
    """A date as people write it, with the time of Greenwich."""
    return f"{now.day} {now:%B %Y, %H:%M} UTC"


def _style() -> str:
    """The style of all pages, dark where the reader's system is; paper is always light."""
    style = part("page.css")
    dark = re.search(r':root\[data-theme="dark"\] (\{.*?\n\})', style, re.DOTALL)
    assert dark is not None
    of_verdict = "{ .good { --tone: #6cc495; } .bad { --tone: #f2a765; } .unsure, .plain { --tone: #a3b0bd; } "
    return (
        f"{style}\n{part('verdict.css')}\n@media screen and (prefers-color-scheme: dark) {of_verdict}:root {dark[1]} }}"
    )
