"""The commands test and check, as a user or a pipeline runs them."""

import json
import subprocess
import sys

import numpy as np
import pytest

import sotdd

FEW = ("--n-projections", "200")


@pytest.fixture
def files(rng, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, size, shift in [("reference", 400, 0), ("same", 100, 0), ("moved", 100, 1), ("gone", 120, 8)]:
        x = rng.normal(size=(size, 4))
        np.savez(f"{name}.npz", X=x + np.array([shift, 0, 0, 0]), y=np.where(x[:, 0] > 0, "cat", "dog"))
    return tmp_path


def loaded(name):
    with np.load(f"{name}.npz") as arrays:
        return arrays["X"], arrays["y"]


def test_a_limit(files, run):
    code, said, errors = run("check", "reference.npz", "same.npz", "--fail-above", "0.2", *FEW)
    assert (code, errors) == (0, "")
    assert said.startswith("passed  ")
    assert " from reference.npz to same.npz, at most 0.2\n" in said
    code, said, errors = run("check", "reference.npz", "moved.npz", "--fail-above", "0.2", *FEW)
    assert (code, errors) == (1, "")
    assert said.startswith("FAILED  ")
    assert "more than 0.2" in said


def test_for_a_pipeline(files):
    """The exit code is that of the process, and what it prints is JSON."""
    done = subprocess.run(
        [sys.executable, "-m", "sotdd", "check", "reference.npz", "moved.npz", "--fail-above", "0.2", "--json"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (1, "")
    told = json.loads(done.stdout)
    assert (told["reference"], told["current"], told["drifted"]) == ("reference.npz", "moved.npz", True)
    (only,) = told["checks"]
    assert (only["criterion"], only["limit"], only["failed"]) == ("distance", 0.2, True)
    assert only["value"] == told["distance"]["value"] > 0.2


def test_units_are_those_of_the_reference(files, run):
    """However far the current data have gone, they do not change what one unit is."""
    reference = loaded("reference")
    projections = sotdd.Projections.fit([reference], n_projections=200)
    for name in ("moved", "gone"):
        told = json.loads(run("check", "reference.npz", f"{name}.npz", "--fail-above", "9", "--json", *FEW)[1])
        expected = sotdd.distance(reference, loaded(name), projections=projections)
        assert told["distance"]["value"] == expected.value
    run("sketch", "reference.npz", "-o", "reference.sotdd", *FEW, "-q")
    of_sketch = json.loads(run("check", "reference.sotdd", "gone.npz", "--fail-above", "9", "--json")[1])
    assert of_sketch["distance"]["value"] == pytest.approx(told["distance"]["value"], rel=1e-6)
    run("sketch", "gone.npz", "-o", "gone.sotdd", "--like", "reference.sotdd", "-q")
    assert run("check", "reference.sotdd", "gone.sotdd", "--fail-above", "1", "-q")[0] == 1


def test_a_level(files, run):
    settings = ["--p-value", "0.05", "--n-permutations", "99", "--json", *FEW]
    code, said, _ = run("check", "reference.npz", "same.npz", *settings)
    told = json.loads(said)
    expected = sotdd.DriftReference.fit(loaded("reference")).test(loaded("same"), n_permutations=99)
    assert told["test"]["p_value"] == expected.p_value > 0.05
    assert (code, told["drifted"]) == (0, False)
    code, said, _ = run("check", "reference.npz", "moved.npz", "--fail-above", "9", *settings)
    told = json.loads(said)
    assert [(check["criterion"], check["failed"]) for check in told["checks"]] == [
        ("distance", False), ("p_value", True)
    ]  # fmt: skip
    assert (code, told["drifted"], told["test"]["p_value"]) == (1, True, 0.01)
    said = run("check", "reference.npz", "moved.npz", "--p-value", "0.05", "--n-permutations", "99", *FEW)[1]
    assert said.startswith("FAILED  drift at a level of 5 % (p = 0.01")
    assert " from reference.npz to moved.npz; s-OTDD" in said.splitlines()[1]


def test_without_options_a_test_decides_and_the_size_is_beside_it(files, run):
    code, said, _ = run("check", "reference.npz", "same.npz", "--n-permutations", "99", *FEW)
    assert code == 0
    assert said.startswith("passed  no drift at a level of 5 % (p = ")
    assert " from reference.npz to same.npz; s-OTDD" in said
    code, said, _ = run("check", "reference.npz", "moved.npz", "--n-permutations", "99", *FEW, "--json")
    told = json.loads(said)
    assert (code, told["drifted"], told["checks"][0]["criterion"]) == (1, True, "p_value")
    assert told["checks"][0]["limit"] == 0.05
    assert told["distance"]["value"] > 0


@pytest.mark.parametrize("factor", [10, 30, 1e25, 1e200])
@pytest.mark.parametrize("kind", ["npz", "csv"])
def test_a_disaster_in_one_feature_never_passes(rng, tmp_path, monkeypatch, run, factor, kind):
    """One feature of 20 scaled 10 or 30 × passed as within noise; beyond float32 it "could not"."""
    monkeypatch.chdir(tmp_path)
    for name in ("reference", "current"):
        x, y = rng.normal(size=(300, 20)), rng.integers(3, size=300)
        x[:, 4] *= 1 if name == "reference" else factor
        if kind == "npz":
            np.savez(f"{name}.npz", X=x, y=y)
        else:
            header = ",".join([*(f"f{i}" for i in range(20)), "label"])
            np.savetxt(f"{name}.csv", np.c_[x, y], delimiter=",", header=header, comments="")
    code, said, errors = run("check", f"reference.{kind}", f"current.{kind}", "--n-permutations", "99", *FEW)
    assert (code, errors) == (1, "")
    assert said.startswith("FAILED  drift")
    code, said, _ = run("check", f"reference.{kind}", f"current.{kind}", "--fail-above", "0.05", *FEW)
    assert code == 1


@pytest.mark.slow
def test_clean_batches_alarm_at_the_stated_rate(rng, tmp_path, monkeypatch, run):
    """20 clean batches gave 4 alarms; at 5 % five or more have a chance of 0.3 %."""
    monkeypatch.chdir(tmp_path)
    draw = lambda n: {"X": rng.standard_t(3, size=(n, 5)), "y": rng.integers(4, size=n)}  # noqa: E731
    np.savez("reference.npz", **draw(400))
    alarms = 0
    for _ in range(20):
        np.savez("batch.npz", **draw(100))
        alarms += run("check", "reference.npz", "batch.npz", "--n-permutations", "99", "-q")[0]
    assert alarms <= 4


def test_names_count_on_request(files, run):
    x, y = loaded("same")
    np.savez("swapped.npz", X=x, y=np.where(y == "cat", "dog", "cat"))
    settings = ("--n-permutations", "99", "-q")
    assert run("check", "reference.npz", "swapped.npz", *settings)[0] == 0
    assert run("check", "reference.npz", "swapped.npz", "--label-names", "match", *settings)[0] == 1
    assert (
        run("test", "reference.npz", "swapped.npz", "--label-names", "match", "--json", *settings)[1].count(
            "classes by name"
        )
        > 0
    )


def test_a_close_call_says_so(files, run):
    told = json.loads(run("check", "reference.npz", "moved.npz", "--fail-above", "9", "--json", *FEW)[1])
    limit = f"{told['distance']['value']:.3f}"
    assert (
        "use more projections to be sure" in run("check", "reference.npz", "moved.npz", "--fail-above", limit, *FEW)[1]
    )


def test_test(files, run):
    code, said, errors = run("test", "reference.npz", "moved.npz", "--n-permutations", "99")
    assert (code, errors) == (0, "")
    expected = sotdd.test(loaded("reference"), loaded("moved"), n_permutations=99)
    assert repr(expected) in said
    assert "not one source, at a level of 5 %: 1 % of shuffles are as far apart" in said
    assert "not ruled out" in run("test", "reference.npz", "same.npz", "--n-permutations", "99")[1]
    told = json.loads(run("test", "reference.npz", "moved.npz", "--n-permutations", "99", "--json")[1])
    assert told == {"a": "reference.npz", "b": "moved.npz", **json.loads(json.dumps(expected.to_dict()))}
    few = json.loads(run("test", "reference.npz", "moved.npz", "--max-points", "50", "--json")[1])
    assert few["n_points"] == [50, 50]
    assert "were sampled" in few["remarks"][0]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["check", "reference.npz", "same.npz", "--fail-above", "nan"], "--fail-above is nan"),
        (["check", "reference.npz", "same.npz", "--fail-above", "-1"], "--fail-above is -1"),
        (["check", "reference.npz", "same.npz", "--p-value", "5"], "--p-value is 5"),
        (["check", "reference.npz", "missing.npz"], "there is no file missing.npz"),
        (["check", "s.sotdd", "same.npz", "--p-value", "0.1"], "give the data, or leave --p-value out"),
        (["check", "s.sotdd", "same.npz", "--fail-above", "1", "--p-value", "0.1"], "no points to shuffle"),
        (["check", "reference.npz", "same.npz", "--label-names", "yes"], "--label-names is 'yes'"),
        (
            ["check", "reference.npz", "s.sotdd", "--fail-above", "1"],
            "or sketch the reference, and then this one --like it",
        ),
        (["check", "s.sotdd", "same.npz", "--fail-above", "1", "--seed", "3"], "--seed cannot be chosen for a sketch"),
        (["test", "s.sotdd", "same.npz"], "'s.sotdd' is a sketch, which has no points to shuffle"),
        (["test", "reference.npz", "same.npz", "--n-permutations", "0"], "--n-permutations is 0"),
        (["test", "reference.npz", "same.npz", "--statistic", "mean"], "--statistic is 'mean'"),
    ],
)
def test_errors_are_one_line_and_exit_code_2(files, run, arguments, said):
    run("sketch", "reference.npz", "-o", "s.sotdd", "-q", *FEW)
    code, output, errors = run(*arguments)
    assert (code, output) == (2, "")
    assert len(errors.splitlines()) == 1, errors
    assert said in errors
