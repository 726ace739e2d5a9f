"""A small part of the attack of ``tests/attack``: odd calls, altered files, a brute force, a killed command."""

import inspect
import os

import pytest

import sotdd
from attack import calls, files, run
from project import brute_force

GOOD = ("result", "refused")


@pytest.fixture(scope="module", autouse=True)
def folder(tmp_path_factory):
    """The current folder has the files that calls name."""
    before = os.getcwd()
    folder = tmp_path_factory.mktemp("fuzz")
    os.chdir(folder)
    calls.write_files()
    yield folder
    os.chdir(before)


def test_every_public_function_is_in_the_table():
    functions = {f"sotdd.{name}" for name in sotdd.__all__ if inspect.isfunction(getattr(sotdd, name))}
    assert functions
    assert functions <= set(calls.CALLS)


def test_outcomes_are_judged(monkeypatch):
    """The guard itself: what must not pass does not."""
    assert calls.run_line("sotdd.distance(points(), points(5), n_projections=4)") == "result"
    assert calls.run_line("sotdd.distance(points(), 5)") == "refused"
    assert "ZeroDivisionError" in calls.run_line("1 / 0")
    assert "changed" in calls.run_line("torch.rand(1)")
    assert "Warning" in calls.run_line("warnings.warn('x')")
    assert "not in one line" in calls.run_line("(_ for _ in ()).throw(sotdd.SotddError(''))")
    monkeypatch.delitem(vars(calls), "pl")
    assert calls.run_line("pl.Series([1])") == "skipped"


@pytest.mark.parametrize(
    "line",
    [
        "seen_through().draw(64 * 10**400, 4)",
        "sotdd.DriftReference.fit(array([-1e300, -9e299]))",
        "sotdd.flow(pair(), pair(), steps=2, snapshots=[[1]])",
        "sotdd.pairwise([pair(), pair()], method=pd.NA)",
        "sotdd.Scaler(centre=zeros(2), scale=1.0, arcsinh=Decimal('sNaN'))",
        "sotdd.pairwise([pair(), pair()], n_projections='3')",
        "sotdd.open_dataset(text(b'{\"u\": \"\\xff\"}\\n', '.jsonl'))",
        "sotdd.open_dataset(text('u,v,label\\n' + '1,2,a\\n3,4,b\\n' * 30 + '--1,2,a\\n'))",
    ],
)
def test_what_an_attack_found_is_mended(line):
    assert calls.run_line(line) in GOOD


@pytest.mark.first(2)
@pytest.mark.parametrize("part", range(8))
def test_odd_arguments_give_a_result_or_one_line(part):
    found = {line: calls.run_line(line) for line in map(calls.draw, range(100 * part, 100 * part + 100))}
    assert {line: said for line, said in found.items() if said not in GOOD} == {}


def test_altered_tables_give_a_result_or_one_line(folder):
    found = {number: files.run_file(number, folder, files.TABLES) for number in range(160)}
    assert {said for _, said in found.values()} >= set(GOOD)
    assert {number: said for number, said in found.items() if said[1] not in GOOD} == {}


@pytest.mark.slow
def test_processes_that_end_or_hang_are_findings(folder, monkeypatch):
    """The attack goes on with the next case."""
    monkeypatch.setattr(run, "_MOST_SECONDS", 2)
    lines = ["import_module('os').abort()", "import_module('time').sleep(9)", "points(3)"]
    cases = iter([("numbers", 3), *(("calls", line) for line in lines)])
    tally = run.run_all(cases, 1, 60, folder, {})
    assert [one["outcome"] for one in tally.findings] == ["ended: -6", "took more than 2 s"]
    assert tally.counts == {"calls": {"findings": 2, "result": 1}, "numbers": {"agrees": 1}}


@pytest.mark.slow
def test_a_killed_command_leaves_whole_files(folder, monkeypatch):
    few = {name: run.COMMANDS[name] for name in ("sketch", "reference", "check")}
    monkeypatch.setattr(run, "COMMANDS", few)
    whole = folder / "whole"
    whole.mkdir()
    took = run.prepare_commands(whole)
    found = [run.run_kill(number, whole, took) for number in range(3)]
    assert [said for said in found if said[1] not in ("killed", "finished before")] == []
    (whole / "data.sotdd").write_bytes((whole / "data.sotdd").read_bytes()[:-9])
    with pytest.raises(sotdd.SotddError, match="not a whole sketch"):
        run.check_files(whole)


@pytest.mark.parametrize("part", range(2))
def test_random_settings_agree_with_a_brute_force(part):
    found = [brute_force.wrong(seed) for seed in range(part, 200, 2)]
    assert found.count("refused") < 0.1 * len(found)
    assert [said for said in found if said not in (None, "refused")] == []
