"""Which features make a distance: against a slow reading of the definition, and on causes that are known."""

import json

import numpy as np
import pytest

import reference
import sotdd
from sotdd.basics.resources import Workers
from sotdd.inputs.data import LabelledData
from sotdd.measure.shares import find_contributions, find_directions, sort_columns


def pool_of(a, b, workers, scaler=None):
    return sort_columns([LabelledData.of(a), LabelledData.of(b)], scaler, 0, workers, np.arange(a.shape[1]))


def sides(a, b):
    return np.repeat([0, 1], [len(a), len(b)]).astype(np.uint8)


def half_way(a, b):
    """Both with every column half-way to the other's value at its rank: repeat points to a common size."""
    n, m = len(a), len(b)
    moved = []
    for one, other, size, more in ((a, b, n, m), (b, a, m, n)):
        out = np.empty_like(one)
        for j in range(one.shape[1]):
            order = np.argsort(one[:, j])
            target = np.repeat(np.sort(other[:, j]), size).reshape(size, more).mean(axis=1)
            out[order, j] = (one[order, j] + target) / 2
        moved.append(out)
    return moved


def sliced(a, b, theta, p):
    return np.mean([reference.wasserstein(a @ one, b @ one, p) for one in theta])


@pytest.mark.parametrize("p", [1.0, 2.0, 3.0])
@pytest.mark.parametrize("m", [40, 24])
def test_parts_add_up_to_the_sliced_distance(rng, p, m):
    a, b = rng.normal(size=(40, 3)), rng.normal(size=(m, 3)) * [1, 2, 1] + [1, 0, 0]
    theta = find_directions(3, 5)
    with Workers(1) as workers:
        pool = pool_of(a, b, workers)
        unit = max(np.abs(a).max(), np.abs(b).max())
        parts = find_contributions(pool, sides(a, b), theta, p, workers).mean(axis=0) * unit**p
    matched = half_way(a, b)
    assert parts[-1] == pytest.approx(sliced(*matched, theta.astype(float), p), rel=1e-4)
    whole = sliced(a, b, theta.astype(float), p)
    assert parts.sum() == pytest.approx(whole, rel=2e-3 if p == 2 else 0.02)  # but for Simpson's rule


def test_a_single_column_makes_all_of_the_distance(rng):
    a, b = rng.normal(size=(100, 1)), rng.normal(1, 1.5, size=(80, 1))
    changes = sotdd.test(a, b, n_permutations=99).changes
    assert changes.columns[0].raw_share == pytest.approx(1, abs=0.01)
    assert changes.together.raw_share == pytest.approx(0, abs=0.01)


def test_parts_are_integrals_of_what_changes_on_the_way(rng):
    """A fine sum over the way, by differences, gives the same as Simpson's rule and derivatives."""
    a, b = rng.normal(size=(30, 2)), rng.normal(size=(30, 2)) * [1, 1.7] + [0.8, 0]
    theta = find_directions(2, 5)[:16]
    with Workers(1) as workers:
        pool = pool_of(a, b, workers)
        unit = max(np.abs(a).max(), np.abs(b).max())
        parts = find_contributions(pool, sides(a, b), theta, 2.0, workers).mean(axis=0) * unit**2
    near = half_way(a, b)
    steps, found = 60, np.zeros(2)
    for step in range(steps):
        here = (step + 0.5) / steps
        at = [x0 + here * (x - x0) for x0, x in zip(near, (a, b), strict=True)]
        for j in range(2):
            ends = []
            for sign in (-0.5, 0.5):
                moved = [x.copy() for x in at]
                for x, x0, whole in zip(moved, near, (a, b), strict=True):
                    x[:, j] += sign / steps * (whole - x0)[:, j]
                ends.append(sliced(*moved, theta.astype(float), 2))
            found[j] += ends[1] - ends[0]
    np.testing.assert_allclose(parts[:2], found, rtol=0.02)


def changed(rng, cause, n, d, law="normal"):
    draw = rng.normal if law == "normal" else lambda size: rng.standard_t(2, size)
    a, b = draw(size=(n, d)), draw(size=(n, d))
    if cause == "moved":
        b[:, 1] += 0.8
    elif cause == "scaled":
        b[:, 1] *= 2.2
    elif cause == "correlated":
        b[:, 1] = np.sort(b[:, 1])[np.argsort(np.argsort(b[:, 0] + 0.5 * rng.normal(size=n)))]
    return a, b


@pytest.mark.parametrize(("law", "n", "d"), [("normal", 200, 2), ("heavy", 400, 40)])
def test_the_column_that_changed_is_named(rng, law, n, d):
    units = 10.0 ** (np.arange(d) % 4)
    for cause in ("moved", "scaled"):
        a, b = changed(rng, cause, n, d, law)
        features = sotdd.explain(a * units, b * units, scale="features", n_projections=64).by_feature
        assert features.changed[0].column == "feature 1", cause
        assert features.together.p_value > 0.01


@pytest.mark.parametrize(("n", "d"), [(100, 2), (300, 30)])
def test_columns_that_go_together_are_named_as_a_pair(rng, n, d):
    why = sotdd.explain(*changed(rng, "correlated", n, d), n_projections=64)
    features = why.by_feature
    assert features.together.changed
    assert features.pairs[0].names == ("feature 0", "feature 1")
    first, second = features.pairs[0].correlations
    assert abs(first) < 0.3
    assert second > 0.6
    assert "feature 0 and feature 1" in repr(why)


def test_shuffled_labels_name_no_column_and_matched_names_name_the_label(rng):
    x = rng.normal(size=(300, 3))
    y = (x[:, 0] > 0).astype(int)
    other = rng.normal(size=(300, 3))
    shuffled = rng.permutation((other[:, 0] > 0).astype(int))
    plain = sotdd.explain((x, y), (other, shuffled), n_projections=64)
    assert not plain.by_feature.changed
    assert all(one.share is None for one in plain.by_feature)
    why = sotdd.explain((x, y), (other, shuffled), n_projections=64, label_names="match")
    matched = why.by_feature
    assert [one.column for one in matched if np.isfinite(one.raw_share)][-1] == "label"
    assert matched.together.changed
    assert matched.together.share == pytest.approx(1)
    assert {one.column for one in why.test.changes.classes} == {"feature 0"}


def test_equal_values_do_not_seem_to_go_together():
    rng = np.random.default_rng(3)
    a, b = ((rng.random((200, 6)) < [0.5, 0.2, 0.1, 0.1, 0, 0]).astype(float) for _ in range(2))
    a[:, 5], b[:, 5] = 1.0, 1.0
    features = sotdd.explain(a, b, n_projections=64).by_feature
    assert not features.together.changed
    assert not features.changed


def test_shares_add_up_and_read_well(rng):
    pd = pytest.importorskip("pandas")
    tables = [
        pd.DataFrame(
            {"age": rng.normal(40, 9, 500), "income": rng.lognormal(10, 0.5, 500) * more, "flag": flag, "label": 1}
        )
        for more, flag in ((1.0, rng.random(500) < 0.3), (1.6, rng.random(500) < 0.5))
    ]
    why = sotdd.explain(*tables, n_projections=64)
    features = why.by_feature
    assert features.noun == "column"
    assert [one.column for one in features.changed] == ["income", "flag"]
    assert sum(one.share or 0 for one in (*features, features.together)) == pytest.approx(1)
    assert sum(one.raw_share for one in (*features, features.together)) == pytest.approx(1)
    income, flag = features.changed
    assert income.share > 0.5
    assert [one.share for one in features] == [income.share, flag.share, None]
    before, after = (f"{100 * table.flag.mean():.0f} %" for table in tables)
    assert f"1 in {before} → {after} of rows" in why.table()
    told = json.loads(json.dumps(why.to_dict(), allow_nan=False))["test"]["changes"]
    assert told["columns"][0]["column"] == "income"


def test_pixels_have_a_picture_and_features_bars(rng):
    a, b = rng.normal(size=(2, 200, 6, 5))
    b[:, 2, 3] += 1.5
    features = sotdd.explain(a, b, n_projections=64).by_feature
    assert features.noun == "pixel"
    assert features.pixels.shape == (6, 5)
    assert np.unravel_index(features.pixels.argmax(), (6, 5)) == (2, 3)
    assert features.changed[0].column == "pixel 2, 3"
    assert "of 30 pixels" in repr(features)
    ax = features.plot()
    assert len(ax.images) == 1
    flat = sotdd.explain(a.reshape(200, -1), b.reshape(200, -1), n_projections=64).by_feature
    assert len(flat.plot().patches) >= 15
    with pytest.raises(sotdd.SotddError, match="no images"):
        _ = flat.pixels


@pytest.mark.parametrize("shape", [(1, 3), (2, 1), (20, 1)])
def test_odd_sizes_are_explained(rng, shape):
    features = sotdd.explain(rng.normal(size=shape), rng.normal(size=(3, shape[1])), n_projections=64).by_feature
    assert len(features) == shape[1]
    assert all(np.isfinite(one.raw_share) for one in features)
    assert not features.changed
