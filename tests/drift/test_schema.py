"""What changed in a table itself: columns, and rows that are there twice."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import sotdd
from sotdd.basics.remarks import Remark
from sotdd.drift import schema
from sotdd.inputs.agreement import match_columns
from sotdd.inputs.data import cut_alike
from sotdd.measure.columns import pool_columns

N, M = 600, 200


def compare_schema(reference, batch):
    """What a check says of the table of a batch."""
    return schema.compare_schema(reference, batch, pool_columns(cut_alike(match_columns([reference, batch]))))


def make(seed, n):
    """A table as people have it, under names that look like features."""
    rng = np.random.default_rng(seed)
    return pd.DataFrame({
        "income": rng.normal(size=n), "income is missing": rng.normal(size=n), "a=b": rng.normal(size=n),
        "x": rng.choice(["u", "v=w"], n), "x=y": rng.choice(["u", "v", None], n), "x*": rng.normal(size=n),
        "clarity": rng.choice(["I1", "SI2", "VS1"], n), "zip": rng.choice(["12", "34", "5A"], n),
        "vip": rng.choice(["yes", "no"], n), "rare": rng.random(n) < 0.01, "other": rng.choice(["other", "more"], n),
        "note": [f"text {seed} {k}" for k in range(n)], "customer_id": rng.permutation(n), "fax": "",
        "day": (pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 90, n), "D")).strftime("%Y-%m-%d"),
        "label": rng.choice(["p", "q"], n),
    })  # fmt: skip


@pytest.fixture(scope="module", params=["csv", "parquet"])
def compare(request, tmp_path_factory):
    """A function of a batch that writes it, opens it as the reference was, and returns what changed."""
    folder, suffix = tmp_path_factory.mktemp("schema"), request.param

    def write(frame, name):
        path = f"{folder}/{name}.{suffix}"
        frame.to_csv(path, index=False) if suffix == "csv" else frame.to_parquet(path)
        return path

    reference = sotdd.DriftReference.fit(write(make(0, N), "reference"), n_projections=1)

    def compare(batch, **asked):
        return reference.compare_schema(reference.open_batch(write(batch, "batch"), **asked))[1]

    return compare


def summarise(remarks):
    """The names of the columns of each kind of remark."""
    result = {}
    for remark in remarks:
        names = remark.facts.get("columns") or (remark.facts["column"],)
        result[remark.kind] = (*result.get(remark.kind, ()), *names)
    return result


def test_nothing_changed(compare):
    assert compare(make(1, M)) == ()
    assert compare(make(2, 5)) == ()  # of which few have every value
    assert compare(make(3, 3000), max_points=500) == ()


def test_extra_and_dropped_columns(compare):
    batch = make(1, M)
    extra = batch.assign(**{"target": 1, "new=1": 2, "q is missing": "r"})
    assert compare(extra) == (Remark("extra columns", columns=("target", "new=1", "q is missing")),)
    assert compare(batch.drop(columns=["note", "day"])) == (Remark("dropped columns", columns=("note", "day")),)
    for gone in (["clarity"], ["x=y", "x*", "income is missing"], ["label"], [*batch.columns[:3], "label"]):
        with pytest.raises(sotdd.SotddError, match="has no column") as caught:
            compare(batch.drop(columns=gone))
        [remark] = caught.value.remarks
        assert remark.kind == "dropped columns"
        assert {*remark.facts["columns"]} == {*gone}
        assert "=I1" not in str(caught.value)


def test_columns_that_are_empty_or_constant(compare):
    batch = make(1, M)
    names = ("income", "clarity", "vip", "note", "customer_id", "day")
    assert compare(batch.assign(**dict.fromkeys(names))) == (Remark("emptied columns", columns=names),)
    values = {"income": 3.5, "clarity": "I1", "x=y": "v", "note": "n/o", "customer_id": 7}
    assert [(one.facts["column"], one.facts["value"]) for one in compare(batch.assign(**values))] == [
        ("income", "3.5"), ("x=y", "v"), ("clarity", "I1"), ("note", "n/o"), ("customer_id", "7")
    ]  # fmt: skip
    assert compare(batch.assign(rare=False)) == ()  # which it is by chance
    assert summarise(compare(batch.assign(rare=True))) == {"constant column": ("rare",)}


def test_columns_that_hold_something_else(compare):
    batch = make(1, M)

    def find(**columns):
        """What is said of a batch with these columns, whether it can be pooled or is refused."""
        try:
            return compare(batch.assign(**columns))
        except sotdd.SotddError as error:
            return error.remarks

    for name, values, after in (
        ("income", ["forty", "2"] * 100, "free text"),
        ("clarity", np.arange(M) / 7, "numbers"),
        ("vip", np.arange(M) / 7, "numbers"),
        ("fax", np.arange(M) / 7, "numbers"),
        ("day", [f"day {k}" for k in range(M)], "free text"),
    ):
        [remark] = find(**{name: values})
        assert (remark.kind, remark.facts["column"], remark.facts["after"]) == ("retyped column", name, after)
    assert compare(batch.assign(zip=["12", "34"] * 100, vip=["Yes", "no"] * 100)) == ()
    [remark] = find(income=pd.date_range("2024-01-01", periods=M))
    assert (remark.facts["column"], remark.facts["before"], remark.facts["after"]) == ("income", "numbers", "date")


def test_dates_that_moved(compare):
    batch = make(1, M)
    later = pd.to_datetime(batch["day"])
    for days in (-60, -10, 0, 10, 40):
        assert compare(batch.assign(day=(later + pd.Timedelta(days, "D")).dt.strftime("%Y-%m-%d"))) == () or days == -60
    [remark] = compare(batch.assign(day="2025-01-01"))[1:]
    assert str(remark) == ("dates in column 'day' are 2025-01-01; the reference has 2024-01-01 to 2024-03-30")
    [remark] = compare(batch.assign(day=["1900-01-01", *batch["day"][1:]]))
    assert remark.facts["after"][0] == "1900-01-01"


def test_rows_that_are_there_twice(compare):
    batch, reference = make(1, M), make(0, N)
    [remark] = compare(pd.concat([batch, batch[:50], batch[:10]]))
    assert remark == Remark("more rows repeat", repeated=60, rows=260, before=0, before_rows=N)
    [remark] = compare(pd.concat([batch, reference[100:130]]))
    assert remark == Remark("rows of reference", found=30, rows=230)
    assert str(remark) == "30 of 230 rows stand in the reference too, equal in every column"
    assert compare(pd.concat([batch, reference[:30].assign(label="q", income=1.5, vip="no")])) == ()
    assert compare(pd.concat([batch, reference[:30].assign(clarity="I1", zip="12", other="more")])) == ()


KINDS = {
    "coarse": lambda rng, n: {"a": rng.integers(0, 9, n), "b": rng.integers(0, 9, n), "c": rng.choice(["u", "v"], n)},
    "single": lambda rng, n: {"a": rng.integers(0, 5, n)},
    "tails": lambda rng, n: {"a": np.minimum(rng.zipf(1.3, n), 10**6), "b": rng.integers(0, 3, n)},
    "rounded": lambda rng, n: {"a": rng.lognormal(3, 1, n).round(0), "b": rng.normal(size=n).round(1)},
    "zeros": lambda rng, n: {"a": np.where(rng.random(n) < 0.3, 0, rng.normal(size=n)), "b": rng.integers(0, 2, n)},
    "gaps": lambda rng, n: {"a": np.where(rng.random(n) < 0.9, np.nan, rng.normal(size=n)), "b": rng.random(n) < 0.02},
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("n", "m"), [(500, 20), (500, 500), (3000, 300), (300, 3000)])
def test_tables_of_one_source_are_hardly_ever_said_to_change(kind, n, m, rng):
    for _ in range(20):
        pair = [sotdd.open_dataset(pa.table(KINDS[kind](rng, size)), label=None) for size in (n, m)]
        assert compare_schema(*pair) == ()


def test_rows_that_repeat_in_coarse_tables_are_found_as_well(rng):
    table, batch = (pd.DataFrame(rng.random((size, 2)).round(2), columns=["a", "b"]) for size in (3000, 500))
    twice = pd.concat([batch, batch[:150]])
    known = pd.concat([batch, table[:300]])
    reference = sotdd.open_dataset(table, label=None)
    assert compare_schema(reference, sotdd.open_dataset(batch, label=None)) == ()
    assert [one.kind for one in compare_schema(reference, sotdd.open_dataset(twice, label=None))] == [
        "more rows repeat"
    ]
    assert [one.kind for one in compare_schema(reference, sotdd.open_dataset(known, label=None))] == [
        "rows of reference"
    ]


def test_rows_are_compared_whatever_their_types(rng):
    """Single precision beside double, categories in another order, truth values beside words, gaps beside gaps."""
    frame = pd.DataFrame({"x": rng.normal(size=300), "kind": rng.choice(["u", "v", None], 300),
                          "flag": rng.random(300) < 0.5, "label": 0})  # fmt: skip
    frame.loc[::7, "x"] = np.nan
    other = frame[::-1].astype({"x": np.float32})
    other["kind"] = pd.Categorical(other["kind"], ["z", "v", "u"])
    other["flag"] = np.where(other["flag"], "yes", "no")
    fresh = frame.assign(x=rng.normal(size=300))
    reference = sotdd.open_dataset(frame)
    assert compare_schema(reference, sotdd.open_dataset(other)) == (Remark("rows of reference", found=300, rows=300),)
    assert compare_schema(reference, sotdd.open_dataset(fresh)) == ()


def test_arrays_have_no_columns(rng):
    x, y = rng.normal(size=(2, 50, 4))
    assert compare_schema(sotdd.open_dataset(x), sotdd.open_dataset(y)) == ()
    assert compare_schema(sotdd.open_dataset(x), sotdd.open_dataset(x)) == (
        Remark("rows of reference", found=50, rows=50),
    )


def test_a_batch_that_was_opened_before_and_one_with_its_labels_beside_it(rng):
    frame, batch = make(0, N), make(1, M).assign(new=1.0, newer="u")
    reference = sotdd.DriftReference.fit(frame, n_projections=1)
    for source in (sotdd.open_dataset(batch), batch, (batch.drop(columns="label"), batch["label"])):
        opened = reference.open_batch(source)
        kinds = summarise(reference.compare_schema(opened)[1])
        assert kinds.pop("extra columns") == ("new", "newer")
        assert kinds == ({} if opened.schema.label else {"dropped columns": ("label",)})
        assert opened.table == reference.data.table
    sample = reference.open_batch(batch, max_points=50)
    assert (sample.n_points, sample.origin.rows_seen) == (50, M)
    assert reference.open_batch(sotdd.open_dataset(batch), max_points=50).n_points == 50


def test_targets_are_kept_as_numbers_and_asked_for(rng):
    frame = pd.DataFrame({"x": rng.normal(size=300), "y": rng.gamma(2, size=300)})
    for source, asked in ((frame, {"bins": 5}), (sotdd.open_dataset(frame, bins=5), {})):
        reference = sotdd.DriftReference.fit(source, **asked, n_projections=1)
        batch = reference.open_batch(frame.assign(y=frame["y"] + 1)[:90])
        np.testing.assert_array_equal(batch.origin.target.values, frame["y"][:90] + 1)
        pair = cut_alike([reference.data, batch])
        assert set(pair[1].classes) <= set(pair[0].classes) | set(pair[1].classes)
        assert reference.open_batch(batch, max_points=20).origin.target.bins == 5
        for bad in (frame.assign(y="much"), frame.drop(columns="y"), sotdd.open_dataset(frame.assign(y=1))):
            with pytest.raises(sotdd.SotddError):
                reference.open_batch(bad)


def test_groups_go_for_batches_too(rng):
    frame = pd.DataFrame({"x": rng.normal(size=90), "who": np.arange(90) // 3, "label": 0})
    reference = sotdd.DriftReference.fit(sotdd.open_dataset(frame, groups="who"), n_projections=1)
    batch = reference.open_batch(frame)
    np.testing.assert_array_equal(batch.groups, frame["who"])
    with pytest.raises(sotdd.SotddError) as caught:
        reference.open_batch(frame.drop(columns="who"))
    assert caught.value.remarks == (Remark("dropped columns", columns=("who",)),)
