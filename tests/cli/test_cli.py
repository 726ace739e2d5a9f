"""The command line, run as a user runs it: help, exit codes, one line for every bad request."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import sotdd
from sotdd import demo

COMMANDS = [
    "distance", "matrix", "rank", "mix", "explain", "test", "copies", "reference", "check", "sketch", "demo", "warm",
]  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Good files and bad ones, a sketch and a reference; no test changes them."""
    folder = tmp_path_factory.mktemp("files")
    rng = np.random.default_rng(0)
    x = rng.normal(size=(60, 4))
    np.savez(folder / "a.npz", X=x, y=rng.integers(0, 3, size=60))
    np.savez(folder / "b.npz", X=rng.normal(1, 1, size=(40, 4)), y=rng.choice(["cat", "dog"], size=40))
    np.savez(folder / "named.npz", points=x, kind=np.repeat(["u", "v"], 30))
    np.savez(folder / "flat.npz", X=x[:, :3], y=np.zeros(60))
    np.savez(folder / "objects.npz", X=x, y=np.array([{}] * 60, object))
    for name, content in {
        "text.npz": b"not a zip file", "empty.npz": b"", "table.csv": b"x,y\n1,2\n", "notes.txt": b"hello",
        "cut.npz": (folder / "a.npz").read_bytes()[:400], "odd.ref": b"\x80\x04K\x01.",
        "b[bold].npz": (folder / "b.npz").read_bytes(),
    }.items():  # fmt: skip
        (folder / name).write_bytes(content)
    projections = sotdd.Projections.fit([folder / "a.npz"], n_projections=16)
    sotdd.sketch(folder / "a.npz", projections).save(folder / "s.sotdd")
    sotdd.DriftReference.fit(folder / "a.npz", n_projections=16).save(folder / "a.ref")
    return folder


@pytest.fixture
def files(folder, monkeypatch):
    monkeypatch.chdir(folder)
    return folder


# --------------------------------------------------------------------------- results


def test_distance(files):
    line = [sys.executable, "-m", "sotdd", "distance", "a.npz", "b.npz"]
    done = subprocess.run(line, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert repr(sotdd.distance("a.npz", "b.npz")) in done.stdout
    assert "a.npz: 60 points, 4 features, 3 classes" in done.stdout
    assert "\x1b" not in done.stdout


def test_distance_as_json_and_quietly(files, run):
    code, said, errors = run(
        "distance", "a.npz", "b.npz", "--json", "--n-projections", "300", "--seed", "5", "--p", "1.5"
    )
    assert (code, errors) == (0, "")
    expected = sotdd.distance("a.npz", "b.npz", n_projections=300, seed=5, p=1.5)
    assert json.loads(said) == {"a": "a.npz", "b": "b.npz", **json.loads(json.dumps(expected.to_dict()))}
    assert run("distance", "a.npz", "b.npz", "-q")[1].count("\n") == 1
    assert "b[bold].npz: 40 points" in run("distance", "a.npz", "b[bold].npz", "--n-projections", "9")[1]


def test_settings_reach_the_library(files, run):
    def measured(*options):
        return json.loads(run("distance", "a.npz", "b.npz", *options, "--json")[1])

    plain = measured()
    for law in ("moments", "quantiles"):
        assert measured("--label-law", law)["value"] == sotdd.distance("a.npz", "b.npz", label_law=law).value
    own = sotdd.distance("a.npz", "b.npz", label_directions="own").value
    assert measured("--label-directions", "own")["value"] == own != plain["value"]
    assert measured("--scale", "none")["value"] == sotdd.distance("a.npz", "b.npz", scale=None).value
    exact = measured("--rel-tol", "0.002")
    assert exact["stderr"] <= 0.002 * exact["value"] < plain["stderr"]
    assert exact["n_projections"] > plain["n_projections"]
    assert measured("--method", "mmd")["method"].startswith("MMD")
    said = run("distance", "a.npz", "b.npz", "--method", "otdd", "--max-points", "30")[1]
    assert "30 of the 60 points of 'a.npz' were sampled" in said
    assert "interval" not in said


def test_a_dataset_of_one_point_through_every_command(tmp_path, monkeypatch, run):
    monkeypatch.chdir(tmp_path)
    np.savez("one.npz", X=[[1.0]], y=["a"])
    np.savez("two.npz", X=[[3.0]], y=["a"])
    for line in (
        "distance one.npz two.npz", "matrix one.npz two.npz --report page.html", "rank one.npz two.npz",
        "explain one.npz two.npz", "sketch one.npz -o one.sotdd", "distance one.sotdd two.npz",
        "test one.npz two.npz --n-permutations 2", "check one.npz two.npz --fail-above 99 --min-points 1",
    ):  # fmt: skip
        code, said, errors = run(*line.split(), *(() if line.endswith("sotdd two.npz") else ("--n-projections", "1")))
        assert (code, errors) == (0, "")
        assert "1 points" not in said


def test_demo(run):
    code, said, errors = run("demo")
    assert (code, errors) == (0, "")
    assert max(len(line) for line in said.split("How to read it")[0].splitlines()) <= 80
    told = json.loads(run("demo", "--json")[1])
    row = dict(zip(told["names"], told["values"][0], strict=True))
    assert row["more digits"] < row["noisy"] < row["even only"] < row["stripes"]
    assert row["more digits"] < row["shuffled"] < row["stripes"]
    quietly = run("demo", "-q", "--n-projections", "50")[1].splitlines()
    assert [line.split("  ")[0] for line in quietly[1:]] == list(demo.STORY)


# --------------------------------------------------------------------------- bad requests

AB = "a.npz b.npz"


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("distance a.npz missing.npz", "there is no file missing.npz"),
        ("distance a.npz .", "give all the same features"),
        ("distance a.npz table.csv", "'table.csv' has 1 feature but dataset 'a.npz' has 4"),
        ("distance a.npz notes.txt", "notes.txt"),
        ("distance a.npz text.npz", "cannot read text.npz"),
        ("distance a.npz empty.npz", "cannot read empty.npz"),
        ("distance a.npz cut.npz", "cannot read cut.npz"),
        ("distance a.npz objects.npz", "Python objects"),
        ("distance a.npz named.npz", "no array 'X', only 'points', 'kind': name others by --features or --label"),
        ("distance a.npz b.npz::label=z", "b.npz has no array 'z'"),
        ("distance a.npz b.npz::colour=red", "colour=red"),
        ("distance table.csv table.csv --features nope", "has no column 'nope', only 'x', 'y': check"),
        ("distance table.csv::label=x,bins=2 table.csv::label=x,bins=3", "2, 3 bins: cut all alike by FILE::bins="),
        (f"distance {AB} --n-projections 99999999999999999", "expected at most 1,000,000,000"),
        (f"distance {AB} --n-projections 0", "--n-projections is 0"),
        (f"distance {AB} --p nan", "--p is nan"),
        (f"distance {AB} --seed -1", "--seed is -1"),
        (f"distance {AB} --label-law medians", "--label-law is 'medians'"),
        (f"distance {AB} --label-names x", "--label-names is 'x'"),
        (f"distance {AB} --scale x", "--scale is 'x'"),
        (f"distance {AB} --device tpu", "'tpu'"),
        (f"distance {AB} --method otdd --n-projections 9", "n_projections"),
        (f"distance {AB} --max-points 0", "--max-points is 0"),
        ("matrix a.npz", "at least two"),
        (f"matrix {AB} --csv --json", "--csv and --json"),
        ("matrix a.npz flat.npz", "has 3 features"),
        (f"matrix {AB} --method emd", "method is 'emd'"),
        (f"matrix {AB} --report nowhere/page.html", "cannot write 'nowhere/page.html'"),
        (f"rank {AB} --method otdd --noise-floor", "noise_floor"),
        ("rank s.sotdd b.npz --noise-floor", "noise_floor cannot be chosen for a sketch"),
        ("explain s.sotdd b.npz", "'s.sotdd' is a sketch"),
        (f"explain {AB} --report page.pdf", "call it 'page.html'"),
        ("test s.sotdd b.npz", "'s.sotdd' is a sketch"),
        (f"test {AB} --n-permutations 0", "--n-permutations is 0"),
        ("reference a.npz -o train.sotdd", "call it 'train.ref'"),
        ("reference table.csv -o x.ref --label z", "'z'"),
        ("sketch a.npz -o x.npz", "call it 'x.sotdd'"),
        ("sketch a.npz -o x.sotdd --like s.sotdd --seed 3", "--like"),
        (f"check {AB} --fail-above nan", "--fail-above is nan"),
        (f"check {AB} --p-value 5", "--p-value is 5"),
        (f"check {AB} --label-names yes", "--label-names is 'yes'"),
        (f"check {AB} --min-points 0", "--min-points is 0"),
        ("check a.npz missing.npz", "there is no file missing.npz"),
        ("check a.npz s.sotdd", "--like"),
        ("check a.npz a.ref", "'a.ref' is a reference: give it first"),
        ("check s.sotdd b.npz --p-value 0.1", "leave --p-value out"),
        ("check s.sotdd b.npz --fail-above 1 --seed 3", "--seed cannot be chosen for a sketch"),
        ("check a.ref b.npz --label-names match", "--label-names cannot be chosen for a saved reference"),
        ("check odd.ref b.npz", "odd.ref"),
        ("check a.ref b.npz --report page.pdf", "call it 'page.html'"),
        ("check a.ref b.npz --report nowhere/page.html", "cannot write"),
        ("check a.ref b.npz --log .", "cannot write '.'"),
        ("check a.ref b.npz --log nowhere/log", "cannot write 'nowhere/log'"),
        ("check a.ref b.npz --log a.ref", "--log is 'a.ref', in which no line is that of a gate"),
    ],
)
def test_a_bad_request_is_one_line_and_exit_code_2(files, run, line, said):
    before = {path.name: path.read_bytes() for path in files.iterdir()}
    code, output, errors = run(*line.split())
    assert (code, output) == (2, "")
    lines = [line for line in errors.splitlines() if "one class" not in line]
    assert len(lines) == 1, errors
    assert lines[0].startswith("sotdd: ")
    assert said in lines[0]
    assert {path.name: path.read_bytes() for path in files.iterdir()} == before
    if line.startswith("check"):
        told = json.loads(run(*line.split(), "--json")[1])
        assert (told["verdict"], told["drifted"]) == ("undecided", None)
        assert told["error"]


@pytest.mark.parametrize("line", ["distance", "distance a.npz", "measure", "distance a b --p x", "rank a"])
def test_wrong_usage_has_no_traceback(run, line):
    code, _, errors = run(*line.split())
    assert code == 2
    assert "Traceback" not in errors
    assert "Usage" in errors


def test_a_fault_of_the_program_is_not_taken_for_drift(files, run, monkeypatch):
    for error, code in ((ZeroDivisionError, 70), (KeyboardInterrupt, 130), (MemoryError, 2), (OSError, 2)):

        def fail(*_, error=error, **__):
            raise error

        monkeypatch.setattr(sotdd, "distance", fail)
        ended, _, errors = run("distance", "a.npz", "b.npz")
        assert ended == code
        assert ("Traceback" in errors) == (code == 70)


def test_a_report_that_cannot_be_written_is_known_beforehand(files, run, monkeypatch):
    monkeypatch.setattr(sotdd, "pairwise", lambda *_, **__: pytest.fail("measured for nothing"))
    for command in (["matrix", "a.npz", "b.npz"], ["demo"]):
        assert run(*command, "--report", "nowhere/page.html")[0] == 2


def test_damaged_archives_are_refused_or_read(rng, tmp_path):
    """Bytes changed at random: features come out, or one clear line, never anything else."""
    path = tmp_path / "damaged.npz"
    np.savez_compressed(path, X=rng.normal(size=(20, 3)), y=np.arange(20))
    whole = np.frombuffer(path.read_bytes(), np.uint8)
    refused = 0
    for _ in range(300):
        broken = whole.copy()
        broken[rng.integers(len(whole), size=3)] = rng.integers(256, size=3)
        path.write_bytes(broken.tobytes())
        try:
            sotdd.open_dataset(path)
        except sotdd.SotddError:
            refused += 1
    assert refused > 50


# --------------------------------------------------------------------------- help


def test_every_help_has_examples_that_can_be_parsed(run, tmp_path, monkeypatch):
    """Options of examples exist: no file is there, which is the only complaint."""
    monkeypatch.chdir(tmp_path)
    whole = run("--help")[1]
    for command in COMMANDS:
        assert command in whole
        code, said, _ = run(command, "--help")
        assert code == 0
        assert "--json" in said
        drawing = ("--n-projections", *(("--scale", "--seed") if command != "copies" else ()))
        for group in (("--label ", "--features", "--one-hot", "--missing"), drawing):
            assert len({option in said for option in group}) == 1  # all of them, or none
        examples = said.split("Examples")[1]
        lines = [line.split(" > ")[0].split() for line in map(str.strip, examples.splitlines()) if line]
        assert any(words[:2] == ["sotdd", command] for words in lines)
        for _, *words in lines if command not in ("demo", "warm") else []:
            code, _, errors = run(*words)
            assert code == 2
            assert errors.startswith("sotdd: "), errors
    for command in ("add", "search", "list", "remove"):
        assert run("catalog", command, "--help")[0] == 0
    # An undecided check is on the page and in the log as well.
    assert {path.name for path in tmp_path.iterdir()} == {"gate.html", "gate.log"}


def test_an_option_of_reading_is_written_in_one_place(files, tmp_path, monkeypatch):
    """A field of `Reading`, with its type, is an option in Python, in source texts and of commands with their help."""
    shutil.copytree(Path(sotdd.__file__).parent, tmp_path / "sotdd")
    place = tmp_path / "sotdd/inputs/reading.py"
    like = 'metadata={"option": replace(missing.metadata["option"], help="Which hue.")}'
    text = place.read_text(encoding="utf-8").replace("    bins: int | None\n", "    bins: int | None\n    hue: str\n")
    new = text.replace(
        "    bins: int | None = ", f'    hue: str = field(default="error", {like})\n    bins: int | None = '
    )
    place.write_text(new, encoding="utf-8")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    python = "import sotdd; sotdd.open_dataset('a.npz::hue=drop'); sotdd.open_dataset('a.npz', hue='green')"
    command = ["-m", "sotdd", "distance", "a.npz"]
    for words, said in (
        ([*command, "b.npz", "--hue", "green"], "sotdd: --hue is 'green'"), ([*command, "--help"], "Which hue."),
        ([*command, "b.npz::hue=green"], "hue is 'green'"), (["-c", python], "hue is 'green'"),
    ):  # fmt: skip
        done = subprocess.run([sys.executable, *words], capture_output=True, text=True, check=False)
        assert said in done.stdout + done.stderr


def test_help_imports_nothing_heavy():
    heavy = ("numba", "scipy", "pandas", "torch", "pyarrow", "lancedb", "PIL", "jinja2", "sklearn")
    code = f"import sys; import sotdd.cli.app; print([m for m in {heavy} if m in sys.modules])"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert loaded.stdout.strip() == "[]"


def test_version(run):
    code, said, _ = run("--version")
    lines = dict(line.split() for line in said.splitlines())
    assert code == 0
    assert (lines["sotdd"], lines["numpy"]) == (sotdd.__version__, np.__version__)


def test_completion(monkeypatch, run):
    monkeypatch.setenv("_SOTDD_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", "sotdd distance a b --method ot")
    monkeypatch.setenv("COMP_CWORD", "5")
    assert run()[1].split() == ["otdd", "otdd-gaussian"]


# --------------------------------------------------------------------------- processes


@pytest.mark.skipif(sys.platform == "win32", reason="pipes as POSIX has them")
@pytest.mark.first(1)
@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("sotdd check a.npz b.npz | head -0", 1),
        ("sotdd check a.npz a.npz | head -0", 0),
        ("sotdd check a.npz missing.npz 2>&1 | head -0", 2),
        ("sotdd check a.npz a.npz --json | head -0", 0),
        ("sotdd --help | head -0", 0),
        ("sotdd check a.npz a.npz >&- 2>&-", 0),
    ],
)
def test_a_reader_that_leaves_changes_no_verdict(files, line, code):
    script = "set -o pipefail; " + line.replace("sotdd ", f"{sys.executable} -m sotdd ")
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (code, "")


@pytest.mark.skipif(sys.platform == "win32", reason="signals as POSIX has them")
@pytest.mark.parametrize(("library", "words"), [("typer", ["--help"]), ("numba", ["distance", "a.npz", "b.npz"])])
def test_interrupted_while_a_library_is_loaded(files, tmp_path, library, words):
    wait = "import time\nprint('loading', flush=True)\nfor _ in range(6000):\n    time.sleep(0.01)\n"
    (tmp_path / f"{library}.py").write_text(wait)
    path = os.pathsep.join([str(tmp_path), *filter(None, sys.path)])
    child = subprocess.Popen(
        [sys.executable, "-m", "sotdd", *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env={**os.environ, "PYTHONPATH": path},
    )  # fmt: skip
    assert child.stdout.readline() == "loading\n"
    child.send_signal(2)
    assert child.communicate(timeout=60)[1] == ""
    assert child.returncode in (130, -2)
