"""The way in: short for plain arrays, the same wherever they come in, and old names that are still taken."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import sotdd
from inputs.helpers import frame_of, refusal
from sotdd import LabelledData, open_dataset
from sotdd.inputs import labelled, labelled_pair

OLD_NAME = r"max_rows= is now called max_points=: please rename it, the old name will be removed\."


def test_the_old_name_of_max_points_is_taken_with_a_warning(xy, folder):
    frame_of(xy).to_csv("t.csv", index=False)
    with pytest.warns(FutureWarning, match=OLD_NAME) as caught:
        by_keyword = open_dataset(xy, max_rows=40, seed=3)
    with pytest.warns(FutureWarning, match=OLD_NAME) as more:
        by_text = open_dataset("t.csv::label=species,max_rows=40,seed=3")
    assert [Path(warning.filename).name for warning in (*caught, *more)] == ["test_opening.py"] * 2
    expected = open_dataset(xy, max_points=40, seed=3)
    for data in (by_keyword, by_text):
        np.testing.assert_array_equal(data.rows(slice(None)), expected.rows(slice(None)))


def test_a_path_with_the_old_name_is_warned_about_once(xy, folder):
    frame_of(xy).to_csv("t.csv", index=False)
    with pytest.warns(FutureWarning, match=OLD_NAME) as caught:
        assert labelled_pair("t.csv::label=species,max_rows=40", xy)[0].n_points == 40
    assert len(caught) == 1


def test_both_names_at_once_are_refused(xy, folder):
    (folder / "t.csv").write_text("x,y\n1,2\n3,4\n")
    assert "both are given: leave max_rows out" in refusal(xy, max_points=3, max_rows=4)
    assert "both are given: leave max_rows out" in refusal("t.csv::max_points=1,max_rows=1")


def test_a_source_text_counts_more_than_arguments_under_either_name(folder):
    (folder / "t.csv").write_text("x,y\n1,2\n3,4\n5,6\n")
    with pytest.warns(FutureWarning, match=OLD_NAME):
        assert open_dataset("t.csv::max_rows=1", max_points=2).n_points == 1


def test_label_auto_is_the_default(xy):
    frame = frame_of(xy).rename(columns={"species": "y"})
    assert open_dataset(frame, label="auto").classes == open_dataset(frame).classes
    assert open_dataset(xy, label="auto").classes == open_dataset(xy).classes


@pytest.mark.parametrize("call", [sotdd.distance, labelled_pair, lambda a, b: labelled([a, b])])
@pytest.mark.parametrize("labels", [np.array([0, 1, 0]), np.array(["a", "b", "a"]), np.array([0.5, 1.5, 0.5])])
def test_plain_arrays_take_the_short_way(call, labels):
    """Of this room, nothing runs but the way in, the dataset and its labels."""
    room = str(Path(sotdd.__file__).parent / "inputs")
    files = set()

    def watch(frame, event, argument):
        if event == "call" and frame.f_code.co_filename.startswith(room):
            files.add(Path(frame.f_code.co_filename).name)

    x = np.arange(6.0).reshape(3, 2)
    pair = (x, labels), (x + 1, labels)
    sys.setprofile(watch)
    try:
        call(*pair)
    finally:
        sys.setprofile(None)
    assert files == {"opening.py", "data.py", "labels.py"}


@pytest.mark.parametrize(
    ("labels", "said"),
    [
        (np.arange(30) + 0.5, "as of a regression"),
        (np.where(np.arange(30) == 4, np.nan, 1.0), "1 label that is missing"),
        (np.arange(29), "29 entries but features have 30 rows"),
        (["x"], "1 entry but features have 30 rows"),
    ],
)
def test_arrays_are_checked_the_same_way_wherever_they_come_in(labels, said):
    pair = np.zeros((30, 2)), labels
    with pytest.raises(sotdd.SotddError) as caught:
        LabelledData.of(pair)
    messages = {refusal(pair), refusal(pair, max_points=30), str(caught.value)}  # the second by way of a loader
    assert len(messages) == 1
    assert said in messages.pop()


def test_a_dataset_that_is_open_is_returned_as_it_is(xy):
    data = open_dataset(xy, name="animals")
    assert open_dataset(data) is data
    assert open_dataset(data, name="animals") is data
    assert open_dataset(data, name="others").name == "others"
    assert labelled_pair(data, xy)[0] is data


def test_counts_read_as_people_say_them():
    assert repr(LabelledData.of([[0.0]])) == "LabelledData('data': 1 point, 1 feature, 1 class)"
    assert repr(LabelledData.of(np.zeros((1234, 2)))) == "LabelledData('data': 1,234 points, 2 features, 1 class)"


def test_importing_parquet_batches_loads_no_optional_library():
    code = (
        "import sys; from sotdd.inputs import ParquetBatches; print({'pyarrow', 'torch', 'pandas'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"
