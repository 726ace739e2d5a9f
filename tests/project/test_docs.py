"""The pages and the README: what they show runs, what they point to is there, and the API page has every name."""

import ast
import doctest
import json
import re
import shlex
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from benchmarks import status

import sotdd
from project import console

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
MADE = {DOCS / "gallery", DOCS / "generated"}  # by building the site
README = ROOT / "README.md"
PAGES = sorted(
    [page for page in DOCS.rglob("*.md") if not MADE & set(page.parents)]
    + [README, ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md"]
)
# Sessions that take seconds.
SLOW = {"drift", "federated", "sketches", "sklearn", "torchmetrics"}

BLOCK = re.compile(r"^```([^\n`]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
RESULT = re.compile(r"^```\{result\} (\S+) ?(.*)\n(?::columns: (.*)\n)?```$", re.MULTILINE)
LINK = re.compile(r"\]\(([^)#\s]+)(?:#[^)]*)?\)")
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def named(page):
    return str(page.relative_to(ROOT))


def blocks(page, language):
    return [code for kind, code in BLOCK.findall(page.read_text(encoding="utf-8")) if kind == language]


@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page, "python")], ids=named)
def test_python_is_python(page):
    """These blocks are excerpts, with names of the reader's own; those with prompts run below."""
    for code in blocks(page, "python"):
        shown = doctest.DocTestParser().get_examples(code)
        for part in [example.source for example in shown] or [code]:
            compile(part, named(page), "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)


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


@pytest.mark.parametrize(
    "page",
    [
        pytest.param(page, marks=[pytest.mark.slow] * (page.stem in SLOW))
        for page in PAGES if blocks(page, "pycon")
    ],
    ids=named,
)  # fmt: skip
def test_what_pages_show_is_what_runs(page, tmp_path, monkeypatch):
    """All blocks of a page are one session, in an empty folder."""
    monkeypatch.chdir(tmp_path)
    shown = [example for code in blocks(page, "pycon") for example in doctest.DocTestParser().get_examples(code)]
    session = doctest.DocTest(shown, {"__name__": "__main__"}, named(page), str(page), 0, None)
    said = []
    failed, tried = doctest.DocTestRunner(checker=Nearly(), optionflags=FLAGS).run(session, out=said.append)
    assert tried == len(shown) > 0
    assert not failed, "".join(said)


@pytest.mark.slow
@pytest.mark.parametrize("page", console.PAGES)
def test_commands_print_what_pages_show(page):
    shown = console.SESSION.findall((DOCS / page).read_text(encoding="utf-8"))
    assert shown
    with console.folder_of_tables():
        for session in shown:
            printed = console.play(session)
            assert Nearly().check_output(session, printed, FLAGS), printed


def test_pages_show_results_that_are_there():
    shown = [(page, *found) for page in PAGES for found in RESULT.findall(page.read_text(encoding="utf-8"))]
    kept = status.read_results()
    assert shown
    for page, name, title, columns in shown:
        head = next((table[0] for key, table in kept[name]["tables"].items() if title in key), None)
        assert head, f"{named(page)} shows a table {title!r} that {name} does not have"
        assert set(filter(None, columns.split("; "))) <= set(head), named(page)


def test_measured_numbers_of_the_readme_are_those_of_result_files():
    kept = {name: result.get("tables", {}) for name, result in status.read_results().items()}
    trust = kept["estimators"]
    errors = dict(row[:2] for row in trust["All pairs, label_law='moments'"])
    said = " ".join(README.read_text(encoding="utf-8").split())
    assert f"was {errors['controlled']} on {len(trust['Each pair, label_law=' + repr('moments')]) - 1} kinds of" in said
    seconds = {row[0]: row[-1].partition(",")[0] for row in kept["peers"]["Processor time and peak memory"]}
    few, many = (seconds[f"s-OTDD, {count} projections"] for count in ("1,000", "10,000"))
    assert f"take {few} of processor time with 1,000 projections, {many} with 10,000 as in the paper" in said
    assert f"exact OTDD {seconds['OTDD, exact labels']}." in said
    *_, (_, apart, *_), (_, size, *_) = kept["sketching"]["Promises"]
    assert f"keep {float(size.split()[0]):.0f} MB" in said
    assert "in milliseconds" in said
    assert float(apart.removesuffix(" ms")) < 50


def test_measured_numbers_of_the_guide_to_mixtures_are_those_of_the_study():
    said = " ".join((ROOT / "docs" / "guides" / "mixture.md").read_text(encoding="utf-8").split())
    found = json.loads((ROOT / "experiments" / "results" / "mix" / "summary.json").read_text(encoding="utf-8"))
    recovery, training = found["recovery"], found["training"]
    assert f"in {100 * recovery['held']:.1f} % of cases" in said
    assert f"wrong in {100 * recovery['wrong']:.1f} % of" in said
    assert f"{recovery['runs']} targets" in said
    for size, when in ((500, "at n = 500"), (2000, "at 2,000")):
        lines = [one for one in recovery["by_foreign"] if one["size"] == size and one["foreign"]]
        five, ten, twenty = (f"{100 * one['wrong']:.0f}" for one in lines)
        assert f"{five}, {ten} and {twenty} % {'of targets ' if size == 500 else ''}{when}" in said
    assert f"{training['accuracy']['mixture']:.1f} % balanced accuracy" in said
    low, middle, high = training["over uniform"]
    assert f"{middle:.1f} points, with an interval of −{-low:.1f} to {high:.1f}" in said


def test_the_landing_page_shows_one_number_per_dataset_and_cites_as_the_citation_file():
    page, cited = (path.read_text(encoding="utf-8") for path in (DOCS / "index.md", ROOT / "CITATION.cff"))
    (drawn,) = re.findall(r":alt: (.*)", page)
    distances = re.findall(r"(\d\.\d+) ± ", page)
    assert len(distances) == 5
    assert [f"{float(value):.2f}" for value in distances] == re.findall(r"\d\.\d\d", drawn)
    (code,) = blocks(DOCS / "index.md", "bibtex")
    for field in ("title", "version", "url", "year"):
        for value in re.findall(rf"^  {field} += {{(.+)}}", code, re.MULTILINE):
            assert value in cited


@pytest.mark.slow  # its report explains every pair
def test_the_python_of_the_readme_prints_what_it_says(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (code,) = blocks(README, "python")
    exec(compile(code, "README.md", "exec"), {})
    said = re.search(r"print\(r\)  # .*?(\d+\.\d+) ± (\d+\.\d+)", code)  # the last digit may depend on the machine
    found = re.search(r"(\d+\.\d+) ± (\d+\.\d+)", capsys.readouterr().out)
    assert float(found[1]) == pytest.approx(float(said[1]), abs=float(said[2]))


@pytest.mark.slow
def test_the_commands_of_the_readme_run_in_their_order(tmp_path, monkeypatch, run):
    """In one test, since each may need what those before have written."""
    pandas = pytest.importorskip("pandas")
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    for number, name in enumerate(["train", "today", "march"]):
        x, y = rng.normal(number / 10, 1, size=(80, 3)), rng.choice(["cat", "dog"], size=80)
        frame = pandas.DataFrame(x, columns=["height", "width", "weight"])
        frame.assign(label=y).to_parquet(f"{name}.parquet")
        frame.assign(label=y).to_csv(f"{name}.csv", index=False)
        frame.assign(species=y).to_csv("table.csv", index=False)
        np.savez(f"{name}.npz", X=x, y=y)
    commands = [line for block in blocks(README, "sh") for line in block.splitlines() if line.startswith("sotdd ")]
    assert commands
    for command in commands:
        code, output, errors = run(*shlex.split(command, comments=True)[1:])
        assert code == 0, (command, output, errors)
        assert output.strip(), command


@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page, "sh")], ids=named)
def test_commands_of_pages_take_what_they_are_given(page):
    """Every command that a page lists is there, with its options and as many arguments."""
    from typer.main import get_command

    from sotdd.cli.app import app

    joined = "\n".join(blocks(page, "sh")).replace("\\\n", " ")
    for line in joined.splitlines():
        words = shlex.split(line, comments=True)
        command, names = get_command(app), []
        if words[:1] != ["sotdd"]:
            continue
        words = words[1:]
        while hasattr(command, "commands"):
            names.append(words.pop(0))
            command = command.commands[names[-1]]
        command.make_context(" ".join(names), words)


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_links_lead_somewhere(page):
    text = page.read_text(encoding="utf-8")
    assert not re.search(r"^\s*%", BLOCK.sub("", text), re.MULTILINE), "a line that begins with % is not shown"
    for target in LINK.findall(text):
        if re.match(r"[a-z]+:", target):
            continue
        found = (page.parent / target).resolve()
        if found.is_relative_to(DOCS / "gallery"):  # made of the examples
            example = re.search(r"plot_\w+?(?=_\d{3}$|$)", found.stem)
            found = ROOT / "examples" / "gallery" / (f"{example[0]}.py" if example else "README.rst")
        assert found.exists(), f"{named(page)} links to {target}"


def test_every_public_name_has_an_example_and_is_on_the_api_page():
    text = (DOCS / "api.rst").read_text(encoding="utf-8")
    listed = set(re.findall(r"^   ([A-Za-z_.]+)$", text, re.MULTILINE))
    calls = {name for name in sotdd.__all__ if not isinstance(getattr(sotdd, name), ModuleType)}
    calls.remove("__version__")
    assert [name for name in calls if ">>>" not in getattr(sotdd, name).__doc__] == []
    assert calls <= listed
    for name in listed:  # and what it lists can be imported
        home, _, call = f"sotdd.{name}".rpartition(".")
        assert hasattr(__import__(home, fromlist=[call]), call), name
