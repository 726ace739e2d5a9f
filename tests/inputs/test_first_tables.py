"""The first real tables of a stranger: gaps, categories, written numbers, other files, and what each call says."""

import io
import sqlite3
import sys
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import torch

import sotdd
from inputs.helpers import refusal
from sotdd import SotddError, open_dataset


def customers(rng, n=500, age=40.0, yes=0.5, cities=("Rome", "Oslo", "Bonn")):
    return pd.DataFrame({
        "age": rng.normal(age, 10, n).round(1),
        "city": rng.choice(cities, n),
        "member": np.where(rng.random(n) < yes, "yes", "no"),
        "note": [f"note {k}" for k in range(n)],
        "churned": rng.integers(2, size=n),
    })  # fmt: skip


@pytest.mark.parametrize("spelling", ["?", "NA", "n/a", "-", "null", "None", "nan", ""])
def test_a_question_mark_among_numbers_is_a_gap(folder, rng, spelling):
    for name, age in (("a.csv", 40), ("b.csv", 60)):
        frame = customers(rng, age=age).astype({"age": object})
        frame.loc[7, "age"] = spelling
        frame.to_csv(name, index=False)
        for source in (name, frame):
            opened = open_dataset(source, label="churned")
            assert opened.columns[:2] == ("age", "age is missing")
            assert opened.features[:, 1].sum() == opened.features[7, 1] == 1
    assert sotdd.test("a.csv", "b.csv", label="churned", n_permutations=99).p_value == 0.01


def test_check_of_tables_with_gaps_finds_the_drift(folder, rng, run):
    for name, age in (("a.csv", 40), ("b.csv", 60)):
        frame = customers(rng, age=age).astype({"age": object})
        frame.loc[7, "age"] = "?"
        frame.to_csv(name, index=False)
    code, said, _ = run("check", "a.csv", "b.csv", "--label", "churned", "--n-permutations", "39")
    assert (code, "FAILED" in said) == (1, True)
    pd.read_csv("b.csv").assign(age="forty").to_csv("c.csv", index=False)
    code, _, errors = run("check", "a.csv", "c.csv", "--label", "churned")
    assert code == 2
    assert "'age'" in errors
    assert "'forty' in row 0" in errors


def test_categories_and_yes_no_count_by_default(rng):
    one = customers(rng)
    assert open_dataset(one, label="churned").columns == ("age", "city=Bonn", "city=Oslo", "city=Rome", "member")
    for other in (customers(rng, yes=0.9), customers(rng, cities=("Rome", "Paris"))):
        assert sotdd.test(one, other, label="churned", n_permutations=99).p_value == 0.01
    judged = open_dataset(one, label="churned").judged
    assert str(judged) == "judged 3 of 4 columns (left out: note, free text)"
    assert judged.facts["left_out"]["note"] == {"why": "free text", "value": "note 0", "row": 0}
    ints = one.assign(age=pd.Categorical(rng.integers(3, size=500)))
    assert open_dataset(ints, label="churned").columns[:3] == ("age=0", "age=1", "age=2")
    assert open_dataset(one.assign(member="+"), label="churned").columns[-1] == "member=+"


@pytest.mark.parametrize(
    ("texts", "numbers"),
    [
        (["1,234.50", "-12", "0.5", "1,000,000", "7", "8"], [1234.5, -12, 0.5, 1e6, 7, 8]),
        (["$12", "$1,000", "$0.5", "-$3", "$4", "$5"], [12, 1000, 0.5, -3, 4, 5]),
        (["24.7%", "100 %", "0%", "", "3%", "4%"], [24.7, 100, 0, np.nan, 3, 4]),
        (["1.234,50", "12", "0,5", "€ 1.000", "7 €", "8"], [1234.5, 12, 0.5, 1000, 7, 8]),
        (["2,338", "-0,663", "1,000", "0,250", "3,125", "8"], [2.338, -0.663, 1, 0.25, 3.125, 8]),  # no thousands
    ],
)
def test_numbers_as_people_write_them(folder, texts, numbers):
    frame = pd.DataFrame({"x": texts, "label": 0})
    frame.to_csv("t.csv", index=False)
    frame.to_parquet("t.parquet")
    expected = pd.Series(numbers).fillna(np.nanmean(numbers))
    for source in (frame, "t.csv", "t.parquet"):
        opened = open_dataset(source)
        np.testing.assert_allclose(opened.features[:, 0], expected)
        assert opened.remarks[0].kind == "numbers in text"
        assert texts[0] in str(opened.remarks[0])
    mixed = frame.assign(x=[*texts[:5], "about 7"], z=1.0)
    assert "such as 'about 7' in row 5" in refusal(mixed, one_hot=False, features=["x", "z"])


def test_reading_settings_in_every_call(rng):
    one, other = customers(rng), customers(rng, age=50)
    how = {"label": "churned", "exclude": "city"}
    assert sotdd.distance(one, other, **how, n_projections=16).columns == ("age", "member")
    assert sotdd.pairwise([one, other], **how, n_projections=16)["0", "1"].columns == ("age", "member")
    assert sotdd.rank(one, [other], **how, n_projections=16).nearest == "0"
    assert sotdd.test(one, other, **how, n_permutations=19).p_value == 0.05
    assert sotdd.explain(one, other, **how, n_projections=16).distance.value > 0
    reference = sotdd.DriftReference.fit(one, **how)
    assert reference.test(other, n_permutations=19).p_value == 0.05
    projections = reference.projections
    assert sotdd.sketch(other, projections, **how).columns == ("age", "member")


def test_frames_are_called_by_argument_and_columns_by_name(rng):
    one = customers(rng)
    with pytest.raises(SotddError, match=r"'b' has no column 'age' and has 'years', unlike dataset 'a'"):
        sotdd.distance(one, one.rename(columns={"age": "years"}), label="churned")
    with pytest.raises(SotddError, match=r"'b' has no column 'city', unlike dataset 'a'"):
        sotdd.distance(one, one.drop(columns="city"), label="churned")
    one.loc[3, "age"] = np.inf
    with pytest.raises(SotddError, match=r"'b' .*row 3, column 'age'"):
        sotdd.distance(customers(rng), one, label="churned")


def test_lines_databases_and_standard_input(folder, rng, monkeypatch):
    frame = customers(rng, 60).rename(columns={"churned": "label"})
    expected = open_dataset(frame)
    frame.to_json("t.jsonl", orient="records", lines=True)
    frame.to_csv("t.tsv.gz", index=False, sep="\t")
    (folder / "parts").mkdir()
    frame[:30].to_csv("parts/0.csv", index=False)
    frame[30:].to_csv("parts/1.csv", index=False)
    with sqlite3.connect("t.db") as database:
        frame.to_sql("people", database, index=False)
        database.execute("CREATE TABLE other (x)")
        database.execute("CREATE VIEW some AS SELECT age, city, member, note, label FROM people")
    database.close()
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(frame.to_csv(index=False).encode())))
    sources = ["t.jsonl", "t.tsv.gz", "parts", "parts/*.csv", "-", "t.db::table=people", "t.db::table=some"]
    for source in sources:
        opened = open_dataset(source)
        assert opened.columns == expected.columns
        np.testing.assert_allclose(opened.features, expected.features)
    assert "'people', 'other', 'some'" in refusal("t.db")


def test_workbooks_and_duckdb(folder, rng):
    frame = customers(rng, 60).rename(columns={"churned": "label"})
    expected = open_dataset(frame)
    duckdb = pytest.importorskip("duckdb")
    with duckdb.connect("t.duckdb") as database:
        database.register("frame", pa.Table.from_pandas(frame))
        database.execute("CREATE TABLE people AS SELECT * FROM frame")
        relation = database.sql("SELECT * FROM people")
        assert open_dataset(relation).columns == expected.columns
    for source in ("t.duckdb", "t.duckdb::table=people"):
        np.testing.assert_allclose(open_dataset(source).features, expected.features)
    pytest.importorskip("python_calamine")
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    for row in [list(frame.columns), *frame.astype({"age": object}).to_numpy().tolist()]:
        book.active.append(row)
    book.save("t.xlsx")
    np.testing.assert_allclose(open_dataset("t.xlsx").features, expected.features)
    assert "by table" in refusal("t.xlsx::table=Second")
    (folder / "not.xlsx").write_text("no workbook")
    assert "not.xlsx" in refusal("not.xlsx")


def test_odd_files_are_refused_at_once(folder):
    (folder / "zero.csv").symlink_to("/dev/zero")
    assert "regular file" in refusal("zero.csv")
    np.savez("many.npz", **{f"a{k}": np.zeros(1) for k in range(300)})
    assert len(refusal("many.npz")) < 300
    (folder / "x.json").write_text("{}")
    assert "x.json" in refusal("x.json")
    (folder / "t.jsonl").write_text('{"a": 1, "y": 0}\n' * 9 + '{"a": "x", "y": 0}\n')
    assert refusal("t.jsonl").startswith("cannot read t.jsonl (JSON parse error: Column(/a) changed")
    (folder / "t.csv").write_text("a,y\n1,2\n" + "x" * 3000 + "\n")
    assert "Row #3: Expected 2 columns, got 1" in refusal("t.csv")
    assert len(refusal("t.csv")) < 300


class Endless(torch.utils.data.Dataset):
    """With a length that is none."""

    def __len__(self):
        return -1  # noqa: PLE0303  # as it is not to be

    def __getitem__(self, row):
        return np.zeros(2), 0


def test_odd_lengths_and_lone_surrogates_are_one_short_line():
    assert "'data' has no length" in refusal(Endless(), max_points=3)
    odd, names = pd.Series(["a", "\ud800"], dtype=object), pd.Index(["x", "\ud800"], dtype=object)
    for frame in (pd.DataFrame({"x": [1.0, 2.0], "y": odd}), pd.DataFrame([[1.0, 0]], columns=names)):
        assert len(refusal(frame, label=None)) < 200
    assert "na_values is" in refusal(pd.DataFrame({"x": ["a", "b"], "y": 0}), na_values="\ud800")


def test_values_that_mean_nothing_may_be_numbers(folder):
    (folder / "t.csv").write_text("x,y\n1,0\n-999,1\n3,1\n")
    frame = pd.read_csv("t.csv")
    for source in ("t.csv", frame, frame.astype({"x": np.int16}), frame.astype({"x": np.float32})):
        assert open_dataset(source, na_values=["?!", "-999"]).features.tolist() == [[1, 0], [2, 1], [3, 0]]


@pytest.mark.slow
def test_a_malformed_file_of_many_megabytes_ends_at_once(folder, run):
    (folder / "bad.csv").write_text("a,b,label\n" + "1,2,3\n" * 6_000_000 + "1,2\n")
    code, _, errors = run("distance", "bad.csv", "bad.csv")
    assert code == 2
    assert "bad.csv" in errors


GAPS = ["n.a.", "missing", "unknown", "--", ".", "<NA>", "Unknown", " N.A. "]


@pytest.mark.parametrize("word", GAPS)
def test_words_that_mean_nothing_among_numbers(folder, word):
    numbers = [str(row / 4) for row in range(40)]
    numbers[7] = word
    frame = pd.DataFrame({"x": numbers, "z": 1.0, "label": 0})
    frame.to_csv("t.csv", index=False)
    for source in (frame, "t.csv"):
        opened = open_dataset(source)
        assert opened.columns == ("x", "x is missing", "z")
        assert np.flatnonzero(opened.origin.gaps["x"]).tolist() == [7]
        assert open_dataset(source, max_points=40, missing="drop").n_points == 39
    money = frame.assign(x=["$" + text if text != word else word for text in numbers])
    assert open_dataset(money).columns == opened.columns
    mixed = frame.assign(x=[*numbers[:-1], "about 7"])  # the example is what is no number, not what is no value
    assert "such as 'about 7' in row 39" in refusal(mixed, one_hot=False, features=["x", "z"])


def test_words_that_mean_nothing_among_numbers_are_values_elsewhere():
    frame = pd.DataFrame({"size": ["small", "unknown", "missing"] * 9, "all": "unknown", "label": 0})
    assert open_dataset(frame).columns == ("size=missing", "size=small", "size=unknown", "all=unknown")


@pytest.mark.parametrize(
    ("distinct", "rows", "is_category"),
    [(184, 920, True), (184, 919, False), (21, 105, True), (21, 104, False), (20, 21, True), (20, 20, False),
     (6, 6, False), (5, 5, True)],
)  # fmt: skip
def test_text_is_a_category_if_its_values_occur_five_times_or_are_few(distinct, rows, is_category):
    """Whatever share of the rows the most frequent ones have."""
    zones = [f"zone {row % distinct}" for row in range(rows)]
    opened = open_dataset(pd.DataFrame({"zone": zones, "z": np.arange(rows) / 7, "label": 0}))
    assert opened.table == (("zone", "z") if is_category else ("z",))
    assert ("zone" in opened.origin.left_out) is not is_category


def test_what_errors_about_columns_advise_works(rng, folder, run):
    frame = customers(rng, 200).rename(columns={"churned": "label"})
    others = {
        "age": frame.assign(age=frame["age"].astype(object).where(frame.index != 50, "forty")),
        "city": frame.assign(city=rng.normal(size=200)),
    }
    frame.to_csv("a.csv", index=False)
    for column, other in others.items():
        other.to_csv(f"{column}.csv", index=False)
        code, _, said = run("distance", "a.csv", f"{column}.csv")
        assert code == 2
        assert "--exclude or --na-values" in said
        for command in ("distance", "check"):
            assert run(command, "a.csv", f"{column}.csv", "--exclude", column)[0] == 0
    assert run("distance", "a.csv", "age.csv", "--na-values", "forty")[0] == 0
    assert run("reference", "a.csv", "-o", "a.ref", "--exclude", "age")[0] == 0
    assert run("check", "a.ref", "age.csv")[0] == 0
    for how in (["age.csv", "--exclude", "ci*"], ["age.csv::exclude=city"]):
        code, said, errors = run("check", "a.ref", *how)
        assert code == 2
        assert "make the reference without it" in said + errors
    assert run("check", "a.ref", "age.csv", "--exclude", "age")[0] == 0  # which it does not have


def test_integers_that_never_repeat_may_be_ids(folder):
    rows = np.arange(60)
    frame = pd.DataFrame({"order": rows + 1000, "half": rows / 2, "twice": rows // 2, "price": rows * 1.5 + 0.25})
    frame = frame.assign(gap=np.where(rows == 3, np.nan, rows), label=0)
    frame.to_csv("t.csv", index=False)
    for source in (frame, "t.csv", frame.astype({"order": float})):
        for most in (None, 30):
            [said] = [one for one in open_dataset(source, max_points=most).remarks if one.kind == "may be ids"]
            assert said.facts == {"columns": ("order",)}
    assert "may be ids" not in [one.kind for one in open_dataset(frame, features=["order", "half"]).remarks]
