"""Every command and every line of Python in the README runs as it is written."""

import re
import shlex
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from sotdd.commands.app import app

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "README.md").read_text(encoding="utf-8")
PYTHON, SHELL = (re.findall(rf"```{language}\n(.*?)```", TEXT, re.S) for language in ("python", "sh"))
COMMANDS = [line for block in SHELL for line in block.splitlines() if line.startswith("sotdd ")]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The files that the commands name."""
    pandas = pytest.importorskip("pandas")
    place = tmp_path_factory.mktemp("readme")
    rng = np.random.default_rng(0)
    for number, name in enumerate(["train", "today", "march"]):
        x, y = rng.normal(number / 10, 1, size=(80, 3)), rng.choice(["cat", "dog"], size=80)
        frame = pandas.DataFrame(x, columns=["height", "width", "weight"])
        frame.assign(label=y).to_parquet(place / f"{name}.parquet")
        frame.assign(species=y).to_csv(place / "table.csv", index=False)
        np.savez(place / f"{name}.npz", X=x, y=y)
    return place


def test_there_is_something_to_run():
    assert len(COMMANDS) >= 8
    assert len(PYTHON) == 1
    assert len([line for line in PYTHON[0].splitlines() if line]) <= 11  # ten lines, and where they begin


def test_the_ten_lines_run_and_print_what_they_say(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    exec(compile(PYTHON[0], "README.md", "exec"), {})
    printed = capsys.readouterr().out
    for line in PYTHON[0].splitlines():
        code, _, said = line.partition("  # ")
        if code == "print(r)":  # its first two numbers: the last digit may depend on the machine
            value, error = map(float, re.findall(r"\d+\.\d+", said)[:2])
            found = re.search(r"(\d+\.\d+) ± (\d+\.\d+), beyond noise", printed)
            assert float(found[1]) == pytest.approx(value, abs=error)
        elif code == 'print(matrix.nearest("digits"))':
            assert said in printed
    assert "without a counterpart in b: 1, 3, 5, 7, 9" in printed.replace("'even only'", "b")
    assert (tmp_path / "report.html").stat().st_size > 1_000_000


def test_the_commands_run_in_their_order(folder, monkeypatch):
    """In one test, since each may need what those before have written, and tests are shared out to processes."""
    monkeypatch.chdir(folder)
    for command in COMMANDS:
        done = CliRunner().invoke(app, shlex.split(command)[1:])
        assert done.exit_code == 0, (command, done.output)
        assert done.output.strip(), command


def test_the_pictures_are_there():
    for path in re.findall(r"!\[.*?\]\((.*?)\)", TEXT):
        assert (ROOT / path).stat().st_size > 10_000
