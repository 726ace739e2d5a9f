"""Which column holds the labels of a table, what is said where none does, and labels that may be measurements."""

import numpy as np
import pandas as pd
import pytest

import sotdd
from inputs.helpers import refusal
from sotdd import SotddError, open_dataset

N = 400


@pytest.fixture
def frame(rng):
    x = rng.normal(size=(N, 2))
    return pd.DataFrame({"u": x[:, 0], "v": x[:, 1]})


def kinds(remarks):
    return [remark.kind for remark in remarks]


def no_labels(data):
    """The facts of the one remark that says so."""
    [remark] = [remark for remark in data.remarks if remark.kind == "no labels"]
    return remark.facts


CALLS = {
    "distance": lambda a, b: sotdd.distance(a, b, n_projections=16).remarks,
    "test": lambda a, b: sotdd.test(a, b, n_permutations=19).remarks,
    "explain": lambda a, b: sotdd.explain(a, b, n_projections=16).distance.remarks,
    "pairwise": lambda a, b: sotdd.pairwise([a, b], n_projections=16)["0", "1"].remarks,
    "rank": lambda a, b: sotdd.rank(a, [b], n_projections=16).remarks,
    "reference": lambda a, b: sotdd.DriftReference.fit(a).test(b, n_permutations=19).remarks,
    "sketch": lambda a, b: sketch(a, a).distance(sketch(b, a)).remarks,
    "stream": lambda a, b: sotdd.sketch_stream([b[:50], b[50:]], fit(a)).remarks,
}


def fit(frame):
    return sotdd.Projections.fit([frame], n_projections=16)


def sketch(frame, fitted_on):
    return sotdd.sketch(frame, fit(fitted_on))


@pytest.mark.parametrize("call", CALLS)
def test_tables_without_a_label_column_are_compared_without_labels(frame, call):
    said = [remark for remark in CALLS[call](frame, frame + 0.1) if remark.kind == "no labels"]
    assert len(said) == 1  # once, though it goes for both
    assert said[0].facts["names"] == ("label", "labels", "target", "y", "class")
    assert "label" in str(said[0])


def test_nothing_is_said_where_it_was_asked_for(frame):
    assert not open_dataset(frame, label=None).remarks
    assert not open_dataset((frame, np.arange(N) % 2)).remarks


@pytest.mark.parametrize("name", ["label", "Labels", "TARGET", "y", "Class", " label "])
def test_the_usual_names_in_any_case_hold_the_labels(frame, folder, name):
    table = frame.assign(**{name: np.where(frame["u"] > 0, "yes", "no")})
    table.to_csv("t.csv", index=False)
    for source in (table, "t.csv"):
        opened = open_dataset(source)
        assert opened.classes == ("no", "yes")
        assert opened.origin.label_column == name
        assert not opened.remarks


@pytest.mark.parametrize("name", ["y", "target", "label"])
@pytest.mark.parametrize("rows", [12, N])
def test_a_column_of_many_floats_is_a_feature_and_that_is_said(frame, folder, name, rows):
    """As y in the public table diamonds, which is a length; in tables of any size."""
    table = frame.assign(**{name: frame["u"] * 1.5})[:rows]
    table.to_csv("t.csv", index=False)
    table.to_parquet("t.parquet")
    for source in (table, "t.csv", "t.parquet"):
        opened = open_dataset(source)
        assert opened.columns == ("u", "v", name)
        assert opened.classes == ("all",)
        assert no_labels(opened)["passed"] == {name: "floats"}
        assert f"label='{name}' and bins=10" in str(opened.remarks[0])
        assert open_dataset(source, bins=4).counts.tolist() == [rows // 4] * 4  # then it is the target
        if rows > 20:
            assert "bins=10" in refusal(source, label=name)
        assert len(open_dataset(source, label=name, bins=2).classes) == 2


def test_lengths_called_y_stay_features(rng):
    """The sizes of diamonds, in hundredths of a millimetre, each of which occurs many times."""
    first, second = (
        pd.DataFrame(rng.normal(5.7, 0.5, (2000, 3)).round(2), columns=["x", "y", "z"]).assign(cut="good")
        for _ in range(2)
    )
    found = sotdd.distance(first, second, n_projections=16)
    assert found.columns == ("x", "y", "z", "cut=good")
    assert kinds(found.remarks).count("no labels") == 1


def test_floats_that_are_classes_stay_labels(frame):
    for values in ([0.0, 1.0], [0.5, 1.5], np.arange(30.0)):
        opened = open_dataset(frame.assign(y=np.resize(values, N)))
        assert opened.classes == tuple(values)
        assert not opened.remarks
    assert open_dataset(frame[:4].assign(y=[1.0, 2.0, 3.0, 1.0])).classes == (1.0, 2.0, 3.0)


def test_of_several_usual_names_the_one_that_can_be_labels_is(frame):
    table = frame.assign(y=frame["u"] * 2, target=np.nan, label=np.arange(N) % 3)
    assert open_dataset(table).classes == (0, 1, 2)
    assert open_dataset(table).columns == ("u", "v", "y")
    assert "'label' and 'class'" in refusal(table.assign(**{"class": 1}))


def test_a_column_that_is_named_otherwise_is_no_label(frame):
    table = frame.assign(y=np.arange(N) % 3)
    assert open_dataset(table, features=["u", "y"]).columns == ("u", "y")
    assert open_dataset(table, exclude="y").columns == ("u", "v")
    for how in ({"features": ["u", "y"]}, {"exclude": "y"}):
        assert open_dataset(table, **how).classes == ("all",)
        assert kinds(open_dataset(table, **how).remarks) == ["no labels"]


def test_constant_and_boolean_labels(frame):
    assert open_dataset(frame.assign(**{"class": "only"})).classes == ("only",)
    assert open_dataset(frame.assign(label=frame["u"] > 0)).classes == (False, True)
    with_one = frame.assign(**{"class": "only"})
    assert sotdd.distance(with_one, frame, n_projections=16).value == 0  # one class is one class


def test_integers_with_hundreds_of_values_may_be_measurements(frame, folder):
    table = frame.assign(price=np.arange(N) % 150, age=np.arange(N) % 80)
    table.to_csv("t.csv", index=False)
    for source, label in ((table, "price"), ("t.csv", "price"), (table[:100], "age")):
        opened = open_dataset(source, label=label)
        [said] = [remark for remark in opened.remarks if remark.kind == "many classes"]
        assert said.facts == {"classes": len(opened.classes)}
        assert "bins=10" in str(said)
        assert "many classes" not in kinds(open_dataset(source, label=label, bins=10).remarks)
    assert "many classes" in kinds(open_dataset((frame, table["price"])).remarks)
    assert "many classes" not in kinds(open_dataset(table, label="age").remarks)
    assert "many classes" not in kinds(open_dataset((frame, [f"k{row % 150}" for row in range(N)])).remarks)


@pytest.mark.parametrize("most", [None, 100])
def test_rows_without_a_label_are_left_out_and_that_is_said(frame, folder, most):
    table = frame.assign(label=np.where(frame["u"] > 0, "yes", "no"))
    table.loc[::4, "label"] = None
    table.loc[1, "u"] = np.nan
    table.to_csv("t.csv", index=False)
    for source in (table, "t.csv", (table[["u", "v"]], table["label"])):
        opened = open_dataset(source, max_points=most)
        assert opened.n_points == (most or 3 * N // 4)
        assert sorted(opened.classes) == ["no", "yes"]
        assert "labels missing" in kinds(opened.remarks)
    assert "100 labels that are missing" in refusal(table.fillna({"u": 0.0}), missing="error")
    both = sotdd.distance(table, table.assign(label=table["label"].fillna("no")), n_projections=16)
    assert both.n_points == (3 * N // 4, N)


def test_labels_that_are_all_missing(frame, folder):
    table = frame.assign(label=None)
    table.to_csv("t.csv", index=False)
    for source in (table, table.assign(label=np.nan), "t.csv"):
        opened = open_dataset(source)
        assert opened.columns == ("u", "v")
        assert no_labels(opened)["passed"] == {"label": "empty"}
        assert "no rows with a label" in refusal(source, label="label")


def test_one_of_two_tables_has_labels(frame, folder):
    labelled = frame.assign(label=np.arange(N) % 2)
    labelled.to_csv("a.csv", index=False)
    frame.to_csv("b.csv", index=False)
    for call in (sotdd.distance, sotdd.test, sotdd.explain):
        with pytest.raises(SotddError, match=r"'b\.csv' has no labels but dataset 'a\.csv' has 2 classes") as caught:
            call("a.csv", "b.csv")
        assert str(caught.value).endswith("use label=None, exclude='label'.")
        assert call("a.csv", "b.csv", label=None, exclude="label", seed=0)  # what it says works
    with pytest.raises(SotddError, match="has no column 'label'"):
        sotdd.DriftReference.fit("a.csv").test("b.csv")
    with pytest.raises(SotddError, match="has no labels"):
        sotdd.DriftReference.fit("b.csv").test((frame, [0, 1] * (N // 2)))
    projections = fit(frame)
    sides = sotdd.sketch(labelled, projections), sotdd.sketch(frame, projections)
    for one, other in (sides, sides[::-1], (sides[0], frame)):
        with pytest.raises(SotddError, match="has no labels"):
            sotdd.distance(one, other)


def test_a_reference_without_labels_ignores_those_of_a_batch(frame):
    reference = sotdd.DriftReference.fit(frame)
    batch = reference.open_batch(frame.assign(label=np.arange(N) % 2, y=1.5))
    assert batch.columns == ("u", "v")
    assert reference.test(frame.assign(label=np.arange(N) % 2), n_permutations=19).p_value > 0.05


def test_no_batch_of_a_stream_decides_alone_whether_there_are_labels(frame):
    """Ten fractions that repeat are classes; a few rows of them look like measurements."""
    table = frame.assign(y=np.resize(np.arange(10) + 0.5, N))
    batches = [table[start : start + 40] for start in range(0, N, 40)]
    with pytest.raises(SotddError, match="'y'"):
        sotdd.sketch_stream(batches, fit(frame))
    assert len(sotdd.sketch_stream(batches, fit(frame), label="y").classes) == 10
    assert sotdd.sketch_stream(batches, fit(sotdd.open_dataset(table, label=None)), label=None).classes == ("all",)
    late = frame.assign(y=np.where(np.arange(N) < 40, None, "k"))
    streamed = sotdd.sketch_stream([late[:40], late[40:]], fit(frame))
    assert streamed.n_points == N - 40
