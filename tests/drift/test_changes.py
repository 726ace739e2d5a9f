"""Which columns changed: named in plain units, by a level that holds, from a file as from the data."""

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy.stats import hypergeom, norm

import sotdd
from sotdd.compute.resampling import Plan
from sotdd.measure.columns import rank_values, score_numbers
from sotdd.measure.statistics import Differences, Score, compare_scores


def table(seed, n):
    rng = np.random.default_rng(seed)
    age = rng.normal(40, 10, n)
    return pd.DataFrame(
        {
            "age": age.round(1),
            "income": np.exp(10 + 0.3 * (age - 40) / 10 + 0.2 * rng.normal(size=n)),
            "visits": rng.poisson(2, n),
            "city": rng.choice(["Oslo", "Rome", "Lima"], n, p=[0.5, 0.3, 0.2]),
            "member": rng.choice(["yes", "no"], n),
            "score": np.where(rng.random(n) < 0.02, np.nan, rng.normal(size=n)),
            "kind": rng.choice(["a", "b"], n, p=[0.8, 0.2]),
        }
    )


@pytest.fixture(scope="module")
def reference(tmp_path_factory):
    path = tmp_path_factory.mktemp("columns") / "x.ref"
    sotdd.DriftReference.fit(table(0, 1500), label="kind", n_projections=8).save(path)
    return sotdd.DriftReference.load(path)


CHANGES = {
    "age, moved": ("moved", "mean 39.", lambda x, _: x.assign(age=x.age + 5)),
    "age, scaled": ("wider", "spread ", lambda x, _: x.assign(age=40 + 1.6 * (x.age - 40))),
    "age, far values": ("more high values", "of rows", lambda x, odd: x.assign(age=np.where(odd, 120.0, x.age))),
    "age, placeholder": ("a placeholder?", "-999 in ", lambda x, odd: x.assign(age=np.where(odd, -999.0, x.age))),
    "visits, stuck": ("constant", "3 in 19 % → 100 % of rows", lambda x, _: x.assign(visits=3)),
    "city, new": ("new category", "'Cairo' 0 % → ", lambda x, odd: x.assign(city=np.where(odd, "Cairo", x.city))),
    "city, gone": ("category gone", "'Lima' ", lambda x, _: x.assign(city=x.city.replace("Lima", "Rome"))),
    "member, other shares": (
        "other shares", "'yes' ", lambda x, odd: x.assign(member=np.where(odd | (x.age < 45), "yes", x.member))
    ),
    "score, gaps": ("more gaps", "gaps ", lambda x, odd: x.assign(score=np.where(odd, np.nan, x.score))),
    "income, gaps": ("more gaps", "gaps 0 % → ", lambda x, odd: x.assign(income=np.where(odd, np.nan, x.income))),
    "score, empty": ("no value left", "gaps ", lambda x, _: x.assign(score=np.nan)),
    "label, shares": ("other shares", "'a' ", lambda x, odd: x.assign(kind=np.where(odd | (x.age > 45), "b", x.kind))),
}  # fmt: skip


@pytest.mark.parametrize("name", CHANGES)
def test_the_column_that_changed_is_named_in_its_own_units(reference, name):
    what, detail, change = CHANGES[name]
    changes = reference.find_changes(change(table(1, 400), np.random.default_rng(2).random(400) < 0.08))
    first = changes.changed[0]
    assert first.column == name.split(",")[0]
    assert what in first.what
    assert detail in first.detail
    assert first.p_value <= 0.001
    assert len(changes) == 7  # one row for every column of the user's, the label among them
    assert first.column in repr(changes)
    json.dumps(changes.to_dict(), allow_nan=False)


def test_pairs_and_classes_are_named(reference):
    data = table(1, 400)
    turned = data.assign(income=np.exp(20 - np.log(data.income)))
    changes = reference.find_changes(turned)
    assert not changes.changed
    assert changes.pairs[0].names == ("age", "income")
    first, second = changes.pairs[0].correlations
    assert first > 0.7
    assert second < -0.7
    moved = reference.find_changes(data.assign(score=data.score + 1.5 * (data.kind == "b")))
    assert [(one.label, one.column) for one in moved.classes] == [("b", "score")]
    assert "class b: score, mean" in repr(moved)


def test_shares_are_those_of_the_distance(reference):
    """Of two columns that moved, by one and by two of their spreads, the second costs more: squares, over both."""
    data = table(1, 400)
    moved = data.assign(age=data.age + 10, score=data.score + 2)
    changes = reference.find_changes(moved)
    shares = {one.column: one.share for one in changes.changed}
    pooled = pd.concat([table(0, 1500), moved])
    costs = (2 / pooled.score.std()) ** 2, (10 / pooled.age.std()) ** 2
    assert shares["score"] == pytest.approx(costs[0] / sum(costs), abs=0.02)
    assert sum(shares.values()) == pytest.approx(1)
    [only] = reference.find_changes(data.assign(member="yes")).changed  # two values, which are one feature
    assert (only.column, only.share) == ("member", 1)


def test_nothing_is_named_where_the_test_finds_nothing(reference):
    """Even where a column by itself would be beyond chance; what comes nearest is known all the same."""
    verdicts = set()
    for seed in range(16):
        data = table(seed, 200)
        found = reference.test(data.assign(age=data.age + 1.5), n_permutations=199, seed=seed)
        changes = found.changes
        verdicts.add((found.verdict.value, changes.nearest.p_value <= 0.05))
        named = changes.changed or changes.pairs or changes.classes
        assert bool(named) <= found.rejects(changes.level)
        assert changes.nearest.p_value <= min(one.p_value for one in changes)
        assert all(one.what and one.detail for one in changes)
        assert all((one.share is not None) == one.changed for one in changes if one.kind != "label")
    assert verdicts >= {("passed", True), ("drift", True)}


@pytest.mark.slow
@pytest.mark.parametrize("law", ["normal", "cauchy", "marks", "counts"])
@pytest.mark.parametrize("m", [8, 60])
def test_any_column_is_named_by_chance_as_often_as_the_level_says(law, m):
    rates = np.geomspace(0.002, 0.5, 30)
    draws = {
        "normal": lambda rng, n: rng.normal(size=(n, 8)) + rng.normal(size=(n, 1)),
        "cauchy": lambda rng, n: rng.standard_cauchy((n, 8)),
        "marks": lambda rng, n: (rng.random((n, 30)) < rates).astype(float),
        "counts": lambda rng, n: rng.poisson(0.3, (n, 8)).astype(float),
    }
    named, runs = 0, 200
    for seed in range(runs):
        rng = np.random.default_rng(seed)
        kept, batch = (sotdd.LabelledData.of(draws[law](rng, n)) for n in (200, m))
        reference = sotdd.DriftReference.fit(kept, n_projections=2)
        named += bool(reference.find_changes(batch).changed)
    assert named <= 20  # 10 are expected, and more than 20 come once in 700 runs


def test_permutations_are_those_of_a_slow_count(rng):
    """Against all sums taken one by one, with ties and a mark that few rows have."""
    columns = np.column_stack([rng.normal(size=30), rng.integers(0, 3, 30), rng.random(30) < 0.1])
    scores = [score for column in columns.T for score in score_numbers(rank_values(column)).values()]
    plan = Plan((0, 1), np.zeros(30, np.int64), (20, 10), 100, 0, (1.0,))
    members = replace(plan, actual=True).mark_all(range(100)) == 1
    assert members[0].tolist() == [False] * 20 + [True] * 10
    assert set(members.sum(axis=1)) == {10}
    scored = [Score(place, ("any", str(place)), score) for place, score in enumerate(scores)]
    differences = Differences()
    for some in (members[:40], members[40:]):
        differences.extend(compare_scores(scored, some.astype(np.float32)))
    whole = [differences.largest[str(place)] for place in range(len(scores))]
    np.testing.assert_array_equal(differences.largest["any"], np.max(whole, axis=0))
    plain = np.array([abs(scores[0][member].mean() - scores[0][~member].mean()) for member in members])
    np.testing.assert_allclose(whole[0] / whole[0][0], plain / plain[0], atol=1e-5)
    slow = [np.mean(differences.largest["any"] >= one - 1e-5) for one in differences.found]
    np.testing.assert_allclose(differences.find_p_values("any"), slow, atol=1e-9)
    counts = np.array([scores[-1][member].sum() for member in members])  # a mark: by its exact law
    law = hypergeom(30, int(scores[-1].sum()), 10)
    tails = np.minimum(np.minimum(law.cdf(counts), law.sf(counts - 1)), 0.5)
    np.testing.assert_allclose(norm.sf(whole[-1]), tails)
