"""Every benchmark runs at a small size, and measures what it says."""

import json
import re
import subprocess
from dataclasses import replace

import numpy as np
import pytest
import torch
from benchmarks import (
    catalog,
    cluster_growth,
    core,
    decision_gate,
    decision_power,
    decisions,
    estimators,
    explaining,
    feature_causes,
    gate,
    label_choice,
    peers,
    plain_torch,
    privacy,
    ranking,
    scale,
    sketch_sizes,
    sketches,
    status,
    structured,
    synthetic,
    table_scale,
    trust,
)

import reference
import sotdd


def test_results_that_are_older_than_their_code_are_listed(tmp_path, monkeypatch):
    def commit(path, text):
        (tmp_path / path).write_text(text)
        for asked in (["add", "."], ["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", f"{path}, {text}"]):
            subprocess.run(["git", *asked], cwd=tmp_path, check=True)
        return status.ask_git("rev-parse", "--short", "HEAD")

    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    (tmp_path / "benchmarks" / "results").mkdir(parents=True)
    monkeypatch.setattr(status, "ROOT", tmp_path)
    monkeypatch.setattr(status.history, "show", lambda runs: {"commit": "HEAD", "measures": ["src"]})
    told = {"command": "true", "commit": commit("code.py", "1"), "machine": "x", "date": "2026-01-01"}
    told["measures"] = ["code.py"]
    result = tmp_path / "benchmarks" / "results" / "some.json"
    result.write_text(json.dumps(told))
    commit("other.py", "1")
    assert list(status.list_old()) == []
    commit("code.py", "2")
    (line,) = status.list_old()
    assert line.startswith(f"some ({told['commit']})")
    assert line.endswith("code.py, 2")
    result.write_text(json.dumps({**told, "commit": "0123456"}))  # of another clone
    assert "fatal" in next(status.list_old())


def test_the_tables_of_a_command_are_kept(tmp_path):
    says = "print('**Times**\\n\\n| n | ms |\\n|---|---|\\n| 10 | 3 |')"
    status.record(tmp_path / "times.json", ["src"], ["python", "-c", says])
    kept = json.loads((tmp_path / "times.json").read_text())
    assert kept["tables"] == {"Times": [["n", "ms"], ["10", "3"]]}
    assert {"command", "commit", "machine", "date", "measures"} < set(kept)


@pytest.mark.parametrize("m", [50, 37])
def test_plain_torch_computes_the_same_distance(rng, m):
    a = rng.normal(size=(50, 6)), rng.integers(0, 4, size=50)
    b = rng.normal(0.5, 1, size=(m, 6)), rng.integers(0, 3, size=m)
    drawn = reference.draw(rng, 30, 6)
    theirs = plain_torch.per_projection(
        *((torch.tensor(x), torch.tensor(y)) for x, y in (a, b)),
        *(torch.tensor(drawn[key]) for key in ("theta", "psi", "orders")),
    )
    ours = sotdd.distance(a, b, projections=sotdd.Projections.from_arrays(**drawn))
    np.testing.assert_allclose(ours.per_projection, theirs.numpy(), rtol=1e-4)


def test_power_is_that_of_the_public_test(rng):
    pair = tuple((rng.normal(size=(40, 5)) + 0.2 * side, rng.integers(3, size=40)) for side in range(2))
    settings = {"n_permutations": 39, "n_projections": 32, "seed": 5}
    found = decision_power.by_us(pair, *settings.values())
    assert found["combined"] == sotdd.test(*pair, device="cpu", **settings).p_value
    assert found["names matched"] == sotdd.test(*pair, device="cpu", label_names="match", **settings).p_value


def test_every_technique_estimates_the_same_distance(rng):
    pair = (
        (rng.normal(size=(40, 6)), rng.integers(0, 3, size=40)),
        (rng.normal(0.5, 1, size=(30, 6)), rng.integers(0, 2, size=30)),
    )
    _, truth = estimators.reference(pair, 2000, 1000)
    for measure in estimators.TECHNIQUES.values():
        found, _ = estimators.replicates(measure, pair, 8, 256)
        values = np.array([one.value for one in found])
        assert abs(values.mean() - truth.value) < 5 * values.std() / np.sqrt(8) + 4 * truth.stderr


def test_structured_directions_are_compared_with_the_sphere(rng):
    sides = [((rng.normal(moved, 1, size=(40, 300))), np.arange(40) % 3) for moved in (0.0, 0.3)]
    line = structured.measure("normal", *sides, count=1024)
    assert abs(line.apart(line.controlled)[0]) < 6 * line.apart(line.controlled)[1]


def test_trust_is_measured():
    both = trust.Both.of(dict(trust.all_pairs(pictures=False))["iris, moved"], 6, n_projections=256)
    assert both.controlled.error(both.truth) < both.plain.error(both.truth) < 0.2
    assert trust.summary({"iris": both})


@pytest.mark.parametrize("name", ranking.LAWS)
def test_rules_of_rankings_choose_what_changed_least(name):
    """Every rule finds the right source where the others changed this much."""
    law = replace(ranking.LAWS[name], sources=3, sizes=(300, 600), changes=(2.0, 2.0))
    found, held, size = ranking.measure(law, "any", 2)
    assert set(found.values()) == {0.0}
    assert held == 1.0
    assert size < 2


def test_gates_explanations_and_causes():
    found = gate.passed(2, (12,))
    assert found[1][1:] == ["100 ± 0.0", "0 ± 0.0"]  # three spreads away
    assert len(gate.alarms(1, ((2, 10),))) == 1 + len(gate.LAWS)
    assert "3 classes" in explaining.ratio(3, 1, n=100, d=5, count=64)
    assert feature_causes.hits("normal", "moved", 200, 3, 2)["ours"] == 1


@pytest.mark.slow
def test_core():
    small = {"n": 200, "d": 8, "count": 64}
    assert core.table([
        *core.product(1, **small),
        *core.default_call(1, n=200, d=8),
        *core.fitting(1, n=200, d=8),
        *core.against_torch(1, **small),
        *core.classes(1, n=2000, d=8, count=64),
        *core.growth(1, **small),
        *core.cores(1, n=200, d=8),
        *core.command_line(1),
        *core.memory(**small),
    ])  # fmt: skip


@pytest.mark.slow
def test_peers():
    found = peers.measure("otdd", {"max_points": 50}, 100, patience=120)
    assert re.fullmatch(r"[\d.e+-]+ s, -?[\d,]+ MB", found), found


@pytest.mark.slow
def test_sketches_and_their_sizes(tmp_path):
    assert sketches.speed(1, n=300, d=8, count=64)
    assert sketches.mixing(1, n=60, d=8, count=64, sources=4)
    assert sketches.files(n=600, d=8, count=64)
    fine, *others = (float(line.split("|")[4]) for line in sketches.summaries(20_000, 2, 5000).splitlines()[2:])
    assert fine < min(others)
    pair = sketch_sizes.pairs(tmp_path / "none", 60)["one feature, Student's t"]
    true = sotdd.distance(*pair, n_projections=512).value
    assert all(0 <= off < 1 for off, _ in sketch_sizes.errors(pair, 2, true, [(64, 16), (64, 8)]))


@pytest.mark.slow
def test_privacy(rng):
    names = ("mnist", "fashion_mnist", "kmnist", "emnist_letters", "one half", "the other")
    data = {name: (rng.normal(i / 2, 1, size=(900, 6)), rng.integers(3, size=900)) for i, name in enumerate(names)}
    line = privacy.by_budget(data, 2, count=8).splitlines()[2].split("|")
    few, *_, much = (float(cell.split("±")[0]) for cell in line[5:-1])
    assert abs(much - float(line[4])) < abs(few - float(line[4]))


@pytest.mark.slow
def test_decisions(monkeypatch):
    monkeypatch.setattr(decision_power, "CHANGES", ("nothing", "one class moved"))
    monkeypatch.setattr(decision_power, "sources", lambda: {"digits": decisions.laws()["digits"]})
    monkeypatch.setattr("benchmarks.decision_drift.DRIFTS", {})
    assert len(decisions.powers(1, n=60, n_permutations=19, n_projections=16)) == 3
    assert decisions.floors(1, sizes=((60, 30),), n_projections=32)
    assert decisions.stability(1, seeds=2, moves=(0.0, 2.0))[2][3:] == ["2", "0 of 2"]
    sample, _ = decision_gate.LAWS["one normal column"]
    monkeypatch.setattr(decision_gate, "LAWS", {"one normal column": (sample, ((60, 30),))})
    [_, line] = decisions.gates(2)
    assert line[:2] == ["one normal column", "60, 30"]
    assert len(decisions.run_lengths(1, n=50, m=10, batches=2, n_permutations=9)) == 5
    assert [line[1] for line in decisions.causes(1, n=150, dimensions=(2,))[3:]] == ["100 ± 0.0", "100 ± 0.0"]
    assert decisions.speed(sizes=(50,), turns=1)
    assert decisions.series(1, n=60, m=10, run_lengths=(2,))


@pytest.mark.slow
def test_catalogs(tmp_path):
    pytest.importorskip("lancedb")
    made = catalog.make_sketches(catalog.Tables(), 80, queries=4, n_projections=32, n_quantiles=40)
    found = catalog.measure(tmp_path / "catalog", *made)
    assert found["recall at 10"] >= 0.95


@pytest.mark.slow
def test_a_cluster_of_processes_loses_no_row_with_a_worker():
    """The benchmark itself compares the counts of all classes with those that were drawn."""
    hit = cluster_growth.run(6000, kills=1, features=3, count=16, size=500)
    assert (hit.rows, hit.killed, hit.batches) == (6000, 1, 12)
    assert hit.sketch.n_points == 6000


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:The inplace keyword in DataFrame.reset_index")  # Dask calls pandas so
def test_large_data(tmp_path):
    paths = scale.write(tmp_path, 3, rows=1000)
    assert min(scale.stream(paths, 64)) > 0
    assert scale.two_workers(paths, 1, count=64)


@pytest.mark.slow
@pytest.mark.usefixtures("small_data_by_default")
def test_label_terms(rng):
    sizes = label_choice.Sizes(repeats=2, points=30, projections=64, pairs=3, few=20)
    rows = [{name: str(value) for name, value in row.items()} for row in label_choice.judge("iris", sizes)]
    found = list(label_choice.report(rows))
    assert sum(line.startswith("| tables, tuned on |") for line in found) == len(label_choice.CHANGES) + 4
    values, drawn = rng.normal(size=(2, 50)).astype(np.float32), label_choice.Fourier(0.7, 2.0).draw(rng, 2)
    weights, frequencies, phases = drawn.coefficients[1].reshape(3, 5)
    waves = np.sqrt(2) * np.cos(values[1][:, None] * frequencies + phases)
    assert drawn.summary(values, drawn.coefficients)[1] == pytest.approx(np.mean(waves @ weights), rel=1e-4)


def test_scales_of_tables(tmp_path):
    """On generated tables: candidates that do what they say, copies that are copies, and what tails hide."""
    sizes = table_scale.Sizes(rows=300, draws=1, copied_rows=300, copies=1, seeds=2, projections=64)
    [found] = table_scale.order_changes("customers", sizes, tmp_path)
    assert found["arcsinh", "label flips"] > 0.8
    assert len(found) == len(table_scale.CANDIDATES) * len(table_scale.CHANGES)
    [copies] = table_scale.order_copies("heavy", sizes, tmp_path)
    assert copies["arcsinh"]["train"] < copies["arcsinh"]["independent"]
    assert copies["as before"]["train"] > 2 * copies["arcsinh"]["train"]  # by tails alone
    frame = table_scale.read_table("heavy", tmp_path)
    data = table_scale.open_tables([frame[:500], frame[500:900]], "of")
    scores = np.concatenate(table_scale.score_ranks(data))
    np.testing.assert_allclose(scores.std(axis=0), 1, atol=0.02)
    assert max(np.abs(part).max() for part in table_scale.clip_tails(data)) == 5
    copula = table_scale.copy_by_copula(frame, np.random.default_rng(0))
    ranks, theirs = (part.rank().corr().to_numpy() for part in (frame.drop(columns="of"), copula.drop(columns="of")))
    np.testing.assert_allclose(theirs, ranks, atol=0.1)
    assert set(copula["a"]) <= set(frame["a"])


def test_synthetic_tables_are_judged():
    train, holdout, tables = synthetic.make_tables(seed=0)
    assert [*tables] == ["fresh rows", "copula", "independent", "jitter", "memorised"]
    assert tables["copula"].shape == train.shape
    assert np.allclose(*(one.corr("spearman") for one in (tables["copula"], train)), atol=0.25)
    found = synthetic.judge(train, holdout, {name: tables[name] for name in ("fresh rows", "memorised")})
    assert found["copies found"].tolist() == [0, 1]
    assert found["nearer to train"].iloc[1] == 1
