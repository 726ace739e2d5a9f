"""Whether synthetic data copy training rows: exact copies beside chance, and nearest rows, against a brute force."""

import json

import numpy as np
import pandas as pd
import pytest

import sotdd
from sotdd.basics.remarks import Verdict
from sotdd.measure.copies import find_nearest

FEW = {"n_permutations": 99}


def draw(law, rng, n):
    """Samples of laws that break tests: sparse counts, categories, flags, ties, heavy tails."""
    return {
        "normal": lambda: rng.normal(size=(n, 5)),
        "counts": lambda: rng.poisson(0.2, size=(n, 6)).astype(float),
        "flags": lambda: rng.integers(0, 2, size=(n, 4)).astype(float),
        "ties": lambda: rng.normal(size=(n, 2)).round(1),
        "heavy": lambda: rng.standard_cauchy(size=(n, 3)),
        "table": lambda: pd.DataFrame({
            "city": rng.choice([*"abcdefgh", None], n), "vip": rng.choice(["yes", "no"], n),
            "age": rng.integers(18, 30, n), "income": np.where(rng.random(n) < 0.2, np.nan, rng.lognormal(size=n)),
        }),
    }[law]()  # fmt: skip


LAWS = ("normal", "counts", "flags", "ties", "heavy", "table")


def brute_share(synthetic, train, holdout):
    """The share of rows nearer to training rows, by all differences; ties count half."""
    near = [np.square(synthetic[:, None] - other).sum(axis=2).min(axis=1) for other in (train, holdout)]
    return np.mean((near[0] < near[1]) + 0.5 * (near[0] == near[1]))


@pytest.mark.parametrize("law", ["normal", "counts", "flags", "ties"])
def test_shares_are_those_of_a_brute_force(rng, law):
    synthetic, train, holdout = (draw(law, rng, n) for n in (70, 130, 130))
    found = sotdd.copies(synthetic, train, holdout, scale=None, **FEW)
    assert found.share == pytest.approx(brute_share(synthetic.astype("f4"), train.astype("f4"), holdout.astype("f4")))
    assert found.nearer.mean() == pytest.approx(found.share)
    swapped = sotdd.copies(synthetic, holdout, train, scale=None, **FEW)
    assert swapped.share == pytest.approx(1 - found.share)


def test_permutations_are_those_of_a_brute_force(rng):
    """What is permuted is which rows are of the training data; nothing else is measured anew."""
    synthetic, train, holdout = rng.integers(0, 4, size=(3, 40, 2)).astype(float)
    found = sotdd.copies(synthetic, train, holdout, scale=None, n_permutations=400)
    pool, shares = np.concatenate([train, holdout]), []
    for _ in range(400):
        order = rng.permutation(80)
        shares.append(brute_share(synthetic, pool[order[:40]], pool[order[40:]]))
    assert found.null.mean() == pytest.approx(np.mean(shares), abs=4 * np.std(shares) / 20)
    assert found.null.std() == pytest.approx(np.std(shares), rel=0.2)


def test_nearest_rows_with_ties_far_points_and_rounding(rng):
    """Products in float32 lose small differences of points far from zero; differences decide."""
    pool = rng.normal(1000, 0.01, size=(1500, 3)).astype(np.float32)
    pool[7], pool[8] = 1e9, pool[1400]
    points = pool[[1400, 3, 7]] + np.float32(0)
    rows, places = find_nearest(points, pool)
    assert sorted(zip(rows.tolist(), places.tolist(), strict=True)) == [(0, 8), (0, 1400), (1, 3), (2, 7)]


@pytest.mark.slow
@pytest.mark.parametrize("sizes", [(60, 50, 50), (40, 120, 60)])
@pytest.mark.parametrize("law", LAWS)
def test_level_is_exact_with_a_holdout(law, sizes):
    """Also for a generator that is wrong: it draws from a part of its source, or repeats itself."""
    p_values = []
    for seed in range(150):
        rng = np.random.default_rng([seed, 7])
        synthetic, train, holdout = (draw(law, rng, n) for n in sizes)
        repeats = rng.integers(0, len(synthetic) // 4, len(synthetic))
        synthetic = synthetic.iloc[repeats] if isinstance(synthetic, pd.DataFrame) else synthetic[repeats]
        p_values.append(sotdd.copies(synthetic, train, holdout, n_permutations=59, seed=seed).p_value)
    for level in (0.05, 0.1, 0.2):
        assert np.mean(np.array(p_values) <= level) <= level + 3 * np.sqrt(level * (1 - level) / 150)


def test_level_without_a_holdout():
    """Rows that repeat by chance are no copies."""
    found = [
        sotdd.copies(draw(law, np.random.default_rng(seed), 300), draw(law, np.random.default_rng(900 + seed), 300))
        for law in LAWS
        for seed in range(8)
    ]
    assert sum(one.rejects(0.05) for one in found) == 0
    assert any(one.exact > 200 for one in found)


@pytest.mark.parametrize("noise", [0.0, 0.02])
def test_power(rng, noise):
    """A fifth of the rows follows training rows, exactly or nearly, and about as much is estimated."""
    train, holdout, honest = rng.normal(size=(3, 600, 4))
    synthetic = np.concatenate([train[:150] + rng.normal(0, noise, size=(150, 4)), honest])
    found = sotdd.copies(synthetic, train, holdout, **FEW)
    assert (found.verdict, found.exact) == (Verdict.COPIED, 0 if noise else 150)
    assert found.copied == pytest.approx(0.2, abs=3 * found.copied_stderr)
    assert found.rejects(0.05)
    assert sotdd.copies(honest, train, holdout, **FEW).verdict is Verdict.PASSED
    alone = sotdd.copies(synthetic, train)
    assert alone.verdict is (Verdict.PASSED if noise else Verdict.COPIED)
    assert [remark.kind for remark in alone.remarks] == ["no holdout"]


def test_few_exact_copies_are_found_among_many_rows(rng):
    """Ten copies in 3,000 rows do not move the share; they are a statistic of their own."""
    train, holdout, honest = rng.normal(size=(3, 3000, 4))
    found = sotdd.copies(np.concatenate([train[:10], honest]), train, holdout, **FEW)
    assert found.p_value <= 0.05
    assert found.list_rows() == [{"row": row, "train_row": row} for row in range(10)]
    assert abs(found.share - 0.5) < 0.03


def test_what_equal_rows_are():
    """Equal in every column by its name, in any order; gaps equal gaps, and the label is a column."""
    train = pd.DataFrame({"x": [1.5, None, 3.25, 4.0] * 4, "kind": ["a", "b", None, "b"] * 4, "label": [*"pqpq"] * 4})
    train["x"] += np.repeat([0, 10, 20, 30], 4)
    moved = train[["label", "kind", "x"]].sample(frac=1, random_state=0)
    found = sotdd.copies(moved, train)
    assert found.exact == 16
    rows = [tuple(row) for row in train.astype(str).to_numpy().tolist()]
    copied = [tuple(row) for row in moved[train.columns].astype(str).to_numpy().tolist()]
    assert found.train_rows.tolist() == [rows.index(row) for row in copied]
    other = moved.assign(label=moved["label"].map({"p": "q", "q": "p"}))
    assert sotdd.copies(other, train).exact == 0
    assert sotdd.copies(moved.assign(x=moved["x"].fillna(0.0)), train).exact == 12
    assert sotdd.copies(moved.drop(columns="label"), train, exclude="label").exact == 16


def test_what_it_refuses_and_what_it_leaves_undecided(rng):
    x = rng.normal(size=(30, 3))
    few = sotdd.copies(x, x[:4], x[4:8])
    assert (few.verdict, {remark.kind for remark in few.remarks} >= {"few rows"}) == (Verdict.UNDECIDED, True)
    for refused, words in (
        (lambda: sotdd.copies(x, x[:, :2]), "2 features"),
        (lambda: sotdd.copies(x, (x, x[:, 0] > 0)), "has no labels"),
        (lambda: sotdd.copies(x, x, n_permutations=0), "n_permutations"),
        (lambda: sotdd.copies(x, x, level=2), "level"),
        (lambda: sotdd.copies(x, x, x, scale="big"), "scale"),
        (lambda: sotdd.copies(x, x, x, max_points=0), "max_points"),
    ):
        with pytest.raises(sotdd.SotddError, match=rf"^[^\n]*{words}[^\n]*$"):
            refused()


def test_samples_groups_and_extreme_values(rng):
    x, train, holdout = rng.normal(size=(3, 200, 3))
    found = sotdd.copies(np.concatenate([x, train[:20]]), train, holdout, max_points=80, **FEW)
    assert (found.exact, found.n_compared, np.isfinite(found.nearer).sum()) == (20, 80, 80)
    assert sum(remark.kind == "sampled" for remark in found.remarks) == 3
    x[0], train[0], holdout[:2] = 1e300, -1e300, 1e200
    assert 0 <= sotdd.copies(x, train, holdout, **FEW).share <= 1
    frames = [pd.DataFrame(rows, columns=[*"abc"]).assign(who=np.arange(200) // 4) for rows in (x, train, holdout)]
    assert sotdd.copies(*frames, groups="who", **FEW).p_value > 0.05


def test_the_result_as_json_and_frame(rng):
    x, train, holdout = rng.normal(size=(3, 50, 3))
    found = sotdd.copies(np.concatenate([x, train[3:6]]), train, holdout, **FEW)
    told = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert (told["exact"], told["verdict"], told["n_permutations"]) == (3, found.verdict.value, 99)
    assert told["rows"] == [{"row": 50 + row, "train_row": 3 + row} for row in range(3)]
    frame = found.to_pandas()
    assert (len(frame), [*frame]) == (53, ["train_row", "nearer"])
    assert frame["train_row"][50:].tolist() == [3, 4, 5]
    assert "share" not in sotdd.copies(x, train).to_dict()


def test_the_command(rng, run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    train, holdout, honest = (pd.DataFrame(rows, columns=[*"abcd"]) for rows in rng.normal(size=(3, 200, 4)))
    near = pd.concat([train[:80] + 0.001, honest])
    for name, table in (("train", train), ("holdout", holdout), ("honest", honest), ("near", near)):
        table.assign(kind=["x", "y"] * (len(table) // 2)).to_csv(f"{name}.csv", index=False)
    code, said, errors = run("copies", "honest.csv", "train.csv", "holdout.csv")
    assert (code, errors, "passed: 0 of 200 rows" in said) == (0, "", True)
    code, said, errors = run("copies", "near.csv", "train.csv", "holdout.csv", "--json", "--n-permutations", "99")
    found = sotdd.copies("near.csv", "train.csv", "holdout.csv", n_permutations=99)
    assert (code, errors) == (1, "")
    named = {"synthetic": "near.csv", "train": "train.csv", "holdout": "holdout.csv"}
    assert json.loads(said) == {**named, **found.to_dict()}
    code, said, _ = run("copies", "train.csv", "train.csv", "--csv")
    assert (code, said.splitlines()[:2], len(said.splitlines())) == (1, ["row,train_row", "0,0"], 201)
    assert run("copies", "near.csv", "gone.csv")[0] == 2
    assert "--holdout" not in run("copies", "near.csv", "train.csv")[1]
