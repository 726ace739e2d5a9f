"""Test, explanation and gate are one comparison: they never contradict each other, and names change nothing."""

import json
import re

import numpy as np
import pandas as pd
import pytest

import sotdd

FEW = {"n_permutations": 99}


def table(rng, n, gaps=0.03):
    """Diamonds: numbers, some missing; categories that go together; and a class."""
    carat = rng.lognormal(0, 0.5, n)
    better = (rng.random(n) < 1 / (1 + carat)).astype(int)
    found = {
        "carat": carat,
        "depth": np.where(rng.random(n) < gaps, np.nan, rng.normal(61, 1.4, n)),
        "price": np.exp(8 + 1.7 * np.log(carat) + 0.2 * rng.normal(size=n)),
        "color": np.array([*"DEFGHIJ"])[rng.integers(4, size=n) + 3 * better],
        "clarity": np.array(["I1", "SI2", "VS1", "IF", "VVS1"])[rng.integers(3, size=n) + 2 * better],
        "cut": rng.choice(["fair", "good"], n, p=[0.2, 0.8]),
    }
    return pd.DataFrame(found)


def tell(test):
    """Whatever a test says, but for what its datasets are called."""
    return test.p_value, test.verdict, test.null.tolist(), test.changes.to_dict()


# ------------------------------------------------------------------ a reference, and the test


def draw_pair(name, rng):
    if name == "arrays":
        return rng.normal(size=(200, 4)), rng.normal(0.2, 1, size=(60, 4)), {}
    if name == "labels":
        x, y = rng.normal(size=(300, 4)), rng.integers(3, size=300)
        settings = {"label_names": "match", "scale": None, "label_law": "quantiles"}
        return (x[:200], y[:200]), (x[200:] * [1, 1, 1, 1.4], y[200:]), settings
    first, second = table(rng, 300), table(rng, 90, gaps=0.1)
    if name == "table":
        return first, second, {"label": "cut"}
    return *(one.assign(shop=np.arange(len(one)) // 3) for one in (first, second)), {"label": None, "groups": "shop"}


@pytest.mark.parametrize("name", ["arrays", "labels", "table", "groups"])
def test_a_reference_that_keeps_all_rows_gives_the_p_value_of_the_test(rng, tmp_path, name):
    a, b, reading = draw_pair(name, rng)
    reference = sotdd.DriftReference.fit(a, **reading)
    reference.save(tmp_path / "a.ref")
    loaded = sotdd.DriftReference.load(tmp_path / "a.ref")
    for seed in (0, 7):
        expected = tell(sotdd.test(a, b, seed=seed, **FEW, **reading))
        assert tell(reference.test(b, seed=seed, **FEW)) == expected
        assert tell(loaded.test(b, seed=seed, **FEW)) == expected


# ------------------------------------------------------------------ what four commands say of one pair


@pytest.fixture
def ask(tmp_path, monkeypatch, run):
    """The words, and the JSON, of a command over two tables; unless it is refused."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "400")

    def say(command, a, b, *more):
        a.to_csv("a.csv", index=False), b.to_csv("b.csv", index=False)
        line = command, "a.csv", "b.csv", "--label", "", *more
        (code, said, errors), (_, told, _) = run(*line), run(*line, "--json")
        assert (code < 2, errors) == (True, "")
        return said, json.loads(told)

    return say


def test_a_constant_column_is_drift_wherever_it_is_asked(rng, ask):
    a, b = (pd.DataFrame(rng.normal(size=(n, 10)), columns=[*"abcdefgwyz"]) for n in (400, 50))
    b = b.assign(w=0.0)
    said, told = ask("distance", a, b, "--noise-floor")
    assert (told["within_noise"], "by itself within noise (" in said) == (True, True)
    for command in ("test", "explain", "check"):
        said, told = ask(command, a, b)
        test = told if command == "test" else told["test"]
        assert (test["verdict"], test["decided_by"]) == ("drift", "rare marks")
        assert told.get("verdict", "drift") == "drift"
        assert [one["column"] for one in test["changes"]["columns"] if one["changed"]] == ["w"]
        assert re.search(r"^w +constant.* 0 in 0 % → 100 % of rows", said, re.M)


def test_a_table_with_gaps_has_one_verdict_and_one_table(rng, ask):
    a, b = table(rng, 600, gaps=0.0), table(rng, 600, gaps=0.08)
    words, explained = ask("explain", a, b)
    tested, checked = (ask(command, a, b)[1] for command in ("test", "check"))
    assert re.match(r"a.csv and b.csv: they differ, p = 0.001, most by rare marks .*; 1 column changed\n", words)
    assert explained["test"]["p_value"] == tested["p_value"] == checked["test"]["p_value"]
    assert explained["test"]["changes"] == tested["changes"] == checked["changes"]
    changed = [one for one in tested["changes"]["columns"] if one["changed"]]
    assert [(one["column"], one["what"], one["share"]) for one in changed] == [("depth", "more gaps", pytest.approx(1))]


@pytest.mark.parametrize("filled", [0, 1])
def test_a_column_that_is_empty_on_one_side_is_drift_wherever_it_is_asked(rng, ask, filled):
    pair = [pd.DataFrame({"x": rng.normal(size=120), "fax": None}) for _ in range(2)]
    pair[filled]["fax"] = rng.normal(size=120)
    (_, tested), (said, checked) = (ask(command, *pair) for command in ("test", "check"))
    assert tested["verdict"] == checked["verdict"] == "drift"
    assert checked["changes"] == tested["changes"]
    assert [one["column"] for one in tested["changes"]["columns"] if one["changed"]] == ["fax"]
    assert "judged 2 of 2 columns" in said
    kind = "retyped column" if filled else "emptied columns"
    assert [one["kind"] for one in checked["schema"]] == [kind]


def test_an_explanation_begins_with_the_test(rng):
    for shift in (0.0, 0.5):
        a, b = rng.normal(size=(80, 3)), rng.normal(shift, 1, size=(70, 3))
        why, test = sotdd.explain(a, b, seed=3, n_projections=64), sotdd.test(a, b, seed=3)
        assert why.test.to_dict() == {**test.to_dict(), "changes": why.test.to_dict()["changes"]}
        assert [(one.column, one.p_value) for one in why.test.changes] == [
            (one.column, one.p_value) for one in test.changes
        ]
        assert why.within_noise == (shift == 0.0) == (not test.rejects())


def test_a_value_of_1e300_is_drift_and_names_its_column(rng, ask):
    a, b = table(rng, 300), table(rng, 100)
    said, told = ask("check", a, b.assign(price=np.where(np.arange(100) == 7, 1e300, b.price)))
    assert told["verdict"] == "drift"
    [check] = told["checks"]
    assert check["failed"]
    assert re.search(r"too far to measure: price goes to \S+ and 1e\+300", check["message"])
    assert check["message"] in said


LAWS = {
    "normal": lambda rng, n: rng.normal(size=n),
    "cauchy": lambda rng, n: rng.standard_cauchy(n),
    "exponential": lambda rng, n: rng.exponential(size=n),
    "with zeros": lambda rng, n: np.where(rng.random(n) < 0.6, 0, rng.gamma(0.5, 5, n)),
    "with signs": lambda rng, n: np.exp(1.5 * rng.normal(size=n)) * rng.choice([-1, 1], n, p=[0.2, 0.8]),
}
NUMBERS = r"spread (\S+) → ([^;\s]+)|90 % within (\S+) to (\S+) → (\S+) to ([^;\s]+)"


@pytest.mark.parametrize("law", LAWS)
def test_the_word_fits_the_numbers_beside_it(rng, law):
    """In other units, a column has other ranks among all: its spread may go the other way there."""
    words = set()
    for factor in (1 / 25.4, 25.4, 1 / 1.609, 1.609):
        a, b = LAWS[law](rng, 500), LAWS[law](rng, 500) * factor
        [found] = sotdd.test(a[:, None], b[:, None]).changes.changed
        for word in {"wider", "narrower"} & set(found.what.split(", ")):
            ends = [float(end.replace(",", "")) for end in re.search(NUMBERS, found.detail).groups() if end]
            before, after = ends if len(ends) == 2 else np.diff(ends)[::2]
            assert (word == "wider") == (after > before) == (factor > 1), (found.what, found.detail)
            words.add(word)
    assert "narrower" in words


# ------------------------------------------------------------------ names


def rename(one):
    values = {name: f"{name[0]} " + one[name] for name in ("color", "clarity", "cut")}
    return one.assign(**values).rename(columns=lambda name: name if name == "cut" else f"x {name}")


@pytest.mark.parametrize("moved", [0.0, 2.0])
def test_names_change_neither_p_value_nor_verdict(rng, moved):
    """Of columns, of categories and classes in the same order; nor does the order of columns in a batch."""
    a, b = table(rng, 200), table(rng, 150).assign(depth=lambda one: one.depth + moved)
    expected = sotdd.test(a, b, label="cut", **FEW)
    for pair in ((rename(a), rename(b)), (a, b[b.columns[::-1]])):
        found = sotdd.test(*pair, label="cut", **FEW)
        assert (found.null.tolist(), found.p_value, found.verdict) == (
            expected.null.tolist(), expected.p_value, expected.verdict
        )  # fmt: skip
        assert [one.p_value for one in found.changes] == [one.p_value for one in expected.changes]
    # In another order of columns projections are others, and in another order of classes permutations are.
    turned = sotdd.test(*(one[one.columns[::-1]] for one in (a, b)), label="cut", **FEW)
    for aspect in ("columns", "rare marks", "pairs of columns"):
        assert turned.aspects[aspect].deviations == pytest.approx(expected.aspects[aspect].deviations, abs=1e-4)
    swapped = [one.assign(cut=one.cut.map({"fair": "z", "good": "a"})) for one in (a, b)]
    other = sotdd.test(*swapped, label="cut", **FEW)
    assert other.distance == pytest.approx(expected.distance)
    assert turned.verdict == other.verdict == expected.verdict


# ------------------------------------------------------------------ every alarm points somewhere


def test_a_shift_that_no_column_shows_points_to_the_nearest(rng, ask):
    a, b = (pd.DataFrame(rng.normal(shift, 1, size=(150, 60))).add_prefix("f") for shift in (0.0, 0.1))
    said, told = ask("check", a, b)
    assert told["verdict"] == "drift"
    assert not any(one["changed"] for one in told["changes"]["columns"])
    assert 0.05 < told["changes"]["nearest"]["p_value"] < 1
    message = told["checks"][0]["message"]
    assert re.search(
        r"no single column, pair or class is beyond chance; nearest: f\d+: moved, mean .* \(p = 0\.\d+\)", message
    )
    assert message in said
    test = sotdd.test(a, b, label=None)
    assert test.changes.nearest is not None
    assert "nearest: f" in repr(test)


def test_categories_that_are_shuffled_against_each_other_are_named(rng):
    a, b = table(rng, 600), table(rng, 600)
    found = sotdd.test(a, b.assign(color=rng.permutation(b.color)), label="cut")
    assert found.rejects()
    assert not found.changes.changed
    assert {"color", "clarity"} in [set(one.names) for one in found.changes.pairs]
    same = sotdd.test(a, b, label="cut")
    assert not same.rejects()
    assert not same.changes.pairs


def test_labels_by_the_product_of_two_columns_are_seen():
    for seed in range(4):
        rng = np.random.default_rng(seed)
        x = rng.normal(size=(2, 300, 6))
        y = (x[:, :, 3] * x[:, :, 4] > 0) ^ (rng.random((2, 300)) < 0.2)
        found = sotdd.test((x[0], y[0]), (x[1], rng.permutation(y[1])))
        assert (found.rejects(), found.strongest) == (True, "within classes")
        assert {one.column for one in found.changes.classes} == {"feature 3 and feature 4"}


def test_new_names_of_classes_change_no_number(rng):
    """Names order the classes, but not the permutations: the same null distribution to the bit, the same p-value."""
    x, codes = rng.normal(size=(300, 4)), rng.integers(3, size=300)
    found = [
        sotdd.test((x[:180], names[codes[:180]]), (x[180:], names[codes[180:]]), n_permutations=99)
        for names in (np.array(["a", "b", "c"]), np.array(["z", "b", "a"]))
    ]
    np.testing.assert_array_equal(found[0].null, found[1].null)
    assert found[0].p_value == found[1].p_value


def test_a_value_beyond_all_others_is_drift_in_arrays_too(rng):
    """One scale serves all features of arrays, which such a value makes by itself."""
    a, b = rng.normal(size=(100, 2)), np.vstack([rng.normal(size=(99, 2)), [[1e300, 0]]])
    tests = sotdd.test(a, b), sotdd.DriftReference.fit(a).test(b), sotdd.explain(a, b).test
    assert {found.verdict.value for found in tests} == {"drift"}
    assert all("feature 0" in found.far for found in tests)
