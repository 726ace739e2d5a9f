"""References on disk, and batches that are opened as their reference was."""

import json
import os
import pickle
import struct

import numpy as np
import pandas as pd
import pytest

import sotdd
from sotdd.drift.file import KIND
from sotdd.sketches.codec import pack


def frame(rng, n, shift=0.0, target=0.0):
    return pd.DataFrame(
        {
            "id": rng.permutation(n) + 1000,
            "age": rng.normal(40 + shift, 10, n).round(1),
            "income": rng.lognormal(10, 0.5, n),
            "city": rng.choice(["Oslo", "Rome"], n),
            "price": rng.normal(target, 1, n),
            "kind": rng.choice(["a", "b"], n),
        }
    )


@pytest.mark.parametrize(
    "settings",
    [{}, {"seed": 2**70, "label_directions": "own"}, {"label_law": "quantiles", "scale": None}, {"with_sketch": True},
     {"label_names": "match", "p": 1}, {"directions": sotdd.projections.Hadamard()}],
    ids=lambda settings: " ".join(settings) or "default",
)  # fmt: skip
def test_what_was_saved_says_the_same(rng, tmp_path, settings):
    x, y = rng.normal(size=(200, 6)), rng.integers(3, size=200)
    reference = sotdd.DriftReference.fit((x, y), n_projections=64, **settings)
    reference.save(tmp_path / "x.ref")
    assert os.listdir(tmp_path) == ["x.ref"]
    again = sotdd.DriftReference.load(tmp_path / "x.ref")
    assert repr(again) == repr(reference)
    batch = rng.normal(0.1, 1, size=(40, 6)), rng.integers(3, size=40)
    assert again.test(batch, n_permutations=19).to_dict() == reference.test(batch, n_permutations=19).to_dict()
    assert again.distance(batch).to_dict() == reference.distance(batch).to_dict()
    assert pickle.loads(pickle.dumps(again)).seed == reference.seed


def test_batches_are_opened_as_the_reference_was(rng, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    train = frame(rng, 200)
    train.to_csv("train.csv", index=False)
    frame(rng, 60)[train.columns[::-1]].assign(extra=np.nan).to_csv("today.csv", index=False)
    sotdd.DriftReference.fit("train.csv::label=kind,one_hot=5,exclude=price").save("train.ref")
    reference = sotdd.DriftReference.load("train.ref")
    assert reference.projections.columns == ("age", "income", "city=Oslo", "city=Rome")
    assert "id (id)" in repr(reference)
    for batch in ("today.csv", frame(rng, 60), frame(rng, 5)):  # of which few are no ids
        assert not reference.test(batch, n_permutations=99).rejects(0.01)
    opened = reference.open_batch("today.csv")
    assert opened.columns == reference.projections.columns
    assert opened.classes == ("a", "b")
    wider = sotdd.open_dataset(frame(rng, 50).assign(speed=1.5), label="kind", one_hot=5, name="today")
    assert any("speed" in str(said) for said in reference.test(wider, n_permutations=9).remarks)
    assert reference.test(frame(rng, 60, shift=40), n_permutations=99).rejects(0.05)
    frame(rng, 60).drop(columns="age").to_csv("lacks.csv", index=False)
    frame(rng, 60).drop(columns="kind").to_csv("bare.csv", index=False)
    frame(rng, 60).head(0).to_csv("empty.csv", index=False)
    for path, said in [("lacks.csv", "no column 'age'"), ("bare.csv", "no column 'kind'"), ("empty.csv", "no rows")]:
        with pytest.raises(sotdd.SotddError, match=said):
            reference.test(path)


def test_targets_are_cut_where_those_of_the_reference_are(rng, tmp_path):
    """Bins of a batch's own would hide that its target has moved."""
    settings = {"label": "price", "bins": 4, "features": ["age", "income"]}
    train = frame(rng, 300)
    train["price"] += (train["age"] - 40) / 5  # so that classes lie apart
    reference = sotdd.DriftReference.fit(sotdd.open_dataset(train, **settings), with_sketch=True)
    reference.save(tmp_path / "x.ref")
    again = sotdd.DriftReference.load(tmp_path / "x.ref")
    moved = frame(rng, 100)
    moved["price"] += (moved["age"] - 40) / 5 + 4
    batch = sotdd.open_dataset(moved, **settings)
    assert set(again.distance(batch).classes[1]) < set(reference.classes)
    assert again.test(batch, n_permutations=99).rejects(0.05)
    named = train[["age", "income"]].to_numpy(), ["a"] * 300
    with pytest.raises(sotdd.SotddError, match="labels of dataset 'batch' are not numbers"):
        again.test(named)
    with pytest.raises(sotdd.SotddError, match="cut into bins but dataset 'batch' has none"):
        again.test(sotdd.open_dataset(named, name="batch"))


def test_labels_on_one_side_alone_are_refused(rng):
    x, y = rng.normal(size=(100, 3)), rng.integers(3, size=100)
    with pytest.raises(sotdd.SotddError, match="'batch' has no labels but dataset 'reference' has 3 classes"):
        sotdd.DriftReference.fit((x, y)).test(x)
    with pytest.raises(sotdd.SotddError, match="dataset 'reference' has no labels but dataset 'batch' has 3 classes"):
        sotdd.DriftReference.fit(x).test((x, y))
    one_class = sotdd.open_dataset(x, label=None)
    sotdd.DriftReference.fit((x, y)).test(one_class, n_permutations=9)  # which was asked for


def test_what_cannot_be_kept_is_refused(rng, tmp_path):
    x = rng.normal(size=(40, 3))
    with pytest.raises(sotdd.SotddError, match=r"the label \(1, 2\) cannot be written to a file unchanged"):
        sotdd.DriftReference.fit((x, [(1, 2), (3, 4)] * 20)).save(tmp_path / "x.ref")
    drawn = sotdd.Projections.from_arrays(theta=np.eye(3), psi=np.ones((3, 2)), orders=np.ones((3, 1)))
    reference = sotdd.DriftReference.fit(x, projections=drawn)
    reference.save(tmp_path / "own.ref")
    with pytest.raises(sotdd.SotddError, match=r"cannot be drawn again .* pass projections="):
        sotdd.DriftReference.load(tmp_path / "own.ref")
    again = sotdd.DriftReference.load(tmp_path / "own.ref", projections=drawn)
    assert again.test(x, n_permutations=9).p_value == reference.test(x, n_permutations=9).p_value


def test_other_files_are_refused_in_one_line(rng, tmp_path):
    x = rng.normal(size=(40, 3))
    path = tmp_path / "x.ref"
    sotdd.DriftReference.fit(x, n_projections=8).save(path)
    whole = path.read_bytes()
    sotdd.sketch(x, sotdd.Projections.fit([x], n_projections=8)).save(tmp_path / "x.sotdd")
    nested = json.dumps({"__metadata__": {"sotdd": "[" * 100_000}}).encode()
    for content, said in [
        (b"", "not a whole drift reference"),
        (b"\x80\x04K\x01.", "not a whole drift reference"),  # a pickle
        (whole[:-3], "not a whole drift reference"),
        (whole[:-3] + b"xyz", "checksum does not match"),
        ((tmp_path / "x.sotdd").read_bytes(), "holds a sketch: expected a drift reference"),
        (struct.pack("<Q", len(nested)) + nested, "not a whole drift reference"),
        (pack(KIND, {}, {}), "cannot be used"),
    ]:
        path.write_bytes(content)
        with pytest.raises(sotdd.SotddError, match=said) as caught:
            sotdd.DriftReference.load(path)
        assert len(str(caught.value).splitlines()) == 1
    with pytest.raises(sotdd.SotddError, match="no such file"):
        sotdd.DriftReference.load(tmp_path / "nowhere.ref")
