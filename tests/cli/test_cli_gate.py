"""The commands test, reference and check, as a user or a pipeline runs them: exit codes, JSON, the log."""

import csv
import json
import os
import pty
import re
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

import sotdd
from sotdd.drift.gate import append_lines, read_history

FEW = ("--n-permutations", "39")
ENOUGH = ("--n-permutations", "99")
MORE = (*ENOUGH, "--n-projections", "200")


@pytest.fixture
def files(rng, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, size, shift in [("train", 300, 0), ("same", 80, 0), ("again", 60, 0), ("gone", 80, 3), ("five", 5, 0)]:
        x = rng.normal(size=(size, 4))
        rows = np.column_stack([x + np.array([shift, 0, 0, 0]), x[:, 0] > 0])
        np.savetxt(f"{name}.csv", rows, delimiter=",", header="u,v,w,z,kind", comments="")
        np.savez(f"{name}.npz", X=rows[:, :4], y=np.where(rows[:, 4], "cat", "dog"))
    return tmp_path


@pytest.fixture
def reference(files, run):
    code, said, errors = run("reference", "train.csv", "-o", "train.ref", "--label", "kind", "--n-projections", 32)
    assert (code, errors) == (0, "")
    assert said.startswith("train.ref: 300 points in 2 classes, 4 features\ncolumns: u, v, w, z\n")
    return "train.ref"


def test_a_limit(files, run):
    code, said, errors = run("check", "train.npz", "same.npz", "--fail-above", "0.3", *MORE)
    assert (code, said.split()[0], errors) == (0, "passed", "")
    code, said, errors = run("check", "train.npz", "gone.npz", "--fail-above", "0.3", *MORE)
    assert (code, said.split()[0], errors) == (1, "FAILED", "")
    told = json.loads(run("check", "train.npz", "gone.npz", "--fail-above", "0.3", *MORE, "--json")[1])
    assert (told["reference"], told["current"], told["drifted"]) == ("train.npz", "gone.npz", True)
    (only,) = told["checks"]
    assert (only["criterion"], only["limit"], only["failed"]) == ("distance", 0.3, True)
    assert only["value"] == told["distance"]["value"] > 0.3
    limit = f"{told['distance']['value']:.3f}"
    assert "95 % interval" in run("check", "train.npz", "gone.npz", "--fail-above", limit, *MORE)[1]  # a close call


def test_a_terminal_says_what_takes_long(files):
    reader, terminal = pty.openpty()
    command = [sys.executable, "-m", "sotdd", "check", "train.npz", "same.npz", *FEW]
    subprocess.run(command, env={**os.environ, "TERM": "xterm"}, stdout=subprocess.PIPE, stderr=terminal, check=True)
    said = os.read(reader, 100_000).decode()
    assert "Keeping rows of train.npz" in said
    assert "Checking same.npz" in said


def test_nothing_is_judged_unseen(rng, files, run):
    """A column that was left out is part of the verdict, in every form; one that cannot be read as before decides."""

    def write(name, mean, broken="?"):
        ages = [broken if row == 17 else f"{rng.normal(mean, 10):.1f}" for row in range(300)]
        rows = [f"{age},{rng.choice(['Rome', 'Oslo'])},a note {row},{row % 2}" for row, age in enumerate(ages)]
        Path(name).write_text("\n".join(["age,city,note,kind", *rows]))

    write("jan.csv", 40), write("feb.csv", 40), write("mar.csv", 60), write("odd.csv", 40, "old")
    judged = "judged 2 of 3 columns (left out: note, free text)"
    assert run("reference", "jan.csv", "-o", "jan.ref", "--label", "kind")[0] == 0
    for given in (["jan.ref"], ["jan.csv", "--label", "kind"]):
        code, said, _ = run("check", *given, "feb.csv", *ENOUGH, "-q")
        assert (code, said.splitlines()[1]) == (0, judged)
        assert run("check", *given, "mar.csv", *ENOUGH, "--log", "gate.log", "--report", "page.html")[0] == 1
        assert json.loads(Path("gate.log").read_text().splitlines()[-1])["columns"] == judged
        assert judged[1:] in Path("page.html").read_text()
        told = json.loads(run("check", *given, "feb.csv", *ENOUGH, "--json")[1])
        assert told["columns"]["columns"] == ["age", "city"]
        assert told["columns"]["left_out"]["note"]["why"] == "free text"
        code, _, errors = run("check", *given, "feb.csv", *ENOUGH, "--require-all-columns")
        assert (code, judged in errors) == (2, True)
        code, _, errors = run("check", *given, "odd.csv", *ENOUGH)
        assert (code, "'age'" in errors and "'old' in row 17" in errors) == (2, True)


def test_units_are_those_of_the_reference(files, run):
    """However far the current data have gone, they do not change what one unit is."""
    projections = sotdd.Projections.fit(["train.npz"]).evenly()
    for name in ("same", "gone"):
        told = json.loads(run("check", "train.npz", f"{name}.npz", "--fail-above", "9", "--json", *MORE)[1])
        known = sotdd.distance("train.npz", f"{name}.npz", projections=projections)
        assert told["distance"]["value"] == pytest.approx(known.value, rel=1e-6)
    run("sketch", "train.npz", "-o", "train.sotdd", "-q")
    of_sketch = json.loads(run("check", "train.sotdd", "gone.npz", "--fail-above", "9", "--json")[1])
    assert of_sketch["distance"]["value"] == pytest.approx(told["distance"]["value"], rel=1e-3)
    run("sketch", "gone.npz", "-o", "gone.sotdd", "--like", "train.sotdd", "-q")
    assert run("check", "train.sotdd", "gone.sotdd", "--fail-above", "1", "-q")[0] == 1
    code, out, _ = run("check", "train.sotdd", "gone.sotdd", "--json")  # two sketches know their noise
    told = json.loads(out)
    assert (code, told["checks"][0]["criterion"], told["distance"]["within_noise"]) == (1, "noise", False)


def test_a_level(files, run):
    code, said, _ = run("check", "train.npz", "same.npz", "--p-value", "0.05", "--json", *MORE)
    told = json.loads(said)
    expected = sotdd.DriftReference.fit("train.npz", n_projections=200).test("same.npz", n_permutations=99)
    assert told["test"]["p_value"] == expected.p_value > 0.05
    assert (code, told["drifted"]) == (0, False)
    code, said, _ = run("check", "train.npz", "gone.npz", "--fail-above", "9", "--p-value", "0.05", "--json", *MORE)
    told = json.loads(said)
    assert [(check["criterion"], check["failed"]) for check in told["checks"]] == [
        ("distance", False), ("p_value", True)
    ]  # fmt: skip
    assert (code, told["drifted"], told["test"]["p_value"]) == (1, True, 0.01)
    code, said, _ = run("check", "train.npz", "gone.npz", *MORE)  # without options a test decides
    assert code == 1
    assert said.startswith("FAILED  drift: p = 0.01")
    assert re.search(r"^distance \S+ ± \S+; s-OTDD", said, re.MULTILINE)


@pytest.mark.parametrize(("factor", "kind"), [(10, "npz"), (10, "csv"), (1e25, "npz"), (1e200, "csv")])
def test_a_disaster_in_one_feature_never_passes(rng, tmp_path, monkeypatch, run, factor, kind):
    """One feature of 20 scaled 10 × passed as within noise; beyond float32 it "could not"."""
    monkeypatch.chdir(tmp_path)
    for name in ("reference", "current"):
        x, y = rng.normal(size=(300, 20)), rng.integers(3, size=300)
        x[:, 4] *= 1 if name == "reference" else factor
        if kind == "npz":
            np.savez(f"{name}.npz", X=x, y=y)
        else:
            header = ",".join([*(f"f{i}" for i in range(20)), "label"])
            np.savetxt(f"{name}.csv", np.c_[x, y], delimiter=",", header=header, comments="")
    assert run("check", f"reference.{kind}", f"current.{kind}", *MORE)[::2] == (1, "")
    assert run("check", f"reference.{kind}", f"current.{kind}", "--fail-above", "0.05", *MORE)[0] == 1


def test_test(files, run):
    code, said, errors = run("test", "train.npz", "gone.npz", *ENOUGH)
    assert (code, errors) == (0, "")
    expected = sotdd.test("train.npz", "gone.npz", n_permutations=99)
    assert repr(expected) in said
    assert "no difference was found" in run("test", "train.npz", "same.npz", *ENOUGH)[1]
    told = json.loads(run("test", "train.npz", "gone.npz", *ENOUGH, "--json")[1])
    assert told == {"a": "train.npz", "b": "gone.npz", **json.loads(json.dumps(expected.to_dict()))}
    few = json.loads(run("test", "train.npz", "gone.npz", "--max-points", "50", "--json", *FEW)[1])
    assert few["n_points"] == [50, 50]
    assert [remark["kind"] for remark in few["remarks"]].count("sampled") == 2


# --------------------------------------------------------------------------- a saved reference


def test_a_reference_is_made_and_described(reference, run):
    told = json.loads(run("reference", "train.csv", "-o", "b.ref", "--label", "kind", "--max-points", 50, "--json")[1])
    assert (told["n_points"], told["n_classes"], told["columns"]) == (50, 2, ["u", "v", "w", "z"])
    assert told["remarks"][0]["kind"] == "sampled"
    made = sotdd.DriftReference.load(reference)
    assert (made.name, made.settings) == ("train.csv", {"label": "kind"})


@pytest.mark.parametrize(
    ("batches", "code"),
    [(["same.csv"], 0), (["gone.csv"], 1), (["five.csv"], 2), (["missing.csv"], 2), (["same.csv", "again.csv"], 0),
     (["same.csv", "gone.csv", "missing.csv"], 1), (["same.csv", "missing.csv"], 2)],
)  # fmt: skip
def test_exit_codes(reference, run, batches, code):
    """0: passed; 1: drift, whatever else; 2: undecided. And with --json there is always one object."""
    ended, said, errors = run("check", reference, *batches, *FEW, "--json")
    assert ended == code
    told = json.loads(said)
    assert told["drifted"] is {0: False, 1: True, 2: None}[code]
    assert told["verdict"] == {0: "passed", 1: "drift", 2: "undecided"}[code]
    each = told["batches"] if len(batches) > 1 else [told]
    assert [one["current"] for one in each] == batches
    assert sum(one["verdict"] == "undecided" for one in each) == len(errors.splitlines())
    assert all(("error" in one) == (one["verdict"] == "undecided") for one in each)


def test_it_is_the_test_of_python(reference, run):
    told = json.loads(run("check", reference, "again.csv", *FEW, "--json")[1])
    kept = sotdd.DriftReference.load(reference)
    assert told["test"] == json.loads(json.dumps(kept.test("again.csv", n_permutations=39).to_dict()))
    assert told["distance"]["value"] == kept.distance("again.csv").value
    options = "--label", "kind", "--n-projections", 32
    by_data = json.loads(run("check", "train.csv", "again.csv", *options, *FEW, "--json")[1])
    assert (by_data["distance"], by_data["test"]) == (told["distance"], told["test"])


def test_several_batches_share_the_level_and_a_disaster_is_found_all_the_same(reference, run):
    """The level of each is 5 % of 3: 39 permutations cannot reach it, so more are made."""
    batches = ["same.csv", "gone.csv", "again.csv"]
    code, said, errors = run("check", reference, *batches, *FEW)
    assert (code, errors) == (1, "")
    assert re.findall(r"^(?:passed|FAILED)  [a-z]+\.csv", said, re.MULTILINE) == [
        "passed  same.csv", "FAILED  gone.csv", "passed  again.csv"
    ]  # fmt: skip
    assert "3 batches: 2 passed, 1 drifted" in said
    told = json.loads(run("check", reference, *batches, *FEW, "--json")[1])
    assert [one["test"]["n_null"] for one in told["batches"]] == [60, 60, 60]
    assert [one["checks"][0]["limit"] for one in told["batches"]] == [pytest.approx(0.05 / 3)] * 3
    assert run("check", reference, "gone.csv", "--p-value", "0.002", *FEW, "-q")[0] == 1


def test_too_few_points_do_not_pass_but_drift_is_drift(reference, run):
    code, _, errors = run("check", reference, "five.csv", *FEW)
    assert code == 2
    assert "only 5 points" in errors
    assert run("check", reference, "five.csv", "--min-points", 5, *FEW, "-q")[0] == 0
    rows = np.column_stack([np.full((6, 4), 9.0), np.ones(6)])
    np.savetxt("far.csv", rows, delimiter=",", header="u,v,w,z,kind", comments="")
    assert run("check", reference, "far.csv", *FEW, "-q")[0] == 1
    assert run("check", "five.csv", "same.csv", "--label", "kind", *FEW, "-q")[0] == 2  # the reference itself


def test_a_column_that_is_stuck_is_drift(reference, run):
    """A constant at the middle of a column moves little in any direction: 50 points of it passed in 78 of 100 cases."""
    rows = np.loadtxt("same.csv", delimiter=",", skiprows=1)
    rows[:40, 2] = 0.0
    np.savetxt("stuck.csv", rows[:40], delimiter=",", header="u,v,w,z,kind", comments="")
    code, said, errors = run("check", reference, "stuck.csv", *FEW)
    assert (code, errors) == (1, "")
    assert re.search(r"^FAILED  drift: p = 0.025 \(level 5 %\), most by .*; 1 column changed$", said, re.M)
    assert re.search(r"^w +constant.* 0 in 0 % → 100 % of rows", said, re.M)
    told = json.loads(run("check", reference, "stuck.csv", "same.csv", *FEW, "--json")[1])
    assert [one["verdict"] for one in told["batches"]] == ["drift", "passed"]
    assert [(one["criterion"], one["failed"]) for one in told["batches"][0]["checks"]] == [("p_value", True)]
    assert told["batches"][0]["changes"]["columns"][0]["column"] == "w"


def test_a_batch_of_which_little_is_left_does_not_pass(files, rng, run):
    for name, size, gaps in [("whole", 300, 6), ("hollow", 200, 180), ("thin", 200, 60), ("usual", 200, 12)]:
        x = rng.normal(size=(size, 2))
        x[:gaps, 1] = np.nan
        rows = [f"{a},{'' if np.isnan(b) else b},{int(a > 0)}" for a, b in x]
        Path(f"{name}.csv").write_text("\n".join(["u,v,kind", *rows]) + "\n")
    assert run("reference", "whole.csv", "-o", "whole.ref", "--label", "kind", "--missing", "drop")[0] == 0
    code, _, errors = run("check", "whole.ref", "hollow.csv", *FEW)
    assert code == 2
    assert "180 of 200 rows" in errors
    code, _, errors = run("check", "whole.ref", "thin.csv", *FEW)
    assert code != 0
    assert "60 of 200 rows lack a value or a label" in errors
    assert "lack a value" not in run("check", "whole.ref", "usual.csv", *FEW)[2]


def test_a_name_makes_no_row_of_its_own(files, run):
    odd = "same\rforged,passed\x1b[31m\u202e.csv"
    os.rename("same.csv", odd)
    code, said, _ = run("rank", "gone.csv", "again.csv", odd, "--csv")
    assert code == 0
    assert not {"\r", "\x1b", "\u202e"} & set(said)
    header, *rows = csv.reader(said.splitlines())
    assert [len(row) for row in rows] == [len(header)] * 2


def test_classes_that_the_reference_does_not_have_are_named(reference, rng, run):
    x = rng.normal(size=(80, 4))
    names = np.where(np.arange(80) % 2 == 0, "brand new", (x[:, 0] > 0).astype(float).astype(str))
    lines = [",".join([*map(str, row), name]) for row, name in zip(x, names, strict=True)]
    Path("fresh.csv").write_text("\n".join(["u,v,w,z,kind", *lines]) + "\n")
    assert "does not have: brand new" in run("check", reference, "fresh.csv", *FEW)[1]


# --------------------------------------------------------------------------- the log


def test_the_log_has_a_line_for_every_batch(reference, run, monkeypatch):
    os.rename("same.csv", 'a "day".csv')
    run("check", reference, 'a "day".csv', "gone.csv", "missing.csv", *ENOUGH, "--log", "gate.log", "-q")
    run("check", reference, "again.csv", *ENOUGH, "--log", "gate.log", "-q")
    lines = [json.loads(line) for line in Path("gate.log").read_text(encoding="utf-8").splitlines()]
    assert [line["verdict"] for line in lines] == ["passed", "drift", "undecided", "passed"]
    assert all(re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", line["date"]) for line in lines)
    assert (lines[0]["batch"], lines[0]["reference"], lines[0]["points"]) == ('a "day".csv', "train.ref", 80)
    assert (lines[1]["p"], lines[1]["level"]) == (0.01, 0.0166667)
    assert lines[2]["error"].startswith("there is no file missing.csv")
    entries = read_history(Path("gate.log"), reference)
    assert [entry["batch"] for entry in entries] == ['a "day".csv', "gone.csv", "missing.csv", "again.csv"]
    assert read_history(Path("gate.log"), "other.ref") == []
    os.mkdir("sub")  # the history goes on from another folder
    monkeypatch.chdir("sub")
    run("check", "../train.ref", "../again.csv", "--log", "../gate.log", "--report", "page.html", *ENOUGH)
    assert "Over time" in Path("page.html").read_text(encoding="utf-8")


def test_lines_of_many_writers_do_not_mix(tmp_path):
    path = tmp_path / "log"
    code = (
        "import sys; from pathlib import Path; from sotdd.drift.gate import append_lines\n"
        "path, text = Path(sys.argv[1]), sys.argv[2] * 300\n"
        'for k in range(50): append_lines(path, [f\'"verdict": "{text} {k}\\n\'] * 3)'
    )
    writers = [subprocess.Popen([sys.executable, "-c", code, path, letter]) for letter in "ab"]
    assert [writer.wait() for writer in writers] == [0, 0]
    lines = [line for line in path.read_text().splitlines() if line]
    assert len(lines) == 300
    assert all(re.fullmatch(r'"verdict": "(a{300}|b{300}) \d+', line) for line in lines)


def test_a_line_that_was_cut_short_is_left_alone(tmp_path):
    path = tmp_path / "log"
    path.write_text('{"date": "2026-01-01T00:00:00Z", "verdict": "pas')
    whole = json.dumps({"date": "2026-01-02T00:00:00Z", "verdict": "drift", "reference": "r"})
    append_lines(path, [f"{whole}\n"])
    assert path.read_text().splitlines()[1] == whole
    path.write_bytes(path.read_bytes() + b'\xff\x00 = "\n{"verdict": "drift", "reference": "r"}\n[1]\n' + b"[" * 9999)
    assert [entry["date"] for entry in read_history(path, "r")] == ["2026-01-02T00:00:00Z"]


# --------------------------------------------------------------------------- how often it is right


def draws(rng, n, law):
    return {
        "one feature, t3": lambda: (rng.standard_t(3, size=(n, 1)), rng.integers(2, size=n)),
        "200 classes": lambda: (rng.normal(size=(n, 3)), rng.integers(200, size=n)),
    }[law]()


@pytest.mark.parametrize("law", ["one feature, t3", "200 classes"])
def test_clean_batches_pass_and_disasters_do_not(law):
    """Of 24 clean commands at 5 % more than 5 fail once in 1,300; every disaster is found, at any size."""
    from benchmarks.gate import gate_of, verdict

    clean, disasters = [], []
    for seed in range(8):
        rng = np.random.default_rng([seed, len(law)])
        gate = gate_of(draws(rng, 100, law), seed)
        clean += [verdict(gate, [draws(rng, 12, law)], 39), verdict(gate, [draws(rng, 80, law)], 39)]
        clean.append(verdict(gate, [draws(rng, 30, law), draws(rng, 40, law), draws(rng, 20, law)], 39))
        if seed < 2:
            x, y = draws(rng, 25, law)
            disasters += [verdict(gate, [draws(rng, 20, law), (x + 8, y)], 39), verdict(gate, [(50 * x + 9, y)], 39)]
    assert clean.count("drift") <= 5
    assert set(clean) <= {"passed", "drift"}
    assert set(disasters) == {"drift"}


def test_a_monitor_goes_on_where_its_log_ends(reference, run):
    for name in ("same.csv", "again.csv", "gone.csv"):  # a fifth of the reference at most
        Path(name).write_text("".join(Path(name).read_text().splitlines(keepends=True)[:41]))
    first = ("monitor", reference, "same.csv", "five.csv", "none.csv", "--log", "m.log", *FEW, "-q")
    code, said, errors = run(*first)
    assert (code, errors) == (2, "")
    assert said.startswith("passed  same.csv: no drift so far: evidence ")
    assert "undecided  five.csv: the batch has only 5 points" in said
    assert "undecided  none.csv: " in said
    told = json.loads(run("monitor", reference, "again.csv", "--log", "m.log", *FEW, "--json")[1])
    assert (told["verdict"], told["monitor"]["n_batches"], told["monitor"]["run_length"]) == ("passed", 2, 200)
    assert told["checks"][0]["value"] == told["monitor"]["total"]
    code, said, _ = run("monitor", reference, "gone.csv", "--log", "m.log", "--n-permutations", 99)
    assert code == 1
    assert said.startswith("FAILED  drift: evidence ")
    assert re.search(r"^u +moved", said, re.M)  # the columns that changed
    assert "3 batches so far, 200 to a false alarm on average (" in said
    states = [json.loads(line)["monitor"]["n_batches"] for line in Path("m.log").read_text().splitlines()]
    assert states == [1, 1, 1, 2, 3]
    for arguments, problem in [
        ((reference, "same.csv", "--run-length", "50"), "another run length, 200 and not 50"),
        (("again.csv", "five.csv", "--label", "kind"), "another reference"),
        (("a.sotdd", "same.csv"), "a.sotdd"),
    ]:
        code, said, errors = run("monitor", *arguments, "--log", "m.log")
        assert (code, said, errors.count("\n"), problem in errors) == (2, "", 1, True), errors


def test_files_for_pipelines(reference, run):
    Path("odd <&\x1b.csv").write_bytes(Path("gone.csv").read_bytes())
    batches = ("same.csv", "odd <&\x1b.csv", "five.csv")
    code, _, _ = run(
        "check", reference, *batches, "--junit", "j.xml", "--summary", "s.json", "--report", "r.html", *MORE[:2]
    )
    assert code == 1
    suite = ElementTree.parse("j.xml").getroot()
    assert (suite.get("tests"), suite.get("failures"), suite.get("errors")) == ("3", "1", "1")
    passed, failed, undecided = suite
    assert (passed.get("name"), len(passed)) == ("same.csv", 0)
    assert failed.get("name") == r"odd <&\x1b.csv"
    assert failed[0].get("message").startswith("drift: p = ")
    assert "u: moved, mean " in failed[0].text
    assert "only 5 points" in undecided.find("error").get("message")
    told = json.loads(Path("s.json").read_text())
    assert (told["verdict"], told["report"], len(told["batches"])) == ("drift", "r.html", 3)
    assert told["text"].startswith("train.ref: 1 passed, 1 drifted, 1 undecided (")
    assert told["batches"][1]["columns"][0].startswith("u: moved")
    assert told["batches"][1]["p"] == 0.01
    code, said, errors = run("check", reference, "same.csv", "--junit", "no/j.xml")
    assert (code, said, "no/j.xml" in errors) == (2, "", True)
