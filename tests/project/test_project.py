"""What the README promises is what CI runs."""

from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def commands(text):
    """Lines of shell blocks that make an environment."""
    return [line for line in text.splitlines() if line.startswith("python3 -m venv")]


def test_ci_runs_the_test_command_of_the_readme():
    if not (ROOT / ".ci").is_dir():
        pytest.skip("not a checkout: there is no .ci folder")
    demo, test = commands((ROOT / "README.md").read_text(encoding="utf-8"))
    assert commands((ROOT / ".ci" / "run").read_text(encoding="utf-8")) == [test]
    assert test.endswith("pytest")
    assert demo.endswith("sotdd demo")
