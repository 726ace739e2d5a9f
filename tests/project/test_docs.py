"""The pages: what they show runs, what they point to is there, and the API page has every public name."""

import ast
import doctest
import re
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

import sotdd

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
EXAMPLES = sorted((ROOT / "examples" / "gallery").glob("plot_*.py"))
MADE = {DOCS / "gallery", DOCS / "generated"}  # by building the site
PAGES = sorted(
    [page for page in DOCS.rglob("*.md") if not MADE & set(page.parents)]
    + [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")]
)

BLOCK = re.compile(r"^```([^\n`]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\(([^)#\s]+)(?:#[^)]*)?\)")
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def named(page):
    return str(page.relative_to(ROOT))


def blocks(page, language):
    return [code for kind, code in BLOCK.findall(page.read_text(encoding="utf-8")) if kind == language]


def examples(code):
    return doctest.DocTestParser().get_examples(code)


def test_there_are_pages_and_examples():
    assert len(PAGES) > 30
    assert 8 <= len(EXAMPLES) <= 12
    jobs = {"transfer", "choosing", "synthetic", "drift", "augmentation", "catalog"}
    jobs |= {"sketch", "cluster", "federated", "flow", "own-law", "tables", "notebook"}
    assert {page.stem for page in (DOCS / "guides").glob("*.md")} == {"index"} | jobs


@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page, "python")], ids=named)
def test_python_is_python(page):
    """These blocks are excerpts, with names of the reader's own; those with prompts run below."""
    for code in blocks(page, "python"):
        if code.startswith(">>>"):
            for example in examples(code):
                compile(example.source, named(page), "exec")
        else:
            compile(code, named(page), "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)


class Nearly(doctest.OutputChecker):
    """Takes numbers for the same that differ by a thousandth: last digits may depend on the machine."""

    NUMBER = re.compile(r"\d+\.\d+")

    def check_output(self, want, got, flags):
        if super().check_output(want, got, flags):
            return True
        ours, theirs = (np.array(self.NUMBER.findall(text), float) for text in (want, got))
        if ours.shape != theirs.shape or not np.allclose(ours, theirs, rtol=2e-3):
            return False
        return super().check_output(self.NUMBER.sub("#", want), self.NUMBER.sub("#", got), flags)


SESSIONS = [
    pytest.param(page, marks=pytest.mark.slow) if page.stem in ("drift", "sketch", "tables") else page
    for page in PAGES
    if blocks(page, "pycon")
]


@pytest.mark.parametrize("page", SESSIONS, ids=named)
def test_what_pages_show_is_what_runs(page, tmp_path, monkeypatch):
    """All blocks of a page are one session, in an empty folder."""
    monkeypatch.chdir(tmp_path)
    shown = [example for code in blocks(page, "pycon") for example in examples(code)]
    session = doctest.DocTest(shown, {"__name__": "__main__"}, named(page), str(page), 0, None)
    said = []
    failed, tried = doctest.DocTestRunner(checker=Nearly(), optionflags=FLAGS).run(session, out=said.append)
    assert tried == len(shown) > 0
    assert not failed, "".join(said)


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_links_lead_somewhere(page):
    for target in LINK.findall(page.read_text(encoding="utf-8")):
        if re.match(r"[a-z]+:", target):
            continue
        found = (page.parent / target).resolve()
        if found.parent == DOCS / "gallery":  # pages that are made of the examples
            found = ROOT / "examples" / "gallery" / ("README.rst" if found.stem == "index" else f"{found.stem}.py")
        elif found.parent == DOCS / "gallery" / "images":
            example = re.fullmatch(r"sphx_glr_(plot_\w+)_\d{3}", found.stem)
            assert example, target
            found = ROOT / "examples" / "gallery" / f"{example[1]}.py"
        assert found.exists(), f"{named(page)} links to {target}"


def test_every_public_name_is_on_the_api_page():
    text = (DOCS / "api.rst").read_text(encoding="utf-8")
    listed = set(re.findall(r"^   ([A-Za-z_.]+)$", text, re.MULTILINE))
    rooms = {"cluster", "peers", "projections", "torch"}
    wanted = set(sotdd.__all__) - rooms - {"__version__"}
    rooms |= {f"integrations.{library}" for library in ("sklearn", "torchmetrics")}
    for room in rooms:
        wanted |= {f"{room}.{name}" for name in import_module(f"sotdd.{room}").__all__}
    at_the_top = {f"projections.{name}" for name in sotdd.projections.__all__ if name in sotdd.__all__}
    assert listed == wanted - at_the_top
    assert "``sotdd.__version__``" in text


@pytest.mark.parametrize("example", EXAMPLES, ids=named)
def test_every_example_has_a_title_a_picture_and_a_last_word(example):
    text = example.read_text(encoding="utf-8")
    title, rule = ast.get_docstring(ast.parse(text)).splitlines()[:2]
    assert rule == "=" * len(title)
    drawn, said = text.rsplit("plt.show()\n", 1)
    assert "plt.subplots(" in drawn or "plt.figure(" in drawn
    assert re.search(r"^# %%\n# [A-Z].*\.\n\Z", said, re.MULTILINE | re.DOTALL)


def test_ci_builds_the_site_and_fails_on_warnings():
    if not (ROOT / ".ci").is_dir():
        pytest.skip("not a checkout: there is no .ci folder")
    assert "sphinx-build -W " in (ROOT / ".ci" / "run").read_text(encoding="utf-8")
