"""The GitHub Action and the hooks of pre-commit, run as their runners would: on files, by bash and by pre-commit."""

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import sotdd

yaml = pytest.importorskip("yaml")

ROOT = Path(__file__).parents[2]
ACTION = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
HOOKS = {hook["id"]: hook for hook in yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8"))}
BASH = shutil.which("bash")
SHELL = ["--noprofile", "--norc", "-eo", "pipefail", "-c"]  # as the runner of GitHub starts it
needs_bash = pytest.mark.skipif(BASH is None, reason="this system has no bash")


@pytest.fixture
def data(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(1)
    for name, shift in {"train": 0, "same": 0, "moved day": 3}.items():
        rows = np.column_stack([rng.normal(shift, 1, size=(150, 2)), rng.integers(2, size=150)])
        np.savetxt(f"{name}.csv", rows, "%.5f", ",", header="a,b,kind", comments="")
    Path("broken.csv").write_text("a,b,kind\n1,2\n")
    return tmp_path


def run_action(folder, **given):
    """Every step with a Python that has sotdd: exit code, outputs, what was said, and the summary."""
    inputs = {name: described.get("default", "") for name, described in ACTION["inputs"].items()}
    inputs |= {name.replace("_", "-"): value for name, value in given.items()}
    summary, written = folder / "summary", folder / "output"
    for path in (summary, written):
        path.write_text("")
    around = {**os.environ, "GITHUB_STEP_SUMMARY": str(summary), "GITHUB_OUTPUT": str(written), "NO_COLOR": "1"}
    said = ""
    for step in ACTION["runs"]["steps"][-2 if inputs["train"] else -1 :]:
        own = {name: re.search(r"inputs\.([\w-]+)", text) for name, text in step["env"].items()}
        own = {name: inputs[found[1]] if found else "" for name, found in own.items()}
        done = run_step(step, around | own, folder)
        said += done.stdout + done.stderr
        if done.returncode:
            break
    outputs = dict(line.split("=", 1) for line in written.read_text().splitlines())
    return done.returncode, outputs, said, summary.read_text()


def run_step(step, environment, folder):
    command = [BASH, *SHELL, step["run"]]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False, cwd=folder)


@pytest.mark.slow
@needs_bash
def test_the_action_says_passed_drift_or_undecided(data):
    ours = {"python": sys.executable, "reference": "train.ref", "label": "kind", "report": "gate report.html"}
    code, outputs, said, summary = run_action(data, batches="same.csv\n", train="train.csv", **ours)
    assert (code, outputs) == (0, {"verdict": "passed", "report": "gate report.html", "exit-code": "0"}), said
    assert "<html" in (data / "gate report.html").read_text(encoding="utf-8")
    Path("gate report.html").unlink()
    before = Path("train.ref").stat().st_mtime_ns
    options = "--quiet\n--min-points=20\n"
    code, outputs, said, summary = run_action(
        data, batches="same.csv\nmoved day.csv", train="train.csv", log="gate.log", options=options, **ours
    )
    assert (code, outputs) == (1, {"verdict": "drift", "report": "gate report.html", "exit-code": "1"}), said
    assert Path("train.ref").stat().st_mtime_ns == before  # it was there already
    assert "moved day.csv" in summary
    assert len(Path("gate.log").read_text(encoding="utf-8").splitlines()) == 2
    code, outputs, said, _ = run_action(data, batches="broken.csv", fail_above="0.5", **ours)
    assert (code, outputs["verdict"], outputs["exit-code"]) == (2, "undecided", "2"), said
    assert "broken.csv" in said


@needs_bash
def test_the_action_reads_train_as_it_reads_batches_and_writes_files_for_pipelines(data):
    for name in ("train", "same"):
        Path(f"{name}.csv").write_text(Path(f"{name}.csv").read_text() + ",,1\n" * 5)
    ours = {"python": sys.executable, "reference": "train.ref", "train": "train.csv", "label": "kind"}
    files = "--junit=j.xml\n--summary=s.json"
    code, _, said, _ = run_action(
        data, batches="same.csv", reading="--exclude=b\n--missing=drop", options=files, **ours
    )
    made = sotdd.DriftReference.load("train.ref")
    assert (made.projections.columns, made.n_points) == (("a",), 150), said
    assert (code, Path("j.xml").exists(), Path("s.json").exists()) == (0, True, True), said


@needs_bash
def test_compiled_code_is_kept_by_what_the_sources_are(tmp_path):
    find, keep = ACTION["runs"]["steps"][1:3]
    assert re.fullmatch(r"actions/cache@[0-9a-f]{40}", keep["uses"])
    written, package = tmp_path / "output", tmp_path / "sotdd"
    package.mkdir()
    around = {**os.environ, "GITHUB_OUTPUT": str(written), "RUNNER_TEMP": str(tmp_path), "PYTHONPATH": str(tmp_path)}
    around["SOTDD_PYTHON"] = sys.executable
    keys = []
    for source in ("one", "one", "two"):
        (package / "__init__.py").write_text(f"x = {source!r}\n")
        written.write_text("")
        done = run_step(find, around, tmp_path)
        assert done.returncode == 0, done.stderr
        keys.append(dict(line.split("=", 1) for line in written.read_text().splitlines())["key"])
    assert keys[0] == keys[1] != keys[2]


@needs_bash
def test_inputs_of_the_action_are_never_run(data):
    harm = '$(touch harm)"; touch harm; `touch harm`'
    code, outputs, said, _ = run_action(
        data, python=sys.executable, reference="train.csv", batches=harm, label=harm, options=harm
    )
    assert (code, outputs["verdict"]) == (2, "undecided"), said
    assert not Path("harm").exists()


@needs_bash
def test_nothing_of_the_checkout_is_imported(data):
    for name in ("typer", "numpy", "hashlib", "sotdd"):
        Path(f"{name}.py").write_text("open('harm', 'w').close()\n")
    code, outputs, said, _ = run_action(
        data, python=sys.executable, reference="train.csv", batches="same.csv", options="--label=kind"
    )
    assert (code, outputs["verdict"]) == (0, "passed"), said
    run_step(ACTION["runs"]["steps"][1], {**os.environ, "SOTDD_PYTHON": sys.executable}, data)
    assert not Path("harm").exists()


def test_entries_of_hooks_are_commands(data, run):
    reference, check = (shlex.split(HOOKS[f"sotdd-{name}"]["entry"])[1:] for name in ("reference", "check"))
    assert run(*reference, "train.csv", "-o", "train.ref", "--label", "kind")[0] == 0
    assert run(*check, "train.ref", "same.csv", "moved day.csv")[0] == 1
