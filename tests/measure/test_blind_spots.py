"""What projections hardly see, rows that depend on each other, and classes that are absent by chance."""

import dataclasses

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm, rankdata

import sotdd
from sotdd.compute.resampling import Plan
from sotdd.measure.columns import find_axes, pool_columns, rank_columns
from sotdd.measure.relations import Pairs, Within, remark_on_rows
from sotdd.measure.statistics import PAIRS, WITHIN, Differences, compare_scores


def change_correlation(rng):
    a, b = rng.normal(size=(2, 300, 30))
    a[:, 1], b[:, 1] = 0.6 * a[:, 0] + 0.8 * a[:, 1], 0.8 * b[:, 1] - 0.6 * b[:, 0]
    return a, b


def change_column(rng, n, d, shift, scale):
    a, b = rng.normal(size=(2, n, d))
    b[:, 3] = scale * b[:, 3] + shift
    return a, b


def move_class(rng):
    labels = rng.integers(10, size=(2, 300))
    a, b = rng.normal(size=(2, 300, 800))
    return (a, labels[0]), (b + 0.4 * (labels[1] == 0)[:, None], labels[1])


def change_shares(rng):
    a, b = rng.normal(size=(2, 500, 10))
    return (a, rng.integers(4, size=500)), (b, rng.choice(4, 500, p=[0.32, 0.32, 0.18, 0.18]))


CASES = {
    "pairs of columns": change_correlation,
    "columns": lambda rng: change_column(rng, 300, 800, 0.87, 1.0),
    "columns, scaled": lambda rng: change_column(rng, 500, 100, 0.0, 1.58),
    "principal axes": move_class,
    "class shares": change_shares,
}


@pytest.mark.parametrize("name", CASES)
def test_what_projections_hardly_see_is_found(name):
    """By the aspect that looks there: in all three of three pairs, of which one is hardly ever found otherwise."""
    for seed in range(3):
        pair = CASES[name](np.random.default_rng(seed))
        names = "match" if name == "class shares" else "ignore"
        found = sotdd.test(*pair, n_permutations=199, n_projections=16, label_names=names, device="cpu")
        assert found.rejects(0.05)
        assert found.aspects[name.partition(",")[0]].p_value <= 0.01


def test_the_largest_differences_are_those_of_a_slow_count(rng):
    data = [sotdd.LabelledData.of(rng.normal(size=(n, 3))) for n in (30, 20)]
    plan = dataclasses.replace(Plan.of_pair(data, (0, 1), 5, 0, (1.0,)), actual=True)
    members = plan.mark_all(range(5)) == 1
    ranked = norm.ppf((rankdata(np.concatenate([part.features for part in data]), axis=0) - 0.5) / 50)
    products = np.stack([ranked[:, i] * ranked[:, j] for i, j in ((0, 1), (0, 2), (1, 2))])
    unit = np.sqrt(20 * 30 / 49 * products.var(axis=1))
    slow = np.array([np.abs(products[:, one].sum(axis=1) - 20 * products.mean(axis=1)) / unit for one in members])
    pairs, found = Pairs(pool_columns(data)), Differences()
    for some in (members[:2], members[2:]):  # as many as were asked for so far
        found.extend(one for scores in pairs.score() for one in compare_scores(scores, some.astype(np.float32)))
    np.testing.assert_allclose(found.largest[PAIRS], slow.max(axis=1), rtol=1e-5)
    np.testing.assert_allclose(found.found, slow[0], rtol=1e-5)


def test_how_strongly_columns_go_with_classes_has_nothing_to_do_with_names(rng):
    """Names that change places on one side leave it as it is, at any two sizes; labels that say nothing do not."""
    codes = rng.integers(3, size=500)
    points = rng.normal(size=(500, 4)) + np.eye(3, 4)[codes]
    columns = pool_columns([sotdd.LabelledData.of(points[:400]), sotdd.LabelledData.of(points[400:])])
    second = (np.arange(500) >= 400).astype(np.float32)

    def compare(labels):
        compared = Within(columns, labels, with_names=False).compare(second[None])
        return max(apart.max() for _, families, apart in compared if any(WITHIN in names for names in families))

    swapped = np.where(second, np.array([1, 0, 2])[codes], codes)
    assert compare(swapped) == pytest.approx(compare(codes), rel=1e-4)
    assert compare(np.where(second, rng.permutation(codes), codes)) > 2 * compare(codes)


def test_equal_rows_are_equal_along_axes_wherever_they_are(rng):
    """In discrete data, rounding by place in memory would put one sample above the other."""
    rows = rng.integers(0, 2, size=(60, 7)).astype(float)
    table = rank_columns(np.concatenate([rows, rows[::-1]]))
    axes = find_axes(table)
    np.testing.assert_array_equal(axes[:60], axes[:59:-1])
    assert find_axes(np.zeros((5, 2), np.float32)).shape == (5, 0)


# ------------------------------------------------------------------ rows that belong together


def make_people(rng, n=50, times=5):
    who = np.repeat(np.arange(n), times)
    return rng.normal(size=(n, 4))[who] + 0.5 * rng.normal(size=(len(who), 4)), who


def test_splits_keep_groups_whole(rng):
    data = [
        sotdd.open_dataset((points, who % 2), groups=who) for points, who in (make_people(rng), make_people(rng, 20))
    ]
    plan = dataclasses.replace(Plan.of_pair(data, (0, 1), 6, 0, (1.0,)), actual=True)
    sides = [(set(plan.groups[left.index]), set(plan.groups[right.index])) for left, right in map(plan.draw, range(6))]
    assert sides[0] == (set(range(50)), set(range(50, 70)))
    assert all(len(left & right) <= 1 for left, right in sides)  # one may be cut, for the sizes
    assert len({tuple(sorted(left)) for left, _ in sides}) == 6
    assert plan.draw(1)[0].offsets[-1] == 250


def test_groups_and_blocks_keep_the_level(rng):
    """False alarms of single rows are most of 20, of whole groups and blocks hardly any."""
    wrong, right = np.zeros(2), np.zeros(2)
    for seed in range(20):
        (a, who), (b, _) = make_people(rng, 40), make_people(rng, 40)
        series = np.empty((600, 3))
        series[0] = rng.normal(size=3)
        for row in range(1, 600):
            series[row] = 0.8 * series[row - 1] + 0.6 * rng.normal(size=3)
        cases = (a, b, {"groups": who}), (series[:400], series[400:], {"blocks": 50})
        for place, (first, second, how) in enumerate(cases):
            settings = {"n_permutations": 39, "n_projections": 4, "seed": seed, "device": "cpu"}
            wrong[place] += sotdd.test(first, second, **settings).rejects()
            opened = (sotdd.open_dataset(part, **how) for part in (first, second))
            right[place] += sotdd.test(*opened, **settings).rejects()
    assert wrong.min() >= 12
    assert right.max() <= 4


def test_an_explanation_permutes_groups_too(rng):
    """Forty rows of each of six people on either side: their columns differ, but only by chance."""
    named = np.zeros(2)
    for _ in range(6):
        pair = [make_people(rng, 6, 40) for _ in range(2)]
        for place, groups in enumerate((False, True)):
            opened = [sotdd.open_dataset(points, groups=who if groups else None) for points, who in pair]
            named[place] += bool(sotdd.explain(*opened, n_projections=8).by_feature.changed)
    assert named[0] >= 5
    assert named[1] <= 1


def test_groups_are_a_column_or_an_array_and_batches_are_read_alike(rng, tmp_path):
    tables = []
    for name in ("train", "batch"):
        points, who = make_people(rng)
        table = pd.DataFrame(points, columns=list("abcd")).assign(person=[f"p{one}" for one in who], label=0)
        table.to_csv(tmp_path / f"{name}.csv", index=False)
        tables.append(sotdd.open_dataset((points, np.zeros(250, int)), groups=who))
    train, batch = (str(tmp_path / f"{name}.csv") for name in ("train", "batch"))
    opened = sotdd.open_dataset(train, groups="person")
    assert opened.columns == ("a", "b", "c", "d")
    assert len(np.unique(opened.groups)) == 50
    settings = {"n_permutations": 19, "n_projections": 4}
    found = sotdd.test(train, batch, groups="person", scale=None, **settings)
    again = sotdd.test(*tables, scale=None, **settings)
    np.testing.assert_allclose(found.null_distances.mean(), again.null_distances.mean(), rtol=0.3)
    assert not found.remarks
    reference = sotdd.DriftReference.fit(train, groups="person", n_projections=4)
    reference.save(tmp_path / "x.ref")
    loaded = sotdd.DriftReference.load(tmp_path / "x.ref")
    np.testing.assert_array_equal(loaded.data.groups, opened.groups)
    assert loaded.test(batch, n_permutations=19).null.tolist() == reference.test(batch, n_permutations=19).null.tolist()
    assert loaded.open_batch(batch).groups.max() == 49
    assert not loaded.find_changes(batch).changed
    floors = [sotdd.distance(*how, noise_floor=True, n_projections=64).noise.value for how in (tables, [
        dataclasses.replace(part, origin=dataclasses.replace(part.origin, groups=None)) for part in tables
    ])]  # fmt: skip
    assert floors[0] > 1.5 * floors[1]


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ({"groups": [1, 2]}, "groups has 2 entries but data has 6 rows"),
        ({"groups": "person"}, "is no table"),
        ({"groups": [0] * 6, "blocks": 2}, "groups and blocks are both given"),
        ({"blocks": 0}, "blocks is 0"),
    ],
)
def test_odd_groups_are_refused(how, said):
    with pytest.raises(sotdd.SotddError, match=said):
        sotdd.open_dataset(np.zeros((6, 2)), **how)


def test_a_remark_says_where_rows_seem_to_depend_on_each_other(rng):
    def kinds(data):
        return [remark.kind for remark in remark_on_rows(sotdd.LabelledData.of(data))]

    plain = rng.normal(size=(300, 4))
    assert kinds(plain) == []
    assert kinds(np.repeat(plain, 2, axis=0)[rng.permutation(600)]) == ["rows repeat"]
    assert kinds(make_people(rng)[0]) == ["neighbours alike"]
    labels = np.sort(rng.integers(3, size=300))
    assert kinds((plain + 3 * labels[:, None], labels)) == []  # sorted by class, as files often are
    assert kinds(plain[np.argsort(plain[:, 1])]) == []  # sorted by a column
    assert kinds((plain[np.lexsort([plain[:, 1], labels])], labels)) == []  # or by it within classes
    assert kinds(rng.integers(0, 3, size=(300, 3))) == []  # few values, which repeat by chance
    said = repr(sotdd.test(np.cumsum(plain, axis=0), plain, n_permutations=9, n_projections=2))
    assert "a: neighbouring rows are alike" in said
    assert "groups or blocks" in said
    few, many = (sotdd.open_dataset(plain, blocks=size) for size in (100, 10))
    assert [remark.kind for part in (few, many) for remark in remark_on_rows(part)] == ["few groups"]


# ------------------------------------------------------------------ classes


def test_a_class_absent_by_chance_is_not_called_lost(rng):
    shares = 1 / np.arange(1, 61)
    labels = rng.choice(60, 300, p=shares / shares.sum())
    points = 2 * np.random.default_rng(5).normal(size=(60, 4))[labels] + rng.normal(size=(300, 4))
    first, second = (points[:150], labels[:150]), (points[150:], labels[150:])
    why = sotdd.explain(first, second, n_projections=64)
    lines = [line for side in (0, 1) for line in why.lines(side)]
    assert any(line.counterpart is None for line in lines)
    assert not any(line.lost or line.moved for line in lines)
    assert "that chance may leave without one" in repr(why)
