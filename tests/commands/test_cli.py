"""The command line, run as a user runs it."""

import json
import os
import re
import subprocess
import sys

import numpy as np
import pytest
from typer.testing import CliRunner

import sotdd
from sotdd import demo
from sotdd.commands import app as commands


@pytest.fixture
def files(rng, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    x = rng.normal(size=(60, 4))
    np.savez("a.npz", X=x, y=rng.integers(0, 3, size=60))
    np.savez("b.npz", X=rng.normal(1, 1, size=(40, 4)), y=rng.choice(["cat", "dog"], size=40))
    np.savez("named.npz", points=x, kind=np.repeat(["u", "v"], 30))
    np.savez("bare.npz", X=x)
    np.savez("flat.npz", X=rng.normal(size=(9, 3)))
    np.savez("objects.npz", X=x, y=np.array([{}] * 60, object))
    (tmp_path / "text.npz").write_text("not a zip file")
    (tmp_path / "empty.npz").write_bytes(b"")
    (tmp_path / "table.csv").write_text("x,y\n1,2\n")
    (tmp_path / "notes.txt").write_text("hello")
    np.save("single.npy", x)
    (tmp_path / "single.npy").rename(tmp_path / "single.npz")
    (tmp_path / "b[bold].npz").write_bytes((tmp_path / "b.npz").read_bytes())
    whole = (tmp_path / "a.npz").read_bytes()
    (tmp_path / "cut.npz").write_bytes(whole[: len(whole) // 2])
    return tmp_path


def process(*arguments, **settings):
    """Run in a process of its own, as a user does."""
    return subprocess.run(
        [sys.executable, "-m", "sotdd", *arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
        **settings,
    )


def test_distance(files):
    done = process("distance", "a.npz", "b.npz")
    assert (done.returncode, done.stderr) == (0, "")
    with np.load("a.npz") as a, np.load("b.npz") as b:
        expected = sotdd.distance((a["X"], a["y"]), (b["X"], b["y"]))
    assert repr(expected) in done.stdout
    assert "a.npz: 60 points, 4 features, 3 classes" in done.stdout
    assert "\x1b" not in done.stdout


def test_distance_as_json(files, run):
    settings = ["--n-projections", "300", "--seed", "5", "--p", "1.5"]
    code, said, errors = run("distance", "a.npz", "b.npz", "--json", *settings)
    assert (code, errors) == (0, "")
    told = json.loads(said)
    with np.load("a.npz") as a, np.load("b.npz") as b:
        expected = sotdd.distance((a["X"], a["y"]), (b["X"], b["y"]), n_projections=300, seed=5, p=1.5)
    assert told == {"a": "a.npz", "b": "b.npz", **json.loads(json.dumps(expected.to_dict()))}


def test_names_are_shown_as_they_are(files, run):
    assert "b[bold].npz: 40 points" in run("distance", "a.npz", "b[bold].npz")[1]


def test_quiet_leaves_the_result(files, run):
    said = run("distance", "a.npz", "b.npz", "-q")[1]
    assert said.endswith("(s-OTDD, p=2, 1,000 projections)\n")
    assert said.count("\n") == 1


def test_one_projection_has_no_interval(files, run):
    assert "interval" not in run("distance", "a.npz", "b.npz", "--n-projections", "1")[1]


@pytest.mark.slow
def test_a_terminal_without_unicode(files):
    done = process("distance", "a.npz", "b.npz", env={**os.environ, "PYTHONIOENCODING": "ascii"})
    assert (done.returncode, done.stderr) == (0, "")
    assert "\\xb1" in done.stdout


def test_a_full_disk_is_one_line(files):
    if not os.path.exists("/dev/full"):
        pytest.skip("this system has no /dev/full")
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "sotdd", "distance", "a.npz", "b.npz"], stdout=full, stderr=subprocess.PIPE,
            text=True, check=False,
        )  # fmt: skip
    assert done.returncode != 0
    assert "Traceback" not in done.stderr


def test_damaged_archives_are_refused_or_read(rng, tmp_path):
    """Bytes changed at random: features come out, or one clear line, never anything else."""
    path = tmp_path / "damaged.npz"
    np.savez_compressed(path, X=rng.normal(size=(20, 3)), y=np.arange(20))
    whole = np.frombuffer(path.read_bytes(), np.uint8)
    refused = 0
    for _ in range(600):
        broken = whole.copy()
        broken[rng.integers(len(whole), size=3)] = rng.integers(256, size=3)
        path.write_bytes(broken.tobytes())
        try:
            sotdd.open_dataset(path)
        except sotdd.SotddError:
            refused += 1
    assert refused > 100


def test_other_methods(files, run):
    code, said, _ = run("distance", "a.npz", "b.npz", "--method", "otdd", "--max-points", "30")
    assert code == 0
    assert "(OTDD, exact labels, p=2); 30 of the 60 points of 'a.npz' were sampled" in said
    assert "interval" not in said
    told = json.loads(run("distance", "a.npz", "b.npz", "--method", "mmd", "--json")[1])
    assert told["method"].startswith("MMD")


def test_label_laws(files, run):
    by_law = {
        law: json.loads(run("distance", "a.npz", "b.npz", "--label-law", law, "--json")[1])["value"]
        for law in ("moments", "quantiles", "paper")
    }
    assert by_law["moments"] == json.loads(run("distance", "a.npz", "b.npz", "--json")[1])["value"]
    assert by_law["quantiles"] != by_law["moments"]
    code, _, errors = run("distance", "a.npz", "b.npz", "--label-law", "medians")
    assert (code, errors.strip()) == (
        2,
        "sotdd: --label-law is 'medians': expected 'moments', 'quantiles' or 'paper'.",
    )


def test_projections_are_drawn_until_the_tolerance_is_met(files, run):
    plain = json.loads(run("distance", "a.npz", "b.npz", "--json")[1])
    code, said, errors = run("distance", "a.npz", "b.npz", "--rel-tol", "0.002", "--json")
    assert (code, errors) == (0, "")
    told = json.loads(said)
    assert told["stderr"] <= 0.002 * told["value"] < plain["stderr"]
    assert told["n_projections"] > plain["n_projections"]
    assert f"{told['n_projections']:,} projections)" in run("distance", "a.npz", "b.npz", "--rel-tol", "0.002", "-q")[1]


@pytest.mark.parametrize("command", ["distance", "matrix", "rank"])
def test_max_samples_is_the_old_name_of_max_points(files, run, command):
    words = [command, "a.npz", "b.npz", "--method", "otdd", "--json"]
    code, said, errors = run(*words, "--max-samples", "30")
    assert code == 0
    assert errors == "--max-samples is now called --max-points; the old name will be removed.\n"
    assert json.loads(said) == json.loads(run(*words, "--max-points", "30")[1])
    code, said, errors = run(*words, "--max-samples", "30", "--max-points", "30")
    assert (code, said) == (2, "")
    assert errors == "sotdd: --max-samples is the old name of --max-points, and both are given: use one.\n"
    assert "--max-samples" not in run(command, "--help")[1]


def test_one_of_a_thing_is_singular(tmp_path, monkeypatch, run):
    """A dataset of one point with one feature, through every command."""
    pytest.importorskip("lancedb")
    monkeypatch.chdir(tmp_path)
    np.savez("one.npz", X=[[1.0]], y=["a"])
    np.savez("two.npz", X=[[3.0]], y=["a"])
    one = ("--n-projections", "1")
    printed = [
        run("distance", "one.npz", "two.npz", *one),
        run("matrix", "one.npz", "two.npz", *one, "--report", "page.html"),
        run("rank", "one.npz", "two.npz", *one),
        run("explain", "one.npz", "two.npz", *one),
        run("test", "one.npz", "two.npz", "--n-permutations", "2"),
        run("check", "one.npz", "two.npz", "--fail-above", "99", *one),
        run("sketch", "one.npz", "-o", "one.sotdd", "--n-quantiles", "1", *one),
        run("catalog", "add", "shop", "one", "one.sotdd"),
        run("catalog", "list", "shop"),
        run("catalog", "show", "shop", "one"),
        run("catalog", "search", "shop", "one.sotdd"),
    ]
    text = "".join(said + errors for _, said, errors in printed)
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    text += page.partition("<script>")[0]  # what is after it is Plotly
    plural = r"(?<![\d,.])1 (?:points|features|classes|projections|entries|quantiles|datasets|distances|pairs)\b"
    assert re.findall(f".*{plural}.*", text) == []
    assert all("Traceback" not in errors for _, _, errors in printed)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["a.npz", "missing.npz"], "there is no file missing.npz"),
        (["a.npz", "."], ". has no sub-folders with images"),
        (["a.npz", "table.csv"], "dataset 'table.csv' has 1 feature but dataset 'a.npz' has 4"),
        (["a.npz", "notes.txt"], "cannot tell what notes.txt is"),
        (["a.npz", "text.npz"], "cannot read text.npz"),
        (["a.npz", "empty.npz"], "cannot read empty.npz"),
        (["a.npz", "cut.npz"], "cannot read cut.npz"),
        (["a.npz", "objects.npz"], "it holds Python objects"),
        (["a.npz", "single.npz"], "holds a single array"),
        (["a.npz", "b.npz", "--n-projections", "99999999999999999"], "expected at most 1,000,000,000"),
        (["a.npz", "named.npz"], "named.npz has no array 'X', only points, kind"),
        (["a.npz", "bare.npz::label=z"], "bare.npz has no array 'z', only X"),
        (["a.npz", "b.npz::colour=red"], "cannot read 'colour=red'"),
        (["a.npz", "flat.npz"], "dataset 'flat.npz' has 3 features but dataset 'a.npz' has 4"),
        (["a.npz", "b.npz", "--n-projections", "0"], "--n-projections is 0"),
        (["a.npz", "b.npz", "--p", "0.5"], "--p is 0.5"),
        (["a.npz", "b.npz", "--p", "nan"], "--p is nan"),
        (["a.npz", "b.npz", "--seed", "-1"], "--seed is -1: expected an integer of at least 0."),
        (["a.npz", "b.npz", "--method", "emd"], "--method is 'emd'"),
        (["a.npz", "b.npz", "--device", "tpu"], "--device is 'tpu'"),
        (["a.npz", "b.npz", "--method", "otdd", "--n-projections", "9"], "no option --n-projections: it takes --p, "),
        (
            ["a.npz", "b.npz", "--max-points", "9"],
            "s-OTDD has no option --max-points: leave it out, or choose a --method",
        ),
    ],
)
def test_errors_are_one_line_and_exit_code_2(files, run, arguments, said):
    code, output, errors = run("distance", *arguments)
    assert (code, output) == (2, "")
    lines = [line for line in errors.splitlines() if "one class" not in line]
    assert len(lines) == 1, errors
    assert said in lines[0]


def test_an_error_in_a_process_of_its_own(files):
    done = process("distance", "a.npz", "missing.npz")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "sotdd: there is no file missing.npz: check the path.\n"


@pytest.mark.parametrize(
    "arguments", [["distance"], ["distance", "a.npz"], ["measure"], ["distance", "a", "b", "--p", "x"], ["rank", "a"]]
)
def test_wrong_usage_has_no_traceback(run, arguments):
    code, _, errors = run(*arguments)
    assert code == 2
    assert "Traceback" not in errors
    assert "Usage" in errors


def test_a_fault_of_the_program_is_not_taken_for_drift(files, run, monkeypatch):
    monkeypatch.setattr(sotdd, "distance", lambda *_, **__: 1 // 0)
    code, _, errors = run("distance", "a.npz", "b.npz")
    assert code == 70
    assert "ZeroDivisionError" in errors


def test_an_interruption_is_not_taken_for_drift(files, run, monkeypatch):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(sotdd, "distance", interrupted)
    assert run("distance", "a.npz", "b.npz")[0] == 130


COMMANDS = ["distance", "matrix", "rank", "explain", "test", "check", "sketch", "catalog", "demo"]


def test_help_lists_every_command(run):
    code, said, _ = run("--help")
    assert code == 0
    for name in [*COMMANDS, "--version", "--install-completion"]:
        assert name in said


@pytest.mark.parametrize("command", [name for name in COMMANDS if name != "catalog"])
def test_every_help_has_examples_and_the_common_options(run, command):
    code, said, _ = run(command, "--help")
    assert code == 0
    for option in ("--json", "--quiet"):
        assert option in said
    assert f"sotdd {command}" in said.split("Examples")[1]


def test_every_example_can_be_parsed(run, tmp_path, monkeypatch):
    """Options of examples exist: no file is there, which is the only complaint."""
    monkeypatch.chdir(tmp_path)
    for command in set(COMMANDS) - {"catalog", "demo"}:
        examples = run(command, "--help")[1].split("Examples")[1]
        lines = [line.split(" > ")[0].split() for line in map(str.strip, examples.splitlines()) if line]
        assert lines
        for _, *words in lines:
            code, _, errors = run(*words)
            assert code == 2
            assert errors.startswith("sotdd: "), errors
    # What could not be told is said in the page and in the log as well.
    assert {path.name for path in tmp_path.iterdir()} == {"gate.html", "gate.log"}


def test_help_imports_nothing_heavy():
    heavy = ("numba", "scipy", "pandas", "torch", "pyarrow", "lancedb", "PIL", "plotly", "sklearn")
    code = f"import sys; from sotdd import commands; print([m for m in {heavy} if m in sys.modules])"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert loaded.stdout.strip() == "[]"


def test_version(run):
    code, said, _ = run("--version")
    lines = dict(line.split() for line in said.splitlines())
    assert code == 0
    assert said.startswith(f"sotdd {sotdd.__version__}\n")
    assert lines["numpy"] == np.__version__
    assert {"python", "scipy", "numba", "safetensors"} <= set(lines)


def test_completion(monkeypatch, run):
    """What a shell asks for when Tab is pressed, and the script that makes it ask."""

    def completed(*words):
        monkeypatch.setenv("_SOTDD_COMPLETE", "complete_bash")
        monkeypatch.setenv("COMP_WORDS", " ".join(["sotdd", *words]))
        monkeypatch.setenv("COMP_CWORD", str(len(words)))
        return run()[1].split()

    assert completed("ma") == ["matrix"]
    assert completed("distance", "a", "b", "--method", "ot") == ["otdd", "otdd-gaussian"]
    assert completed("rank", "a", "b", "--label-law", "") == ["moments", "quantiles", "paper"]
    assert "--fail-above" in completed("check", "--f")
    assert completed("distance", "some") == []  # the shell then completes names of files
    monkeypatch.setenv("_SOTDD_COMPLETE", "source_bash")
    script = run()[1]
    assert "_SOTDD_COMPLETE=complete_bash" in script
    assert "-o default" in script


def test_demo_tells_its_story():
    done = process("demo")
    assert (done.returncode, done.stderr) == (0, "")
    for part in ["Six datasets", "nearest to digits       more digits", "How to read it", "15 distances in"]:
        assert part in done.stdout
    assert max(len(line) for line in done.stdout.split("How to read it")[0].splitlines()) <= 80


def test_demo_says_what_is_true(run):
    told = json.loads(run("demo", "--json")[1])
    row = dict(zip(told["names"], told["values"][0], strict=True))
    assert row["digits"] == 0
    assert row["more digits"] < row["noisy"] < row["even only"] < row["stripes"]
    assert row["more digits"] < row["shuffled"] < row["stripes"]


def test_demo_quietly(run):
    said = run("demo", "-q", "--n-projections", "50")[1].splitlines()
    assert [line.split("  ")[0] for line in said[1:]] == list(demo.STORY)


def on_terminal(*arguments, **environment):
    """Run on a pseudo-terminal and return what it showed."""
    pty = pytest.importorskip("pty")
    ours, theirs = pty.openpty()
    child = subprocess.Popen(
        [sys.executable, "-m", "sotdd", *arguments],
        stdout=theirs,
        stderr=theirs,
        stdin=theirs,
        env={key: value for key, value in os.environ.items() if key != "NO_COLOR"} | {"TERM": "xterm", **environment},
    )
    os.close(theirs)
    shown = b""
    while True:
        try:
            part = os.read(ours, 4096)
        except OSError:  # the other end is closed
            break
        if not part:
            break
        shown += part
    os.close(ours)
    assert child.wait(60) == 0
    return shown.decode()


@pytest.mark.slow
def test_a_terminal_gets_a_bar_and_no_color_is_respected(files):
    command = ["distance", "a.npz", "b.npz", "--n-projections", "20000"]
    colour = re.compile(r"\x1b\[[0-9;]*3[0-7]")
    shown = on_terminal(*command)
    assert "Projecting" in shown
    assert colour.search(shown)
    plain = on_terminal(*command, NO_COLOR="1")
    assert "Projecting" in plain
    assert not colour.search(plain)
    assert "Projecting" not in on_terminal(*command, "--quiet")
    help_text = on_terminal("matrix", "--help", NO_COLOR="1")
    assert "Examples" in help_text
    assert not colour.search(help_text)


def test_commands_run_in_this_process_too(files):
    """For coverage tools and debuggers."""
    result = CliRunner().invoke(commands.app, ["distance", "a.npz", "b.npz", "--json"])
    assert result.exit_code == 0
    assert json.loads(result.stdout)["n_projections"] == 1000
