"""Tables as they come: which columns are features, what is left out, and that columns are matched by name."""

import dask.dataframe as dd
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset
import pytest

import sotdd
from inputs.helpers import refusal
from inputs.messy_tables import CITIES, people, with_gaps, write
from sotdd import LabelledData, SotddError, open_dataset
from sotdd.basics.remarks import Remark
from sotdd.inputs import open_pair
from sotdd.inputs.agreement import order_columns
from sotdd.inputs.features import DeviceFeatures
from sotdd.sketches import cluster

LEFT_OUT = Remark("columns left out", columns={"customer_id": "id", "signup": "date", "note": "free text"})
NUMBERS = ("age", "income", "vip")
FEATURES = (*NUMBERS, *(f"city={city}" for city in CITIES))


def hot(frame, cities=CITIES):
    """The features of people, by hand."""
    return np.column_stack([frame[list(NUMBERS)], *(frame["city"] == city for city in cities)]).astype(float)


@pytest.fixture(scope="module")
def tables(tmp_path_factory):
    folder = tmp_path_factory.mktemp("messy")
    write(folder)
    return folder


@pytest.fixture
def here(tables, monkeypatch):
    monkeypatch.chdir(tables)
    return tables


def test_every_kind_of_table_goes_by_one_rule(here):
    frame = people(1)
    beside = open_dataset((frame.drop(columns="churned"), frame["churned"]))
    assert (beside.columns, beside.remarks) == (FEATURES, (LEFT_OUT,))
    for source in (frame, pl.from_pandas(frame), pa.Table.from_pandas(frame, preserve_index=False), "people.csv",
                   "tabs.tsv", "german.csv::encoding=latin-1", "excel.csv", "people.parquet", "parts",
                   dd.from_pandas(frame, npartitions=3)):  # fmt: skip
        opened = open_dataset(source, label="churned")
        assert (opened.columns, opened.remarks) == (FEATURES, (LEFT_OUT,))
        assert [opened.classes[code] for code in opened.codes] == frame["churned"].tolist()
        np.testing.assert_array_equal(opened.rows(slice(None)), hot(frame))
        assert str(opened.judged).startswith("judged 4 of 7 columns (left out: customer_id, id; signup, date; note")
        asked = open_dataset(source, label="churned", one_hot=False, exclude=["vi*", "income"])
        assert asked.columns == ("age",)
        assert asked.remarks[0].facts["columns"]["city"] == "free text"


def test_a_column_that_one_table_lacks_is_left_out_where_it_is(rng):
    """The table that lacks it says so; a name that is in none of them is refused."""
    plain = pa.table({"x": rng.normal(size=20), "z": rng.normal(size=20)})
    rich = plain.append_column("note", pa.array(rng.normal(size=20)))
    a, b = open_pair(plain, rich, label=None, exclude="note")
    assert a.columns == b.columns == ("x", "z")
    assert (a.origin.remarks, b.origin.remarks) == ((Remark("nothing to exclude", columns=("note",)),), ())
    with pytest.raises(SotddError, match="no dataset has a column typo to leave out"):
        open_pair(plain, rich, label=None, exclude=["note", "typo"])


def test_features_and_exclude_by_name_and_by_pattern(here):
    for how, expected in (
        ("features=*e", ("age", "income")),
        ("features=vip+age", ("vip", "age")),
        ("features=customer_id", ("customer_id",)),  # by its own name, an id is one
        ("features=*e,exclude=age", ("income",)),
    ):
        assert open_dataset(f"people.csv::label=churned,{how}").columns == expected
    for how, said in (
        ({"features": "x*"}, "'x*'"),
        ({"features": ["age", "signup"]}, "'signup' of people.csv holds date"),
        ({"features": ["age", "city"], "one_hot": False}, "'city'"),
        ({"exclude": [*NUMBERS, "customer_id", "city"]}, "no column of numbers"),
    ):
        assert said in refusal("people.csv", label="churned", **how)


def test_what_is_an_id(here):
    frame = pd.DataFrame({"x": np.arange(50) / 7, "count": np.arange(50) % 9, "y": 0, "k": np.arange(50)[::-1]})
    for name in ("id", "customer_id", "userId", "Index", "Unnamed: 0", ""):
        for renamed in (frame, frame.iloc[:3], frame.astype({"k": float})):
            assert open_dataset(renamed.rename(columns={"k": name})).columns == ("x", "count"), name
    for name in ("k", "paid", "valid", "heat_index"):
        opened = open_dataset(frame.rename(columns={"k": name}))
        assert opened.columns == ("x", "count", name)
        assert opened.remarks == (Remark("may be ids", columns=(name,)),)
    for other in (frame.iloc[:5], frame.assign(k=frame["k"] // 2), frame.assign(k=frame["k"] / 3)):
        assert open_dataset(other).remarks == ()
    assert open_dataset(frame[["k", "y"]].rename(columns={"k": "id"})).columns == ("id",)  # there is nothing else
    assert open_dataset("with_index.csv", label="churned").columns == FEATURES


def test_columns_that_are_empty_or_many(here):
    for source in ("empty_column.csv", people(1).assign(fax=np.nan)):
        assert open_dataset(source, label="churned").origin.left_out["fax"].why == "empty"
    wide = people(1).assign(**{f"d{k}": pd.Timestamp(0) for k in range(20)})
    assert str(open_dataset(wide, label="churned").remarks[0]).endswith("and 15 more")


SAID = "8 of 120 rows, age (6), income (3)"


def test_missing_values_are_filled_in_and_marked_dropped_or_refused(here):
    frame = with_gaps(people(1))
    whole = frame.dropna()
    for source in ("gaps.csv", "gaps.parquet", frame, pl.from_pandas(frame)):
        assert SAID in refusal(source, label="churned", missing="error")
        dropped = open_dataset(source, label="churned", missing="drop")
        np.testing.assert_array_equal(dropped.rows(slice(None)), hot(whole))
        assert [dropped.classes[code] for code in dropped.codes] == whole["churned"].tolist()
        filled = open_dataset(source, label="churned")
        assert filled.columns == ("age", "age is missing", "income", "income is missing", *FEATURES[2:])
        rows = filled.rows(slice(None))
        np.testing.assert_allclose(rows[:, [0, 2]], frame[["age", "income"]].fillna(frame.mean(numeric_only=True)))
        np.testing.assert_array_equal(rows[:, [1, 3]], frame[["age", "income"]].isna())
        assert [data.remarks[1].kind for data in (dropped, filled)] == ["rows dropped", "values filled"]
        assert all(data.remarks[1].facts["columns"] == {"age": 6, "income": 3} for data in (dropped, filled))


def test_the_share_of_gaps_counts_and_means_are_pooled(rng):
    """What is missing in one dataset alone is a difference; what is missing at random in both is none."""
    x, y = rng.normal(5, 1, (2, 900, 2))
    one, other = (pd.DataFrame(part, columns=["u", "v"]).assign(label=0) for part in (x, y))
    holes = [part.assign(u=part["u"].where(rng.random(900) > share)) for part, share in ((one, 0.4), (other, 0.4))]
    assert sotdd.test(*holes, n_permutations=99).p_value > 0.05
    assert sotdd.test(one, holes[1], n_permutations=99).p_value < 0.05
    opened = sotdd.inputs.open_pair(one, holes[1])
    assert opened[0].columns == opened[1].columns == ("u", "u is missing", "v")
    mean = np.concatenate([one["u"], holes[1]["u"].dropna()]).mean()
    np.testing.assert_allclose(opened[1].features[holes[1]["u"].isna(), 0], mean)
    reference = sotdd.DriftReference.fit(holes[0])
    assert not reference.test(holes[1].iloc[:300], n_permutations=99).rejects(0.01)
    lacking = sotdd.DriftReference.fit(one).open_batch(holes[1])
    np.testing.assert_array_equal(lacking.origin.gaps["u"], holes[1]["u"].isna())
    assert lacking.remarks[-1].kind == "values filled"


def test_missing_flags_categories_and_labels():
    flags, kinds = pd.array([True, None, False, True], "boolean"), ["a", None, "b", "b"]
    frame = pd.DataFrame({"flag": flags, "kind": kinds, "label": ["u", "v", "v", "u"]})
    for source in (frame, pl.from_pandas(frame)):
        assert "1 of 4 rows" in refusal(source, missing="error")
        opened = open_dataset(source)
        assert opened.columns == ("flag", "flag is missing", "kind=a", "kind=b", "kind is missing")
        expected = [[1, 0, 1, 0, 0], [2 / 3, 1, 0, 0, 1], [0, 0, 0, 1, 0], [1, 0, 0, 1, 0]]
        np.testing.assert_allclose(opened.rows(slice(None)), expected, rtol=1e-6)
    frame.loc[3, "label"] = None
    for source in (frame, pl.from_pandas(frame)):
        assert open_dataset(source, missing="drop").rows(slice(None)).tolist() == [[1, 1, 0], [0, 0, 1]]
        assert open_dataset(source).n_points == 3


def test_values_that_are_not_finite():
    for bad in (np.nan, np.inf):  # an array says nothing of gaps
        assert "row 1, feature 0" in refusal((np.array([[1.0], [bad]]), [0, 1]), missing="mean")
    assert "row 1, column 'z'" in refusal(pd.DataFrame({"x": [1, 2], "z": [1.0, np.inf], "y": 0}))


def test_tables_that_are_compared_have_the_same_columns(here):
    found = sotdd.distance("people.csv::label=churned", "other_order.csv::label=churned", n_projections=32)
    assert found.columns == FEATURES
    assert len(found.remarks) == 1  # the same was left out of both
    for pair in (("people", "age_as_text"), ("age_as_text", "people")):
        with pytest.raises(SotddError, match=r"'age' .*'people"):
            sotdd.distance(*(f"{name}.csv::label=churned" for name in pair))


def test_categories_are_those_of_all_tables(here):
    one, other = (open_dataset(name, label="churned") for name in ("people.csv", "new_city.csv"))
    cities = ("Köln", "Oslo", "Paris", "Rome")
    there, back = sotdd.distance(one, other, n_projections=64), sotdd.distance(other, one, n_projections=64)
    assert there.columns == back.columns == (*NUMBERS, *(f"city={city}" for city in cities))
    assert there.value == pytest.approx(back.value, rel=1e-9)
    # By hand: the same columns made with pandas, and one scale for all of them, as if they were one number.
    parts = [hot(frame, cities) for frame in (people(1, 120), people(4, 90, cities=("Oslo", "Paris")))]
    scaler = there.scaler
    shares = np.mean([part[:, 3:].mean(axis=0) for part in parts], axis=0)  # both tables count the same
    np.testing.assert_allclose(scaler.scales[3:], np.sqrt((shares * (1 - shares)).sum()))
    np.testing.assert_allclose(scaler.centre[3:], shares)
    # Projections that were made before fix the columns.
    projections = sotdd.Projections.fit([one], n_projections=16)
    found = sotdd.distance(one, other, projections=projections)
    assert found.columns == one.columns
    assert any("city=Paris" in str(remark) for remark in found.remarks)
    assert sotdd.sketch(other, projections).distance(sotdd.sketch(one, projections)).value > 0


def test_a_category_that_is_something_else_in_one_table(rng):
    frame = pd.DataFrame({"x": rng.normal(size=90), "kind": ["u", "v", "w"] * 30, "label": 0})
    empty, numbers = frame.assign(kind=None), frame.assign(kind=frame["x"])
    for place, pair in enumerate(((empty, frame), (frame, empty))):
        opened = sotdd.inputs.open_pair(*pair)
        shares = opened[place].features[
            :, [opened[0].columns.index(f"kind{end}") for end in ("=u", "=v", " is missing")]
        ]
        assert shares.mean(axis=0).tolist() == [0, 0, 1]
        assert str(opened[place].judged) == "judged 2 of 2 columns"
    reference = sotdd.DriftReference.fit(frame, n_projections=16)
    assert reference.open_batch(empty).origin.missing["kind"].all()
    with pytest.raises(SotddError, match=r"'kind' .* holds numbers in dataset 'batch'"):
        reference.open_batch(numbers)
    text = frame.assign(kind=[f"note {k}" for k in range(90)])  # in one of them, so it is left out of both
    for pair in ((frame, text), (text, frame)):
        for opened in sotdd.inputs.open_pair(*pair):
            assert (opened.columns, str(opened.judged)) == (("x",), "judged 1 of 2 columns (left out: kind, free text)")


def test_many_values_are_pooled_alike_in_all_tables(rng):
    """Which values are told apart is decided by both tables together: tails alone are no difference."""
    shares = 0.9 ** np.arange(60)
    values, x = np.array([f"k{k}" for k in range(60)]), rng.normal(size=5000)
    codes = rng.choice(values, (2, 5000), p=shares / shares.sum())
    frames = [pd.DataFrame({"x": rng.permutation(x), "label": 0, "code": code}) for code in codes]
    one, other = sotdd.inputs.open_pair(*frames)
    assert len(one.columns) == 22
    assert one.columns == other.columns
    assert one.columns[-1] == "code=other"
    np.testing.assert_array_equal(one.features[:, 1:].sum(axis=1), 1)
    assert sotdd.test(*frames, n_permutations=99).p_value > 0.01
    reference = sotdd.DriftReference.fit(frames[0])
    assert not reference.test(frames[1].iloc[:40], n_permutations=99).rejects(0.01)


def batches(path, rows):
    """A few rows of files at a time, as Arrow reads them."""
    return pa.dataset.dataset(path).to_batches(batch_size=rows)


def test_streams_and_clusters_go_by_the_same_rules(here):
    whole = open_dataset("people.parquet", label="churned")
    projections = sotdd.Projections.fit([whole], n_projections=16)
    streamed = sotdd.sketch_stream(batches("parts", 50), projections, label="churned", n_quantiles=32)
    assert streamed.n_points == 120
    frame = dd.from_pandas(people(1), npartitions=3)
    made = cluster.sketch(frame, projections, label="churned", n_quantiles=32)
    np.testing.assert_allclose(made.quantiles, streamed.quantiles, atol=1e-6)
    many = sotdd.Projections.fit([open_dataset("new_city.csv", label="churned")], n_projections=8)
    assert sotdd.sketch_stream(batches("parts", 7), many, label="churned").n_points == 120  # Köln and Rome are new
    assert cluster.sketch(frame, many, label="churned").n_points == 120
    with_gaps = sotdd.sketch_stream(batches("gaps.parquet", 1), projections, label="churned", missing="drop")
    assert with_gaps.n_points == 112
    with pytest.raises(SotddError, match=r"batch .* age"):
        sotdd.sketch_stream(batches("gaps.parquet", 50), projections, label="churned", missing="error")


def test_labelled_against_unlabelled_is_refused_unless_asked_for():
    x, y = np.random.default_rng(0).normal(size=(40, 3)), np.arange(40) % 2
    for call in (sotdd.distance, sotdd.explain, sotdd.test, lambda a, b: sotdd.pairwise([a, b])):
        with pytest.raises(SotddError, match=r"has no labels but dataset .* has 2 classes"):
            call(x, (x, y))
    assert sotdd.distance(open_dataset(x, label=None), (x, y), n_projections=8).value > 0
    assert sotdd.distance(x, (x, np.zeros(40)), n_projections=8).value == 0  # one class is one class
    assert sotdd.distance(x, (x, y), method="mmd").value == pytest.approx(0, abs=1e-6)  # it looks at features alone


def test_narrow_dtypes_stay_narrow():
    frame = pd.DataFrame({"a": np.array([1, 2], np.uint8), "b": [True, False], "y": [0, 1]})
    assert open_dataset(frame).features.dtype == np.uint8
    assert open_dataset(frame.astype({"a": np.float32})).features.dtype == np.float32
    assert open_dataset(frame.astype({"a": np.int64})).features.dtype == np.float64


QUESTIONS = [
    ({"x": [1.0], "y": [2], "target": [3]}, {}, "'y' and 'target'"),
    ({"x": [1.0]}, {"label": "kind"}, "'kind'"),
    ({"x": [1.0], "y": [1]}, {"features": "z"}, "'z'"),
    ({"y": [1]}, {}, "besides the labels"),
    ({"note": list("abcdef"), "y": [1] * 6}, {}, "'a' in row 0"),
    ({"x": [1.0], "v": [[1.0, 2.0]], "y": [1]}, {}, "by features"),
    ({"v": [[1.0, 2.0], [1.0]], "y": [1, 2]}, {}, "1 to 2 entries"),
    ({"x": [1.0, float("inf")], "y": [1, 2]}, {}, "infinite"),
    ({"x": [1.0], "y": [[1]]}, {}, "list"),
]


@pytest.mark.parametrize(("columns", "how", "said"), QUESTIONS, ids=range(len(QUESTIONS)))
def test_tables_that_leave_a_question(folder, columns, how, said):
    pl.DataFrame(columns, strict=False).write_parquet("t.parquet")
    for source in (pd.DataFrame(columns), pl.DataFrame(columns), pa.table(columns), "t.parquet"):
        assert said in refusal(source, **how)


def test_odd_frames():
    assert "no rows" in refusal(pd.DataFrame({"x": [], "y": []}))
    assert "'twice'" in refusal(pd.DataFrame([[1.0, 2.0]], columns=["x", "x"]), name="twice")
    objects = pd.DataFrame({"x": [1.0, 2.0], "o": [1, {}], "y": ["a", 3]})  # which Arrow has no type for
    assert open_dataset(objects).columns == ("x",)
    assert open_dataset(objects).classes == ("3", "a")


NAMES = ("age", "income", "visits")
OTHER = ("visits", "label", "age", "income")


def units(rng, n=200, shift=0.0):
    """A small table with units of very different size."""
    ages, incomes = rng.normal(40 + shift, 12, n), rng.lognormal(10, 0.5, n)
    return pd.DataFrame({"age": ages, "income": incomes, "visits": rng.poisson(3, n), "label": rng.integers(2, size=n)})


def turned(frame):
    """The same rows with their columns in another order."""
    return frame[list(OTHER)]


@pytest.fixture
def frame(rng):
    return units(rng)


def test_every_call_matches_by_name(folder, frame, rng):
    """What a call gives does not depend on the order of the second dataset's columns."""
    other = units(rng, 150, shift=9)
    projections = sotdd.Projections.fit([frame], n_projections=64)
    assert projections.columns == NAMES
    sotdd.sketch(frame, projections, name="people").save("people.sotdd")
    kept = sotdd.Sketch.load("people.sotdd")
    assert kept.columns == kept.projections.columns == NAMES
    reference, catalog = sotdd.DriftReference.fit(frame), sotdd.Catalog("catalog")
    catalog.add("people", kept)
    calls = {
        "distance": lambda b: sotdd.distance(frame, b, n_projections=64).value,
        "rel_tol": lambda b: sotdd.distance(frame, b, rel_tol=0.2, max_projections=128).value,
        "pairwise": lambda b: sotdd.pairwise({"a": frame, "b": b}, n_projections=64)["a", "b"].value,
        "otdd": lambda b: sotdd.peers.otdd(frame, b, scale="auto").value,
        "wte": lambda b: sotdd.peers.wte([frame, b]).matrix.values[0, 1],
        "explain": lambda b: sotdd.explain(frame, b, n_projections=64).distance.value,
        "test": lambda b: sotdd.test(frame, b, n_permutations=9, n_projections=64).statistic,
        "fit": lambda b: float(np.sum(sotdd.Scaler.fit([frame, b]).scale)),
        "sketch": lambda b: sotdd.distance(kept, b).value,
        "stream": lambda b: sotdd.sketch_stream([b[:80], b[80:][[*b.columns[::-1]]]], projections).distance(kept).value,
        "cluster": lambda b: cluster.sketch(dd.from_pandas(b, npartitions=3), projections).distance(kept).value,
        "reference": lambda b: reference.test(b, n_permutations=19).distance,
        "catalog": lambda b: catalog.nearest(b).lines[0].distance.value,
    }
    for name, call in calls.items():
        assert call(turned(other)) == pytest.approx(call(other), rel=1e-12), name
        with pytest.raises(SotddError, match="'age'"):
            call(other.rename(columns={"age": "years"}))


def test_missing_and_extra_columns_are_named(rng):
    wide = pd.DataFrame(rng.normal(size=(5, 30)), columns=[f"x{k}" for k in range(30)]).assign(label=0)
    renamed = wide.rename(columns={f"x{k}": f"z{k}" for k in range(10)})
    for other, said in ((wide.assign(x=1), "'x'"), (wide[["x0", "label"]], "'x1'"), (renamed, "'x5'.*'z0'")):
        with pytest.raises(SotddError, match=said):
            sotdd.distance(wide, other)


def test_an_array_is_matched_by_position_and_that_is_said(folder, frame):
    array = frame[list(NAMES)].to_numpy(), frame["label"].to_numpy()
    projections = sotdd.Projections.fit([frame], n_projections=64)
    sotdd.SketchBuilder(projections).add(*array).save("builder")
    for found in (
        sotdd.distance(frame, array, n_projections=64),
        sotdd.distance(sotdd.sketch(frame, projections), array),
        sotdd.sketch(frame, sotdd.Projections.fit([array[0]], n_projections=64)),
        sotdd.SketchBuilder.load("builder").finish(),
        sotdd.DriftReference.fit(frame).test(array),
    ):
        assert "by position" in str(found.remarks[0])
    matrix = sotdd.pairwise({"table": frame, "array": array, "turned": turned(frame)}, n_projections=64)
    assert matrix["table", "turned"].remarks == ()
    assert "'array'" in str(matrix["array", "turned"].remarks[0])


def test_what_has_names_and_what_has_none(frame, rng):
    x = pd.DataFrame(rng.normal(size=(20, 3)))  # columns are merely numbered
    lists = pd.DataFrame({"vector": [[1.0, 2.0], [3.0, 4.0]], "label": [0, 1]})
    for source, how in (((x, np.zeros(20)), {}), (lists, {}), (frame, {"encoder": lambda batch: batch[:, :2]})):
        assert sotdd.open_dataset(source, **how).columns is None
    opened = sotdd.open_dataset(frame, features=["visits", "age"], max_points=50)
    for data in (opened, sotdd.open_dataset(opened, max_points=10), opened.take(np.arange(3))):
        assert data.columns == ("visits", "age")


def test_columns_on_a_device_are_put_in_order(frame):
    torch = pytest.importorskip("torch")
    expected = frame[list(NAMES)].to_numpy()
    device = LabelledData("t", DeviceFeatures(torch.tensor(expected)), ("all",), np.zeros(200, int), NAMES)
    np.testing.assert_array_equal(order_columns(device, NAMES[::-1], "another").rows(slice(None)), expected[:, ::-1])


def test_a_scaler_goes_by_name(frame, rng):
    scaler = sotdd.Scaler.fit([frame])
    again = sotdd.distance(turned(frame), units(rng, shift=5), scale=scaler, n_projections=64)
    np.testing.assert_array_equal(again.scaler.scale, scaler.scale[[2, 0, 1]])
    with pytest.raises(SotddError, match=r"scaler .*'pay' .*'income'"):
        sotdd.distance(*[frame.rename(columns={"income": "pay"})] * 2, scale=scaler)


@pytest.fixture
def short_look(monkeypatch):
    """Columns are judged by their first hundred rows or so."""
    monkeypatch.setattr("sotdd.inputs.loaders.tables.LOOK_ROWS", 100)
    monkeypatch.setattr("sotdd.inputs.loaders.files._BATCH_ROWS", 60)
    monkeypatch.setattr("sotdd.inputs.loaders.files._BLOCK_BYTES", 3000)


def decode(data, column):
    category = data.origin.categories[column]
    return [None if code < 0 else category.values[code] for code in category.codes]


def test_values_that_come_after_the_first_rows_keep_their_names(folder, short_look, rng):
    late = [f"late {k}" for k in range(1500)]
    frame = pd.DataFrame({
        "x": rng.normal(size=5000), "city": ["Rome", "Oslo", "Bonn", None] * 500 + late * 2,
        "sign": ["+", "-"] * 75 + ["-", "x"] * 2425, "yes": ["yes", "no"] * 2000 + ["maybe", "no"] * 500, "label": 0,
    })  # fmt: skip
    frame.to_parquet("t.parquet", row_group_size=40)
    frame.to_csv("t.csv", index=False)
    frame.astype({"city": "category"}).to_parquet("coded.parquet", row_group_size=40)
    for source in ("t.parquet", "t.csv", "coded.parquet"):
        opened = open_dataset(source)
        for column in ("city", "sign", "yes"):
            assert decode(opened, column) == [None if pd.isna(one) else one for one in frame[column]]
        assert len(opened.origin.categories["city"].values) == 1503
        assert opened.features[:, opened.columns.index("city=other")].sum() == 3000 - 2 * 17  # beyond the first twenty
        assert {"yes=maybe", "yes=no", "yes=yes"} <= {*opened.columns}
    assert "yes" in open_dataset("t.parquet", one_hot=False).columns  # where nothing else is a category
    # The same rows in another order are the same data.
    turned = frame.iloc[::-1]
    turned.to_parquet("turned.parquet", row_group_size=40)
    one, other = sotdd.inputs.open_pair(*(f"{name}.parquet::features=x+city+sign+yes" for name in ("t", "turned")))
    np.testing.assert_array_equal(one.features, other.features[::-1])


def test_what_is_known_of_columns_that_are_no_features(folder, short_look):
    n = 500
    frame = pd.DataFrame({
        "x": np.arange(n) / 3, "id": 7, "note": ["n/a"] * n, "told": [f"note {k}" for k in range(n)],
        "day": pd.date_range("2024-02-01", periods=n, freq="h"), "fixed": pd.Timestamp("2024-02-01"),
        "secret": 1.0, "person": np.arange(n) // 2, "label": 0,
    })  # fmt: skip
    frame.to_parquet("t.parquet", row_group_size=90)
    frame.to_csv("t.csv", index=False)
    for source in ("t.parquet", "t.csv", frame):
        opened = open_dataset(source, exclude="sec*", groups="person", max_points=50)
        left_out = opened.origin.left_out
        assert {title: one.why for title, one in left_out.items()} == {
            "id": "id", "note": "empty", "told": "free text", "day": "date", "fixed": "date"
        }  # fmt: skip
        assert (left_out["id"].constant, left_out["told"].constant, left_out["day"].constant) == ("7", None, None)
        assert left_out["fixed"].constant.startswith("2024-02-01")
        assert (left_out["day"].first, left_out["day"].last) == ("2024-02-01", "2024-02-21T19:00")
        assert opened.schema.kinds == {"x": "number"}
        assert (opened.schema.unread, opened.schema.label, opened.schema.groups) == (("secret",), "label", "person")
        assert {*opened.schema.names} == {*frame.columns}
        only = open_dataset(source, features="x")
        assert {*only.schema.unread} == {*frame.columns} - {"x", "label"}
    assert open_dataset((np.zeros((3, 2)), [0, 1, 1])).schema is None


HOSTILE = ("a=b", "a", "a=b=c", "age is missing", "income is missing", "x*", "[z]", "?", "q=other")


def test_names_that_look_like_features_are_names(folder, rng):
    frame = pd.DataFrame({name: rng.normal(size=60) for name in HOSTILE}).assign(label=0)
    frame["a"], frame["q=other"] = ["v", "w=x"] * 30, ["other", "b=c", None] * 20
    frame.loc[3, "[z]"] = np.nan
    frame.to_csv("t.csv", index=False)
    for source in (frame, "t.csv"):
        opened = open_dataset(source)
        assert opened.table == HOSTILE
        assert {name for name, kind in opened.schema.kinds.items() if kind == "category"} == {"a", "q=other"}
        again = sotdd.inputs.opening.open_alike(source, opened.schema)
        assert again.columns == opened.columns
        np.testing.assert_array_equal(again.features, opened.features)
    for name in HOSTILE:
        with pytest.raises(SotddError) as caught:
            sotdd.inputs.opening.open_alike(frame.drop(columns=name), opened.schema)
        assert caught.value.remarks == (Remark("dropped columns", columns=(name,)),)


def test_errors_say_which_columns_as_facts(folder, rng):
    frame = pd.DataFrame({"x": rng.normal(size=90), "kind": ["u", "v", "w"] * 30, "label": 0})
    text, numbers = frame.assign(x="forty"), frame.assign(kind=frame["x"])
    dates = frame.assign(x=pd.date_range("2024-01-01", periods=90))
    cases = [
        (lambda: open_dataset(frame, features=["kind=u", "size"]), "dropped columns", {"columns": ("size",)}),
        (lambda: open_dataset(frame, features=["size=u is missing"]), "dropped columns", {"columns": ("size",)}),
        (lambda: open_dataset(frame, label="class"), "dropped columns", {"columns": ("class",)}),
        (lambda: open_dataset(dates, features=["x"]), "retyped column", {"column": "x", "before": "", "after": "date"}),
        (lambda: sotdd.inputs.open_pair(frame, frame.drop(columns="kind")), "dropped columns", {"columns": ("kind",)}),
        (lambda: sotdd.inputs.open_pair(frame, frame.assign(new=1)), "extra columns", {"columns": ("new",)}),
        (lambda: sotdd.inputs.open_pair(frame, text), "retyped column",
         {"before": "numbers", "after": "free text", "value": "forty", "row": 0}),
        (lambda: sotdd.inputs.open_pair(frame, numbers), "retyped column",
         {"before": "categories", "after": "numbers"}),
    ]  # fmt: skip
    for call, kind, facts in cases:
        with pytest.raises(SotddError) as caught:
            call()
        [remark] = caught.value.remarks
        assert remark.kind == kind
        assert facts.items() <= remark.facts.items()
        assert remark.about in ("", "b")


def test_two_opposites_are_numbers_beside_numbers(rng):
    truth = pd.array([True, None, False, True, True], "boolean")
    words, x = ["yes", "no", None, "no", "yes"], rng.normal(size=5)
    one, other = (pd.DataFrame({"x": x, "flag": flag, "label": 0}) for flag in (truth, words))
    for pair, place in (((one, other), 1), ((other, one), 0)):
        opened = sotdd.inputs.open_pair(*pair)
        assert all(data.columns == ("x", "flag", "flag is missing") for data in opened)
        assert all(data.schema.kinds == {"x": "number", "flag": "number"} for data in opened)
        mean = (3 + 2) / (4 + 4)
        np.testing.assert_allclose(opened[place].features[:, 1], [1, 0, mean, 0, 1])
        np.testing.assert_allclose(opened[1 - place].features[:, 1], [1, mean, 0, 1, 1])
    assert sotdd.inputs.open_pair(other, other)[0].schema.kinds["flag"] == "flag"
