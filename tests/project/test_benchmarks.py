"""The benchmarks run, and their yardstick computes the same distance."""

import re

import numpy as np
import pytest
import torch
from benchmarks import (
    catalog,
    cluster_growth,
    core,
    decision_power,
    decisions,
    estimators,
    explaining,
    feature_causes,
    gate,
    label_choice,
    label_families,
    labels,
    peers,
    plain_torch,
    privacy,
    scale,
    sketch_sizes,
    sketches,
    structured,
    trust,
)

import reference
import sotdd
from sotdd.peers.methods import METHODS


@pytest.mark.parametrize("m", [50, 37])
def test_the_plain_reading_agrees(rng, m):
    a = rng.normal(size=(50, 6)), rng.integers(0, 4, size=50)
    b = rng.normal(0.5, 1, size=(m, 6)), rng.integers(0, 3, size=m)
    drawn = reference.draw(rng, 30, 6)
    theirs = plain_torch.per_projection(
        *((torch.tensor(x), torch.tensor(y)) for x, y in (a, b)),
        *(torch.tensor(drawn[key]) for key in ("theta", "psi", "orders")),
    )
    ours = sotdd.distance(a, b, projections=sotdd.Projections.from_arrays(**drawn))
    np.testing.assert_allclose(ours.per_projection, theirs.numpy(), rtol=1e-4)


@pytest.mark.slow
def test_the_benchmark_of_peers_runs_at_a_small_size():
    assert {method for method, _ in peers.METHODS.values()} == {"sotdd", *METHODS}
    found = peers.measure("otdd", {"max_points": 50}, 100, patience=120)
    assert re.fullmatch(r"[\d.e+-]+ s, -?[\d,]+ MB", found), found
    assert peers.measure("otdd", {}, 100, patience=0.01) == "over 0 s"
    assert peers.label_distances_ratio(100).endswith(" ×")


def test_the_benchmark_of_the_gate_counts_verdicts():
    found = gate.passed(2, (12,))
    assert [line[0] for line in found[1:]] == list(gate.DISASTERS)
    assert found[1][1:] == ["100 ± 0.0", "0 ± 0.0"]  # three spreads away
    assert len(gate.alarms(1, ((2, 10),))) == 1 + len(gate.LAWS)


@pytest.mark.slow
def test_the_benchmark_of_sizes_measures_errors_and_files(tmp_path):
    pair = sketch_sizes.pairs(tmp_path / "none", 60)["one feature, Student's t"]
    true = sotdd.distance(*pair, n_projections=512).value
    found = sketch_sizes.errors(pair, 2, true, [(64, 16, False), (64, 16, True)])
    assert len(found) == 3  # as sketches were before, and both ways
    assert all(0 <= off < 1 for off, _ in found)
    assert 0 < found[2][1] < found[1][1]


@pytest.mark.slow
def test_the_benchmark_of_sketches_runs_at_a_small_size():
    assert len(sketches.speed(1, n=300, d=8, count=64)) == 2
    assert len(sketches.files(n=600, d=8, count=64)) == 3
    found = sketches.summaries(n=20_000, rows=2, batch=5000)
    assert found.count("\n") == 5
    fine, *others = (float(line.split("|")[4]) for line in found.splitlines()[2:])
    assert fine < min(others)


@pytest.mark.slow
def test_the_benchmark_of_privacy_runs_at_a_small_size(rng):
    def images(shift, n=900):
        return rng.normal(shift, 1, size=(n, 6)), rng.integers(3, size=n)

    names = ("mnist", "fashion_mnist", "kmnist", "emnist_letters", "one half", "the other")
    data = {name: images(0.5 * number) for number, name in enumerate(names)}
    by_budget = privacy.by_budget(data, 2, count=8).splitlines()
    assert len(by_budget) == 8
    few, *_, much = (float(cell.split("±")[0]) for cell in by_budget[2].split("|")[5:-1])
    true = float(by_budget[2].split("|")[4])
    assert abs(much - true) < abs(few - true)
    assert privacy.by_size(data, 2, (500, 900)).count("\n") == 4


@pytest.mark.slow
def test_every_benchmark_runs_at_a_small_size():
    small = {"n": 200, "d": 8, "count": 64}
    lines = [
        *core.product(1, **small),
        *core.default_call(1, n=200, d=8),
        *core.fitting(1, n=200, d=8),
        *core.sparse(1, n=200, d=300, per_point=3),
        *core.against_torch(1, **small),
        *core.classes(1, n=2000, d=8, count=64),
        *core.growth(1, **small),
        *core.cores(1, **small),
        *core.command_line(1),
        *core.memory(**small),
    ]
    assert len(lines) == 19
    assert all(any(digit.isdigit() for digit in line.measured) for line in lines)
    assert core.table(lines).count("\n") == 20


def test_structured_directions_are_compared_with_the_sphere(rng):
    """Turn by turn: three hundred features, so that directions are structured; and too few, so that they are not."""
    sides = [((rng.normal(moved, 1, size=(40, 300))), np.arange(40) % 3) for moved in (0.0, 0.3)]
    line = structured.measure("normal", *sides, count=1024)
    assert line.n_features == 300
    assert abs(line.apart(line.controlled)[0]) < 6 * line.apart(line.controlled)[1]
    assert line.row().count("|") == 8
    few = structured.measure("normal", *((x[:, :5], y) for x, y in sides), count=1024)
    assert abs(few.apart(few.controlled)[0]) < 6 * few.apart(few.controlled)[1]
    names = [name for name, _, _ in structured.hostile_pairs(30)]
    assert {"one-hot rows", "along axes", "rows of H itself"} <= set(names)


@pytest.mark.slow
@pytest.mark.usefixtures("small_data_by_default")
def test_the_benchmark_of_label_terms_measures_the_distance():
    trial = labels.Trial(3, 64, n_points=8)
    laws = {
        name: labels.LAWS[name]
        for name in (labels.PAPER, "no labels (sliced Wasserstein)", "quantiles, 16 levels", "cosines, weight 2")
    }
    by_seed = [trial.measure(laws, seed) for seed in (0, 1)]
    for name, law in laws.items():
        (i, j), costs = trial.real[0], by_seed[1][name].real[0]
        a, b = trial.sides[i].pair, trial.sides[j].pair
        direct = sotdd.distance(a, b, label_law=law, n_projections=64, scale=trial.scaler, seed=1, estimator="plain")
        np.testing.assert_allclose(direct.per_projection, costs, rtol=1e-4, atol=1e-8)
        lines = labels.judge(trial, name, by_seed)
        assert len(lines) == (3 if name in labels.AGGREGATED else 1)
        assert all(line.cells().count("|") == labels.HEADER.splitlines()[0].count("|") for line in lines)
    assert not by_seed[0]["no labels (sliced Wasserstein)"].permuted.any()
    assert labels.cost(labels.Moments(), n=200, n_projections=64, repeats=1) > 0


@pytest.mark.slow
def test_the_benchmark_of_decisions_runs_at_a_small_size(monkeypatch):
    """One simulation of everything; shares that must hold at any size do."""
    few = ("nothing", "one class moved", "two names swapped")
    monkeypatch.setattr(decision_power, "CHANGES", few)
    monkeypatch.setattr(decision_power, "sources", lambda: {"digits": decisions.laws()["digits"]})
    powers = decisions.powers(1, n=60, n_permutations=19, n_projections=16)
    assert [line[1] for line in powers[1:]] == list(few)
    assert all(len(line) == 8 and " / " in line[-1] for line in powers[1:])
    floors = decisions.floors(1, sizes=((60, 30),), n_projections=32)
    assert [line[0] for line in floors[1:]] == list(decisions.laws())
    assert decisions.stability(1, seeds=2, moves=(0.0, 2.0))[2][3:] == ["2", "0 of 2"]
    assert len(decisions.references(1, n=60, batches=(20,))) == 5
    assert [line[1] for line in decisions.checks(4, n=60, m=30)[2:]] == ["100 ± 0.0", "100 ± 0.0"]
    assert len(decisions.ranking(1, n_projections=64)) == 7
    assert [line[1] for line in decisions.causes(1, n=150, dimensions=(2,))[3:]] == ["100 ± 0.0", "100 ± 0.0"]
    speed = decisions.speed(sizes=(50,), turns=1)
    assert speed[1][1].endswith(" ×")
    assert decisions.markdown(speed).count("\n") == 2


def test_series_of_batches_are_watched_to_the_first_alarm(monkeypatch):
    monkeypatch.setattr("benchmarks.decision_drift.DRIFTS", {})
    found = decisions.series(1, n=60, m=10, run_lengths=(2,))
    assert [line[:2] for line in found[1:]] == [["nothing", "2"]]
    assert all(" ± " in cell for cell in found[1][2:])


def test_the_power_that_is_measured_is_that_of_the_public_test(rng):
    """Both ways to treat names come from one set of shuffles, which `sotdd.test` makes twice."""
    pair = tuple((rng.normal(size=(40, 5)) + 0.2 * side, rng.integers(3, size=40)) for side in range(2))
    settings = {"n_permutations": 39, "n_projections": 32, "seed": 5}
    found = decision_power.by_us(pair, *settings.values())
    assert found["combined"] == sotdd.test(*pair, device="cpu", **settings).p_value
    assert found["names matched"] == sotdd.test(*pair, device="cpu", label_names="match", **settings).p_value


@pytest.mark.slow
def test_the_benchmark_of_catalogs_runs_at_a_small_size(tmp_path):
    pytest.importorskip("lancedb")
    made = catalog.make_sketches(catalog.Tables(), 80, queries=4, n_projections=32, n_quantiles=40)
    found = catalog.measure(tmp_path / "catalog", *made)
    assert min(found["recall at 10 by excess"], found["recall at 10 by distance"]) >= 0.95


def test_the_benchmark_of_explanations_runs_at_a_small_size():
    found = explaining.ratio(3, 1, n=100, d=5, count=64)
    assert re.fullmatch(r"5 features, 3 classes: [\d.]+ ×, \d+% for features", found), found


def test_the_benchmark_of_causes_names_a_column_that_moved():
    found = feature_causes.hits("normal", "moved", 200, 3, 2)
    assert found["marginals"] == found["plan"] == found["ours"] == found["named"] == 1
    assert len(list(feature_causes.settings(False))) > len(list(feature_causes.settings(True)))


@pytest.mark.slow
def test_a_cluster_of_processes_loses_no_row_with_a_worker():
    """The benchmark itself compares the counts of all classes with those that were drawn."""
    hit = cluster_growth.run(6000, kills=1, features=3, count=16, size=500)
    assert (hit.rows, hit.killed, hit.batches) == (6000, 1, 12)
    assert hit.sketch.n_points == 6000
    assert hit.processor > 0
    assert hit.peak > 50
    assert hit.line().count("|") == cluster_growth.HEAD.splitlines()[0].count("|")
    assert all(cost > 0 for cost in cluster_growth.costs(3, rows=2000)[::2])


@pytest.mark.slow
def test_the_benchmark_of_large_data_runs_at_a_small_size(tmp_path):
    paths = scale.write(tmp_path, 5, rows=2000)
    lines = [
        *scale.one_process(paths, 1, count=64, count_for_memory=64),
        *scale.two_workers(paths, 1, count=64),
    ]
    assert len(lines) == 5
    assert all(any(digit.isdigit() for digit in line.measured) for line in lines)


def test_every_technique_measures_the_same_distance(rng):
    pair = (
        (rng.normal(size=(40, 6)), rng.integers(0, 3, size=40)),
        (rng.normal(0.5, 1, size=(30, 6)), rng.integers(0, 2, size=30)),
    )
    plain, controlled = estimators.reference(pair, 4000, 2000)
    assert abs(plain.value - controlled.value) < 4 * np.hypot(plain.stderr, controlled.stderr)
    for measure in estimators.TECHNIQUES.values():
        found, took = estimators.replicates(measure, pair, 8, 256)
        values = np.array([one.value for one in found])
        assert abs(values.mean() - controlled.value) < 5 * values.std() / np.sqrt(8) + 4 * controlled.stderr
        assert estimators.coverage(found, controlled.value) >= 0.5
        assert took > 0


# ------------------------------------------------------------------ label terms on every kind of data


SMALL = label_choice.Sizes(pairs=3, points=40, projections=64, repeats=1, covered=1, controlled=1, batches=4, batch=40)


@pytest.mark.slow
def test_label_terms_are_judged_on_tables():
    judged = {name: label_choice.judge(label_families.FAMILIES[name], SMALL) for name in ("tables", "8-pixel digits")}
    found = list(label_choice.tables(judged))
    assert len(found) == 7
    widths = {line.count("|") for text in found for line in text.splitlines() if line.startswith("|")}
    assert widths == {len(label_choice.TERMS) + 2}


@pytest.mark.slow
@pytest.mark.usefixtures("small_data_by_default")
def test_every_family_makes_pairs_in_scale():
    for name, family in label_families.FAMILIES.items():
        (first, second), rng = next(iter(family.pairs(1))), np.random.default_rng(0)
        both = np.concatenate([first[0], second[0]])
        assert np.sqrt(both.var(axis=0).mean()) == pytest.approx(1, rel=1.0 if "tables" in name else 1e-6)
        data, _ = family.parts(100, rng)
        for change, degrees in label_families.CHANGES.values():
            np.testing.assert_array_equal(change(data, 0, rng)[1], data[1])
            features, of = change(data, degrees[-1], rng)
            assert len(features) == len(of)
            assert of.shape != data[1].shape or (of != data[1]).any() or (features != data[0]).any()


def test_a_cut_of_the_feature_too_is_nearer_than_one_of_the_label_alone(rng):
    pair = (rng.standard_t(2, size=(60, 3)), np.arange(60) % 2), (rng.standard_t(2, size=(50, 3)), np.arange(50) % 3)
    inside, whole = (label_choice.costs(pair, term, 64, 0) for term in (label_choice.DEFAULT, "cut at 5, feature too"))
    assert whole.mean() < inside.mean()


def test_errors_and_intervals_of_known_costs(rng):
    costs = rng.exponential(size=100_000)
    assert label_choice.relative_error(costs) == pytest.approx(0.5 / np.sqrt(1000), rel=0.05)


def test_trust_is_measured_at_a_small_size():
    pair = dict(trust.all_pairs(pictures=False))["iris, moved"]
    both = trust.Both.of(pair, 6, n_projections=256)
    assert abs(both.apart) < 6
    assert both.controlled.error(both.truth) < both.plain.error(both.truth) < 0.2
    assert trust.default_row("iris", both).count("|") == trust.DEFAULT_HEADER.splitlines()[0].count("|")
    assert trust.paper_row("iris", both).count("|") == trust.PAPER_HEADER.splitlines()[0].count("|")
    row = trust.tolerance_row("iris", "moments", "plain", 0.05, pair, both.truth, 3)
    assert row.count("|") == trust.TOLERANCE_HEADER.splitlines()[0].count("|")
    assert trust.summary({"iris": both}).count("intervals cover") == 2
