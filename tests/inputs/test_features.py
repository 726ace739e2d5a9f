"""The features of a table and their names, which no column can take from another, whatever it is called."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sotdd
from sotdd import open_dataset
from sotdd.inputs.schema import Feature

N = 300

texts = st.text(max_size=4) | st.sampled_from(['"', "=", " is missing", "x=y", '"x"', "x is missing", '"x"=y'])
features = st.tuples(texts, st.sampled_from(["number", "missing", "value"]), texts).map(
    lambda parts: Feature(*parts) if parts[1] == "value" else Feature(*parts[:2])
)


@given(features, features)
def test_every_name_is_that_of_one_feature(one, other):
    assert Feature.of(one.name) == one
    assert (one.name == other.name) == (one == other)


@given(texts)
def test_a_name_that_no_feature_has_is_that_of_a_column(name):
    assert Feature.of(name).name == name or Feature.of(name) == Feature(name)


def collide(seed, **shifts):
    """Columns that are called as features of others are: a mark of gaps, and values of a category."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame({
        "x": rng.normal(size=N), "x is missing": rng.normal(size=N), "city": rng.choice(["Rome", "Oslo"], N),
        "city=Rome": rng.normal(size=N), "k=v": rng.choice(["a", "b=c", "d is missing"], N),
        "label": rng.integers(2, size=N),
    })  # fmt: skip
    frame.loc[rng.random(N) < 0.1, "x"] = np.nan
    return frame.assign(**{column: frame[column] + shift for column, shift in shifts.items()})


PLAIN = {"x is missing": "a", "city=Rome": "b", "k=v": "c"}


@pytest.mark.parametrize("column", ["x is missing", "city=Rome"])
def test_a_column_called_like_a_feature_of_another_is_not_lost(column, folder, run):
    one, other = collide(0), collide(1, **{column: 5.0})
    plain = [frame.rename(columns=PLAIN) for frame in (one, other)]
    found, expected = (sotdd.distance(*pair, n_projections=64) for pair in ((one, other), plain))
    assert len(found.columns) == len(expected.columns) == 9
    assert found.value == expected.value  # whatever columns are called
    reference = sotdd.DriftReference.fit(one)
    reference.save("x.ref")
    changes = sotdd.DriftReference.load("x.ref").test(other, n_permutations=99).changes
    assert [line.column for line in changes.changed] == [column]
    other.to_csv("batch.csv", index=False)
    code, said, _ = run("check", "x.ref", "batch.csv", "--n-permutations", "99")
    assert code == 1
    assert "judged 5 of 5 columns" in said
    assert column in said


def test_such_columns_in_sketches_and_streams(folder):
    one, other = collide(0), collide(1)
    projections = sotdd.Projections.fit([one], n_projections=32)
    whole = sotdd.sketch(other, projections)
    streamed = sotdd.sketch_stream([other[:100], other[100:]], projections)
    assert whole.columns == streamed.columns == projections.columns
    assert streamed.distance(whole).value < 0.02 < sotdd.sketch(one, projections).distance(whole).value
    whole.save("other.sotdd")
    assert sotdd.distance("other.sotdd", other).value < 1e-6


def test_features_by_the_names_that_they_have():
    opened = open_dataset(collide(0))
    assert opened.columns[:3] == ("x", "x is missing", '"x is missing"')
    assert open_dataset(collide(0), features=opened.columns).columns == opened.columns
    assert open_dataset(collide(0), features=["x is missing", "k=v"]).table == ("x is missing", "k=v")
    assert open_dataset(collide(0), features='"k=v"=a').table == ("k=v",)
