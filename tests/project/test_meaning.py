"""Tests of meaning: what names, orders and copies of the same data must not change, and what a verdict may say.

Everything goes through the public calls and the command line, on tables as people have them: categories, gaps, flags,
dates, heavy tails, and names that look like generated ones.
"""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import sotdd

FEW = {"n_projections": 16}
SEEDS = pytest.mark.parametrize("seed", range(8))

# Names that look like those of generated features, like source options, or like nothing at all.
HOSTILE = (
    "x", "x is missing", "city", "city=Rome", "city is missing", '"x"', "k=v", "a::b", "a,b", " x", "X", "0", "-1",
    "NaN", "None", "true", "ß", "\u202ex", "\r\n", "\x1b[31m", "=1+1", "x (2)", "é", "e\u0301", "🐈", "all", "other",
    "together", "x" * 200, "'", "\\", "<b>", "%s", "{0}", "label=y",
)  # fmt: skip
CITIES = ("Rome", "k=v", "is missing", "", "a,b", "city=Rome", "1", "1.5", "yes")


def make_column(kind, rng, n):
    """One column of n values."""
    values = rng.normal(size=n)
    return {
        "number": lambda: values,
        "gaps": lambda: np.where(rng.random(n) < 0.2, np.nan, values),
        "tail": lambda: rng.pareto(0.7, n),
        "large": lambda: 1e12 + 1e9 * values,
        "small": lambda: 1e-12 * values,
        "integer": lambda: rng.integers(-3, 4, n),
        "flag": lambda: rng.random(n) < 0.3,
        "constant": lambda: np.full(n, 7.0),
        "category": lambda: rng.choice(np.array(CITIES, object), n),
        "category with gaps": lambda: np.where(rng.random(n) < 0.2, None, rng.choice(np.array(CITIES[:3], object), n)),
        "date": lambda: pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 900, n), "D"),
        "text": lambda: [f"note {number} of {n}" for number in rng.permutation(n)],
    }[kind]()


KINDS = ("number", "gaps", "tail", "large", "small", "integer", "flag", "constant", "category", "category with gaps",
         "date", "text")  # fmt: skip


def make_table(columns, seed, n, shift=0.0):
    """A table by the kind of every column, and a column of classes, "kind of row", that go with the first numbers."""
    rng = np.random.default_rng(seed)
    found = {name: make_column(kind, rng, n) for name, kind in columns.items()}
    for name in [name for name, kind in columns.items() if kind in ("number", "gaps")][:1]:
        found[name] = found[name] + shift
    return pd.DataFrame({**found, "kind of row": rng.choice(["cat", "dog", "x=y"], n)})


def draw_pair(seed, *, texts=True):
    """Two tables of the same columns, one of them numbers, and new names for these columns."""
    rng = np.random.default_rng(seed)
    count, found = int(rng.integers(1, 6)), ["".join(map(chr, rng.integers(33, 0x2000, 3))) for _ in range(10)]
    names = rng.permutation(np.array([*HOSTILE, *found], object))[: 2 * count].tolist()
    kinds = ["number", *rng.choice(KINDS if texts else KINDS[:-1], count - 1).tolist()]
    columns, sizes, shift = dict(zip(names[:count], kinds, strict=True)), rng.integers(12, 40, 2), 3 * (seed % 2)
    tables = [make_table(columns, [seed, side], int(n), side * shift) for side, n in enumerate(sizes)]
    return tables, dict(zip(names[:count], names[count:], strict=True))


def tell(call, *arguments, names=(), **chosen):
    """The numbers of a distance, a test or an explanation, with its columns by their old names; or that it is none."""
    try:
        found = call(*arguments, **chosen)
    except sotdd.SotddError:
        return "refused"
    old = {new: old for old, new in dict(names).items()}
    test = getattr(found, "test", found)
    said = {"values": [getattr(found, name).value for name in ("distance", "unlabelled") if hasattr(found, "test")]}
    if isinstance(found, sotdd.results.Distance):
        return {"value": found.value, "stderr": found.stderr, "n_points": found.n_points}
    said |= {"p": test.p_value, "verdict": test.verdict, "null": test.null.tolist(), "statistic": test.statistic}
    said["columns"] = {old.get(one.column, one.column): (one.p_value, one.changed, one.what) for one in test.changes}
    return said


def assert_same(one, other, at_most=1e-12):
    """Values of the two agree in all but their last digits, or are that near."""
    if not isinstance(one, dict):
        assert one == other
        return
    assert one.keys() == other.keys()
    for key, value in one.items():
        if key in ("value", "stderr", "statistic", "values", "null"):
            assert other[key] == pytest.approx(value, rel=1e-6, abs=at_most), key
        else:
            assert other[key] == value, key


CALLS = {
    "distance": lambda a, b, label: sotdd.distance(a, b, label=label, **FEW),
    "reference": lambda a, b, label: sotdd.DriftReference.fit(a, label=label, n_projections=4).test(
        b, n_permutations=19
    ),
}


# ------------------------------------------------------------------ names, orders and copies


@SEEDS
def test_names_of_columns_and_classes_change_no_number(seed):
    """Neither those of columns, of classes nor of the column of classes."""
    (a, b), names = draw_pair(seed)
    names["kind of row"] = "💥=1"
    classes = {"cat": "zebra", "dog": "ant", "x=y": "x"}
    renamed = [one.assign(**{"kind of row": one["kind of row"].map(classes)}).rename(columns=names) for one in (a, b)]
    for call in CALLS.values():
        assert_same(tell(call, a, b, "kind of row"), tell(call, *renamed, "💥=1", names=names))


@SEEDS
def test_rows_may_come_in_any_order_and_twice(seed):
    (a, b), _ = draw_pair(seed, texts=False)  # free text that is there twice may be a category
    shuffled = a.sample(frac=1, random_state=1), b.sample(frac=1, random_state=2)
    twice = (pd.concat([one, one]) for one in (a, b))
    found, again, of_twice = (tell(CALLS["distance"], *pair, "kind of row") for pair in ((a, b), shuffled, twice))
    assert_same(found, again)
    assert found == of_twice == "refused" or of_twice["value"] == pytest.approx(found["value"], rel=1e-6, abs=1e-12)


COLUMNS = dict(zip(
    ("x", "x is missing", "city=Rome", "city", "flag", "day", "tail"),
    ("gaps", "number", "number", "category with gaps", "flag", "date", "tail"), strict=True
))  # fmt: skip


def move(table, column, by):
    return table.assign(**{column: table[column] + by})


@pytest.fixture(scope="module")
def tables():
    """A table of everything, another of its law, and one whose second column has moved."""
    first, same = (make_table(COLUMNS, seed, n) for seed, n in ((1, 160), (3, 90)))
    return first, same, move(same, "x is missing", 2.5)


def test_an_explanation_goes_by_no_name(tables):
    first, _, moved = tables
    names = dict(zip(COLUMNS, ("a", "tail", "city", "x", "b is missing", "x is missing", "city=Rome"), strict=True))
    one = tell(sotdd.explain, first, moved, label="kind of row", **FEW)
    renamed = (table.rename(columns=names) for table in (first, moved))
    assert_same(one, tell(sotdd.explain, *renamed, names=names, label="kind of row", **FEW))
    assert [name for name, (_, changed, *_) in one["columns"].items() if changed] == ["x is missing"]


def test_a_noise_floor_goes_by_no_name(tables):
    """Nor do shares of columns: their splits have the same seed."""
    pairs = tables[:2], [table.rename(columns={"tail": "q"}) for table in tables[:2]]
    one, other = (sotdd.distance(*pair, label="kind of row", noise_floor=True, **FEW) for pair in pairs)
    assert one.noise.value == pytest.approx(other.noise.value, rel=1e-6)


CITY_NAMES = [
    {"Rome": "z", "k=v": "a", "is missing": "city=Rome"},  # in another order
    {"Rome": "k=v", "is missing": "Rome", "k=v": "is missing"},
]


def change_order(table, change):
    """The same table with its columns or its rows in another order, or with other names of cities."""
    if change == "columns":
        return table[table.columns[[7, 3, 6, 0, 4, 2, 5, 1]]]
    if change == "rows":
        return table.sample(frac=1, random_state=5)
    return table.assign(city=table["city"].map(lambda one: change.get(one, one)))


@pytest.mark.parametrize("change", ["columns", *CITY_NAMES, "rows"], ids=str)
def test_orders_and_categories_change_no_number(tables, change):
    """Directions are sampled for features in an order that follows from their values alone."""
    first, *others = tables
    for other, verdict in zip(others, ("passed", "drift"), strict=True):
        pair = [first, other]
        changed = [change_order(table, change) for table in pair]
        one, another = (
            sotdd.distance(*both, label="kind of row", n_projections=64, noise_floor=change != "rows")
            for both in (pair, changed)
        )
        assert_same(*({"value": found.value, "stderr": found.stderr} for found in (one, another)))
        if change != "rows":  # which halves are sampled of
            assert one.noise.value == pytest.approx(another.noise.value, rel=1e-6)
        few = {"n_permutations": 99, "n_projections": 16}
        tests = [tell(sotdd.test, *both, label="kind of row", **few) for both in (pair, changed)]
        assert [str(test["verdict"]) for test in tests] == [verdict] * 2
        if change != "rows":  # which are permuted by their places
            assert_same(*tests, at_most=1e-5)  # deviations may be near none


# ------------------------------------------------------------------ the command line


@pytest.fixture
def here(tmp_path, monkeypatch, tables):
    monkeypatch.chdir(tmp_path)
    for name, table in zip(("train", "same", "moved"), tables, strict=True):
        table.to_csv(f"{name}.csv", index=False)
    return tmp_path


CHECK = ("--n-permutations", "39", "--n-projections", "16", "--json")


@pytest.mark.parametrize("reference", ["train.csv", "train.ref"])
def test_files_columns_and_rows_of_a_gate_by_any_name_and_order(here, run, reference):
    """As they are, called otherwise, and in another order: the same verdict, and by names also the same numbers."""
    label = ("--label", "kind of row")
    names = {"x": "x is missing", "x is missing": "city=Rome", "city=Rome": "é", "kind of row": "k=v"}
    odd = "train=1, 2.csv", "same ü.csv", "-moved.csv"
    for name, new in zip(("train", "same", "moved"), odd, strict=True):
        pd.read_csv(f"{name}.csv").rename(columns=names).to_csv(new, index=False)
    for batch, renamed, ended in (("same", "./same ü.csv", 0), ("moved", "./-moved.csv", 1)):
        told = []
        for one, other, of in (
            (reference, f"{batch}.csv", label), (reference.replace("train", "train=1, 2"), renamed, ("--label", "k=v"))
        ):  # fmt: skip
            if reference.endswith(".ref"):
                assert run("reference", one.replace(".ref", ".csv"), "-o", one, *of, *CHECK[2:4])[0] == 0
                how = (*CHECK[:2], "--json")
            else:
                how = (*of, *CHECK)
            code, said, errors = run("check", one, other, *how)
            told.append(json.loads(said))
            assert (code, errors) == (ended, "")
        assert [one["test"]["p_value"] for one in told] == [told[0]["test"]["p_value"]] * 2
        assert told[1]["distance"]["value"] == pytest.approx(told[0]["distance"]["value"], rel=1e-9)
        table = pd.read_csv(f"{batch}.csv").sample(frac=1, random_state=3)
        table[table.columns[::-1]].to_csv("other.csv", index=False)
        code, said, _ = run("check", "train.csv", "other.csv", *label, *CHECK)
        assert code == ended
        changed = [[one["column"] for one in each["changes"]["columns"] if one["changed"]] for each in
                   (told[0], json.loads(said))]  # fmt: skip
        assert changed[0] == changed[1] == ([] if batch == "same" else ["x is missing"])


# ------------------------------------------------------------------ what is written is read


@SEEDS
def test_what_is_written_is_read(tmp_path, seed):
    """Sketches and references of any table say the same again, to the last bit; so do sketches in a catalog."""
    (a, b), _ = draw_pair(seed)
    opened = [sotdd.open_dataset(one, label="kind of row", name="💥 a=b::c") for one in (a, b)]
    reference = sotdd.DriftReference.fit(a, label="kind of row", n_projections=4, with_sketch=True)
    reference.save(tmp_path / "a.ref")
    again = sotdd.DriftReference.load(tmp_path / "a.ref")
    assert again.settings == reference.settings
    assert again.projections.columns == reference.projections.columns
    one, other = (kept.test(b, n_permutations=9) for kept in (reference, again))
    assert one.to_dict() == other.to_dict()
    assert reference.distance(b).to_dict() == again.distance(b).to_dict()
    sketches = [sotdd.sketch(data, reference.projections) for data in opened]
    sketches[0].save(tmp_path / "a.sotdd")
    loaded = sotdd.Sketch.load(tmp_path / "a.sotdd")
    assert (loaded.name, loaded.classes, loaded.columns) == (sketches[0].name, sketches[0].classes, sketches[0].columns)
    assert loaded.distance(sketches[1]).to_dict() == sketches[0].distance(sketches[1]).to_dict()
    np.testing.assert_array_equal(sotdd.sketch(opened[1], loaded.projections).quantiles, sketches[1].quantiles)


def test_what_a_catalog_was_given_it_finds(tmp_path, tables):
    """By names like those of columns, with the distance that the sketches have."""
    pytest.importorskip("lancedb")
    opened = [sotdd.open_dataset(table, label="kind of row") for table in tables]
    projections = sotdd.Projections.fit(opened, n_projections=64)
    names = "k=v", "a::b=c", "x is missing"
    sketches = {name: sotdd.sketch(data, projections) for name, data in zip(names, opened, strict=True)}
    catalog = sotdd.Catalog(tmp_path / "c=d::e")
    catalog.add_many(sketches)
    found = sotdd.Catalog(tmp_path / "c=d::e").nearest(sketches["k=v"])
    assert found.names == ("k=v", "a::b=c", "x is missing")
    for name in found.names:
        assert found[name].value == pytest.approx(sketches["k=v"].distance(sketches[name], estimator="plain").value)


# ------------------------------------------------------------------ what a verdict may say

BATCHES = {
    "empty.csv": b"",
    "header.csv": b"x,x is missing,city=Rome,city,flag,day,tail,kind of row\n",
    "other.csv": b"u,v\n" + b"1,2\n" * 30,
    "noise.csv": bytes(range(256)) * 9,
    "cut.parquet": b"PAR1" + b"\0" * 90,
    "cut.npz": b"PK\x03\x04" + b"\0" * 90,
    "list.json": b"[[[1]]]",
    "a.ref": b"sotdd",
    "a.sotdd": b"sotdd",
}
OPTIONS = [(), ("--fail-above", "0.25"), ("--min-points", "1", "--n-permutations", "1")]


def assert_verdict(code, said, errors):
    """A batch passes by a criterion that was measured and held; and by exit code 0 nothing else does."""
    told = json.loads(said)
    each = told.get("batches", [told])
    verdicts = {one["verdict"] for one in each}
    assert code == (1 if "drift" in verdicts else 2 if "undecided" in verdicts else 0)
    assert verdicts <= {"passed", "drift", "undecided"}
    for one in each:
        held = [check for check in one["checks"] if not check["failed"]]
        if one["verdict"] == "drift":
            assert len(held) < len(one["checks"])
        if one["verdict"] == "undecided":
            assert one["error"]
            assert errors
        if one["verdict"] == "passed":
            assert len(held) == len(one["checks"]) > 0
            for check in held:
                assert np.isfinite(check["value"])
                kind = check["criterion"]
                assert check["value"] > check["limit"] if kind == "p_value" else check["value"] <= check["limit"]
                if kind == "p_value":
                    assert one["test"]["p_value"] == check["value"]
                    assert check["value"] > 1 / (1 + one["test"]["n_null"])  # more permutations might turn the smallest
                else:
                    assert one["distance"]["value"] == check["value"]


@pytest.mark.parametrize("options", OPTIONS, ids=" ".join)
def test_nothing_passes_that_was_not_measured(here, run, tables, options):
    for name, content in BATCHES.items():
        Path(name).write_bytes(content)
    _, same, _ = tables
    same.assign(tail=np.inf).to_csv("endless.csv", index=False)
    same.assign(x=np.nan, city=None, flag=None).to_csv("gaps.csv", index=False)
    same[:1].to_csv("one.csv", index=False)
    same[:12].to_csv("few.csv", index=False)
    move(same, "x is missing", 1e300).to_csv("far.csv", index=False)
    same.drop(columns="x").to_csv("lacks.csv", index=False)
    run("reference", "train.csv", "-o", "train.ref", "--label", "kind of row", "--n-projections", 16)
    run("sketch", "train.csv", "-o", "train.sotdd", "--label", "kind of row", "--n-projections", 16)
    more = ("endless", "gaps", "one", "few", "far", "lacks", "same", "moved", "missing")
    batches = [*BATCHES, *(f"{name}.csv" for name in more), "train.ref", "train.sotdd", "."]
    code, said, errors = run("check", "train.ref", *batches, *CHECK[:2], *options, "--json")
    assert_verdict(code, said, errors)
    passed = {one["current"] for one in json.loads(said)["batches"] if one["verdict"] == "passed"}
    assert passed - {"few.csv"} == {"same.csv"} | ({"one.csv"} if "--min-points" in options else set())
    for batch in (*BATCHES, "gaps.csv", "far.csv", "same.csv"):
        code, said, errors = run("check", "train.ref", batch, *CHECK[:2], *options, "--json")
        assert_verdict(code, said, errors)
        assert (code == 0) == (batch == "same.csv")
    for reference in ("train.sotdd", "a.ref", "empty.csv", "missing.csv"):
        assert_verdict(*run("check", reference, "same.csv", *options, "--json"))
