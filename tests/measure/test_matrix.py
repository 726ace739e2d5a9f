"""All pairs of several datasets."""

import csv
import io
import json

import numpy as np
import pandas as pd
import pytest

import sotdd


@pytest.fixture
def datasets(rng):
    return {
        "near": (rng.normal(size=(80, 5)), rng.integers(0, 3, size=80)),
        "here": (rng.normal(size=(120, 5)), rng.integers(0, 3, size=120)),
        "far": (rng.normal(3, 1, size=(60, 5)), ["a", "b"] * 30),
    }


def test_every_entry_is_the_distance_of_its_pair(datasets):
    projections = sotdd.Projections.fit(datasets, n_projections=700)
    matrix = sotdd.pairwise(datasets, projections=projections)
    assert matrix.names == ("near", "here", "far")
    for i, a in enumerate(matrix.names):
        for j, b in enumerate(matrix.names):
            if i == j:
                assert matrix.values[i, j] == matrix.stderr[i, j] == 0
                continue
            alone = sotdd.distance(datasets[a], datasets[b], projections=projections)
            np.testing.assert_array_equal(matrix[a, b].per_projection, alone.per_projection)
            assert matrix.values[i, j] == alone.value
            assert matrix.stderr[i, j] == alone.stderr
    assert matrix["far", "near"].n_points == (80, 60)
    assert (matrix.nearest("near"), matrix.nearest("here")) == ("here", "near")
    own = sotdd.pairwise(datasets, n_projections=64)
    assert own["near", "far"].scaler is own["near", "here"].scaler  # one for all


def test_tables(datasets, tmp_path):
    matrix = sotdd.pairwise(datasets, n_projections=100)
    rows = list(csv.reader(io.StringIO(matrix.to_csv(tmp_path / "m.csv"))))
    assert (tmp_path / "m.csv").read_text() == matrix.to_csv()
    assert rows[0] == ["", "near", "here", "far"]
    np.testing.assert_array_equal(np.array([row[1:] for row in rows[1:]], float), matrix.values)
    told = json.loads(json.dumps(matrix.to_dict(), allow_nan=False))
    assert told["values"] == matrix.values.tolist()
    assert [(pair["a"], pair["b"]) for pair in told["distances"]] == [
        ("near", "here"),
        ("near", "far"),
        ("here", "far"),
    ]
    pd.testing.assert_frame_equal(
        matrix.to_pandas(), pd.DataFrame(matrix.values, index=matrix.names, columns=matrix.names)
    )
    order = matrix.ranking("near")
    frame = order.to_pandas()
    assert list(frame.index) == list(order.names)
    assert frame["value"].tolist() == [line.distance.value for line in order]
    beyond = [matrix.beyond_noise[0, matrix.names.index(name)] for name in order.names]
    assert frame["beyond_noise"].tolist() == beyond == [line.distance.beyond_noise for line in order]
    why = sotdd.explain(datasets["near"], datasets["far"], n_projections=32)
    assert why.to_pandas()["share"].tolist() == [line.share for side in (0, 1) for line in why.lines(side)]
    assert why.by_feature.to_pandas()["column"].tolist() == [one.column for one in why.by_feature]
    changes = sotdd.DriftReference.fit(datasets["near"]).find_changes(datasets["far"])
    assert changes.to_pandas()["p_value"].tolist() == [one.p_value for one in changes]
    lines = repr(matrix).splitlines()
    assert lines[0].split() == ["near", "here", "far"]
    assert lines[1].startswith("near  0 ")


def test_names_are_the_callers(rng):
    x, z = (sotdd.LabelledData.of(rng.normal(size=(9, 2))) for _ in range(2))
    assert sotdd.pairwise({"x": x, "z": z}, n_projections=64)["x", "z"].n_points == (9, 9)
    assert sotdd.pairwise([x, z], n_projections=64).names == ("data", "data (2)")
    numbered = sotdd.pairwise({1: x, 2: z}, n_projections=64)
    assert numbered[1, 2].value == numbered["1", "2"].value
    assert list(numbered) == ["1", "2"]
    assert "1" in numbered
    np.testing.assert_array_equal(np.asarray(numbered), numbered.values)


def test_bad_input(datasets, rng):
    for bad, said in [
        ({}, "no datasets"),
        (rng.normal(size=(5, 2)), "datasets is a ndarray"),
        ((rng.normal(size=(5, 2)), [1] * 5), "datasets is a tuple"),
        ({"a": rng.normal(size=(5, 2)), "b": rng.normal(size=(5, 3))}, "'b' has 3 features but dataset 'a' has 2"),
        ({"a": rng.normal(size=(5, 2)), "b": None}, "dataset 'b' is None"),
    ]:
        with pytest.raises(sotdd.SotddError, match=said):
            sotdd.pairwise(bad)
    matrix = sotdd.pairwise(datasets, n_projections=64)
    with pytest.raises(sotdd.SotddError, match="no dataset 'mars'"):
        matrix["near", "mars"]
    with pytest.raises(sotdd.SotddError, match="distance 0 from itself"):
        matrix["near", "near"]
    with pytest.raises(sotdd.SotddError, match="two names"):
        matrix["near"]
    with pytest.raises(sotdd.SotddError, match="only one dataset"):
        sotdd.pairwise({"alone": rng.normal(size=(5, 2))}).nearest("alone")


@pytest.mark.parametrize("estimator", ["controlled", "plain"])
def test_equal_distances_are_tied_for_most_choices_of_projections(rng, estimator):
    """Exchanging two features changes nothing here, so both are exactly as far; 5 % of seeds may say otherwise."""
    x, y = rng.normal(size=(60, 3)), rng.integers(2, size=60)
    here = np.vstack([x, x[:, [1, 0, 2]]]), np.tile(y, 2)
    moved = {name: (here[0] + np.array(step), here[1]) for name, step in {"u": [1, 0, 0], "v": [0, 1, 0]}.items()}
    told_apart = 0
    for seed in range(40):
        matrix = sotdd.pairwise({"here": here, **moved}, n_projections=256, seed=seed, estimator=estimator)
        told_apart += not matrix.ranking("here").lines[0].tied
    assert told_apart <= 6  # beyond this with probability 0.3 % at 5 %


def test_more_datasets_than_fit_are_refused_before_any_is_read():
    class Unread:
        def __getattr__(self, name):
            raise AssertionError(name)

    with pytest.raises(sotdd.SotddError, match="GB of memory"):
        sotdd.pairwise([Unread()] * 100_000, n_projections=10**6)
