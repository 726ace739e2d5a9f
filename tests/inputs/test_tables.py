"""Tables as they come: which columns are features, what is left out, and that every kind of table goes by one rule."""

import dask.dataframe as dd
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import sotdd
from inputs.helpers import refusal
from inputs.messy_tables import people, with_gaps, write
from sotdd import SotddError, open_dataset
from sotdd.inputs import ParquetBatches

LEFT_OUT = "left out: customer_id (id), signup (date), city (text), note (text)"
FEATURES = ("age", "income", "vip")


@pytest.fixture(scope="module")
def tables(tmp_path_factory):
    folder = tmp_path_factory.mktemp("messy")
    write(folder)
    return folder


@pytest.fixture
def here(tables, monkeypatch):
    monkeypatch.chdir(tables)
    return tables


def values(data):
    return np.concatenate([data.rows(block) for block in data.blocks()])


KINDS = {
    "beside": lambda: (people(1).drop(columns="churned"), people(1)["churned"]),
    "pandas": lambda: people(1),
    "polars": lambda: pl.from_pandas(people(1)),
    "arrow": lambda: pa.Table.from_pandas(people(1), preserve_index=False),
    "csv": lambda: "people.csv",
    "tsv": lambda: "tabs.tsv",
    "semicolons": lambda: "german.csv::encoding=latin-1",
    "utf-16": lambda: "excel.csv",
    "parquet": lambda: "people.parquet",
    "folder": lambda: "parts",
}


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_table_goes_by_one_rule(here, kind):
    frame, label = people(1), {} if kind == "beside" else {"label": "churned"}
    opened = open_dataset(KINDS[kind](), **label)
    assert (opened.columns, opened.remarks) == (FEATURES, (LEFT_OUT,))
    assert [opened.classes[code] for code in opened.codes] == frame["churned"].tolist()
    np.testing.assert_array_equal(values(opened), frame[list(FEATURES)].to_numpy(float))
    asked = open_dataset(KINDS[kind](), **label, one_hot=5, dates=True, exclude=["vi*", "income"])
    assert asked.columns == ("signup", "age", "city=Köln", "city=Oslo", "city=Rome")
    assert asked.remarks == ("left out: customer_id (id), note (text, more than 5 values)",)
    days = (frame["signup"] - pd.Timestamp("1970-01-01")).dt.days
    expected = [days, frame["age"], *(frame["city"] == city for city in ("Köln", "Oslo", "Rome"))]
    np.testing.assert_array_equal(values(asked), np.column_stack(expected).astype(float))


def test_times_of_day_and_zones_are_days_in_utc():
    times = pd.to_datetime(["2024-03-01 06:00", "2024-03-02 18:00"])
    for moments in (times, times.tz_localize("UTC").tz_convert("Asia/Tokyo")):
        frame = pd.DataFrame({"at": moments, "y": [0, 1]})
        for source in (frame, pl.from_pandas(frame), pa.Table.from_pandas(frame)):
            np.testing.assert_allclose(values(open_dataset(source, dates=True))[:, 0], [19783.25, 19784.75])


def test_features_and_exclude_by_name_and_by_pattern(here):
    def columns(**more):
        return open_dataset("people.csv", label="churned", **more).columns

    assert columns(features="*e") == ("age", "income")
    assert columns(features=["vip", "age"]) == ("vip", "age")
    assert columns(features="customer_id") == ("customer_id",)  # by its own name, an id is one
    assert columns(features=["age", "signup"]) == ("age", "signup")
    assert columns(exclude="income") == ("age", "vip")
    assert open_dataset("people.csv::label=churned,features=*e,exclude=age").columns == ("income",)
    for how, said in (
        ({"exclude": "salary"}, "no column 'salary', only"),
        ({"features": "x*"}, "'x*'"),
        ({"features": ["age", "city"]}, "'city' of people.csv holds text"),
        ({"features": ["age", "city"], "one_hot": 2}, "more than 2"),
        ({"exclude": [*FEATURES, "customer_id"]}, "no column of numbers"),
    ):
        assert said in refusal("people.csv", label="churned", **how)
    assert "separator" in refusal("people.parquet", separator=";")


def test_what_is_an_id(here):
    n = 50
    frame = pd.DataFrame({"x": np.arange(n) / 7, "count": np.arange(n) % 9, "y": 0, "k": np.arange(n)[::-1]})
    for name in ("id", "customer_id", "userId", "Index", "Unnamed: 0", ""):
        for renamed in (frame, frame.iloc[:3], frame.astype({"k": float})):
            assert open_dataset(renamed.rename(columns={"k": name})).columns == ("x", "count"), name
    for name in ("k", "paid", "valid", "heat_index"):
        opened = open_dataset(frame.rename(columns={"k": name}))
        assert opened.columns == ("x", "count", name)
        assert f"id: {name};" in opened.remarks[0]  # every value differs
    frame.to_csv(here / "ids.csv", index=False)
    assert open_dataset("ids.csv").remarks == open_dataset(frame).remarks
    for other in (frame.iloc[:5], frame.assign(k=frame["k"] // 2), frame.assign(k=frame["k"] / 3)):
        assert open_dataset(other).remarks == ()
    assert open_dataset(frame[["k", "y"]].rename(columns={"k": "id"})).columns == ("id",)  # there is nothing else
    saved = open_dataset("with_index.csv", label="churned")
    assert saved.columns == FEATURES
    assert saved.remarks[0].startswith("left out: a column without a name (id), customer_id (id)")


def test_columns_that_are_empty_or_many(here):
    for source in ("empty_column.csv", people(1).assign(fax=np.nan)):
        assert "fax (empty)" in open_dataset(source, label="churned").remarks[0]
    wide = people(1).assign(**{f"t{k}": "a" for k in range(20)})
    assert open_dataset(wide, label="churned").remarks[0].endswith("t3 (text) and 16 more columns")


SAID = "8 of 120 rows, age (6), income (3)"


@pytest.mark.parametrize("source", ["gaps.csv", "gaps.parquet", "pandas", "polars"])
def test_missing_values_are_counted_dropped_or_filled_in(here, source):
    frame = with_gaps(people(1))
    source = {"pandas": frame, "polars": pl.from_pandas(frame)}.get(source, source)
    assert SAID in refusal(source, label="churned")
    dropped = open_dataset(source, label="churned", missing="drop")
    whole = frame.dropna()
    np.testing.assert_array_equal(values(dropped), whole[list(FEATURES)].to_numpy(float))
    assert [dropped.classes[code] for code in dropped.codes] == whole["churned"].tolist()
    assert SAID in dropped.remarks[1]
    filled = open_dataset(source, label="churned", missing="mean")
    expected = frame[list(FEATURES)].astype(float)
    np.testing.assert_allclose(values(filled), expected.fillna(expected.mean()), rtol=1e-6)
    assert SAID in filled.remarks[1]


def test_missing_flags_categories_dates_and_labels():
    frame = pd.DataFrame(
        {
            "flag": pd.array([True, None, False, True], "boolean"),
            "kind": ["a", None, "b", "b"],
            "at": pd.to_datetime(["1970-01-02", "1970-01-04", None, "1970-01-03"]),
            "label": ["u", "v", "v", None],
        }
    )
    for source in (frame, pl.from_pandas(frame), pa.Table.from_pandas(frame)):
        asked = {"one_hot": True, "dates": True}
        assert "2 of 4 rows" in refusal(source, **asked, drop_missing=True)
        opened = open_dataset(source, **asked, missing="mean", drop_missing=True)
        expected = [[1, 1, 0, 1], [2 / 3, 1 / 3, 2 / 3, 3], [0, 0, 1, 2]]
        np.testing.assert_allclose(values(opened), expected, rtol=1e-6)
        assert values(open_dataset(source, **asked, missing="drop")).tolist() == [[1, 1, 0, 1]]
        assert "label that is missing" in refusal(source, **asked, missing="mean")


def test_missing_values_of_arrays():
    x = np.array([[1.0, np.nan], [3.0, 4.0], [5.0, 8.0]])
    assert values(open_dataset((x, [0, 1, 1]), missing="drop")).tolist() == [[3, 4], [5, 8]]
    assert values(open_dataset((x, [0, 1, 1]), missing="mean")).tolist() == [[1, 6], [3, 4], [5, 8]]
    assert "infinite" in refusal((np.array([[1.0], [np.inf]]), [0, 1]), missing="mean")
    assert "column 'x'" in refusal(pd.DataFrame({"x": [None, np.nan], "z": [1.0, 2], "y": 0}),
                                                         features=["x", "z"], missing="mean")  # fmt: skip


def test_tables_that_are_compared_have_the_same_columns(here):
    found = sotdd.distance("people.csv::label=churned", "other_order.csv::label=churned", n_projections=32)
    assert found.columns == FEATURES
    assert set(found.remarks) == {
        f"people.csv::label=churned: {LEFT_OUT}",
        "other_order.csv::label=churned: left out: note (text), city (text), signup (date), customer_id (id)",
    }
    for pair in (("people", "age_as_text"), ("age_as_text", "people")):
        with pytest.raises(SotddError, match=r"column 'age' .*dataset 'people.*'.*text"):
            sotdd.distance(*(f"{name}.csv::label=churned" for name in pair))


def test_categories_are_those_of_all_tables(here):
    one, other = (open_dataset(name, label="churned", one_hot=True) for name in ("people.csv", "new_city.csv"))
    cities = ("city=Köln", "city=Oslo", "city=Paris", "city=Rome")
    there, back = sotdd.distance(one, other, n_projections=64), sotdd.distance(other, one, n_projections=64)
    assert there.columns == back.columns == (*FEATURES, *cities)
    assert there.value == pytest.approx(back.value, rel=1e-9)
    frames = []  # by hand: the same columns made with pandas
    for frame in (people(1, 120), people(4, 90, cities=("Oslo", "Paris"))):
        hot = {name: frame["city"] == name.removeprefix("city=") for name in cities}
        frames.append(frame[[*FEATURES, "churned"]].assign(**hot).rename(columns={"churned": "label"}))
    assert sotdd.distance(*frames, n_projections=64).value == pytest.approx(there.value, rel=1e-6)
    # Too many values in one of them: left out of both.
    few = [open_dataset(name, label="churned", one_hot=2) for name in ("people.csv", "new_city.csv")]
    assert sotdd.distance(*few, n_projections=8).columns == FEATURES
    with pytest.raises(SotddError, match=r"'city' .*one_hot="):
        sotdd.distance(one, "new_city.csv::label=churned")


def test_projections_fix_the_columns(here):
    one = open_dataset("people.csv", label="churned", one_hot=True)
    projections = sotdd.Projections.fit([one], n_projections=16)
    other = open_dataset("new_city.csv", label="churned", one_hot=True)
    found = sotdd.distance(one, other, projections=projections)
    assert found.columns == one.columns
    assert any("city=Paris" in remark for remark in found.remarks)
    assert sotdd.sketch(other, projections).distance(sotdd.sketch(one, projections)).value > 0


def test_streams_and_clusters_go_by_the_same_rules(here):
    batches = ParquetBatches.open("parts", label="churned")
    whole = open_dataset("people.parquet", label="churned")
    projections = sotdd.Projections.fit([whole], n_projections=16)
    expected = sotdd.sketch(whole, projections, n_quantiles=32)
    streamed = sotdd.sketch_stream(batches, projections, n_quantiles=32)
    assert streamed.n_points == expected.n_points
    assert streamed.distance(expected).value < 0.1
    frame = dd.from_pandas(people(1), npartitions=3)
    for source in ("parts", frame):
        made = sotdd.sketches.cluster.sketch(source, projections, label="churned", n_quantiles=32)
        np.testing.assert_allclose(made.quantiles, streamed.quantiles, atol=1e-6)
    hot = ParquetBatches.open("parts", label="churned", one_hot=True, dates=True, exclude="income")
    assert next(iter(hot)).columns == ("signup", "age", "vip", "city=Köln", "city=Oslo", "city=Rome")
    many = sotdd.Projections.fit([open_dataset("new_city.csv", label="churned", one_hot=True)], n_projections=8)
    cities = ParquetBatches.open("parts", label="churned", one_hot=True)  # Köln and Rome are new to these
    assert sotdd.sketch_stream(cities, many).n_points == 120
    assert sotdd.sketches.cluster.sketch("parts", many, label="churned", one_hot=True).n_points == 120
    with_some = ParquetBatches.open("gaps.parquet", label="churned", missing="drop")
    assert sum(len(labels) for _, labels in with_some) == 112
    with pytest.raises(SotddError, match=r"gaps.parquet has missing values in .* age \(\d\)"):
        list(ParquetBatches.open("gaps.parquet", label="churned"))


def test_labelled_against_unlabelled_is_refused_unless_asked_for(here):
    x, y = np.random.default_rng(0).normal(size=(40, 3)), np.arange(40) % 2
    for call in (sotdd.distance, sotdd.explain, sotdd.test, lambda a, b: sotdd.pairwise([a, b])):
        with pytest.raises(SotddError, match=r"has no labels but dataset .* has 2 classes"):
            call(x, (x, y))
    assert sotdd.distance(open_dataset(x, label=None), (x, y), n_projections=8).value > 0
    assert sotdd.distance(x, (x, np.zeros(40)), n_projections=8).value == 0  # one class is one class
    assert sotdd.distance(x, (x, y), method="mmd").value == pytest.approx(0, abs=1e-6)  # it looks at features alone
    found = sotdd.distance("no_label.csv::label=", "people.csv::label=churned", n_projections=8)
    assert found.n_points == (120, 120)
