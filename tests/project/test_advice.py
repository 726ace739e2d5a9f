"""Advice that errors give is tried: what to use, or what to choose by which setting, leads to a result."""

import ast
import sqlite3
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from PIL import Image

import sotdd
from inputs.items import Items
from sotdd.basics.errors import SotddError

SOURCE = Path(sotdd.__file__).parent
FEW = {"n_projections": 16}
X, Y = np.random.default_rng(0).normal(size=(60, 4)), np.arange(60) % 3
GREY, COLOUR = np.zeros((9, 6, 6), np.uint8), np.zeros((9, 6, 6, 3), np.uint8)


def distance(a, b, **usual):
    """A call that measures two datasets, with settings that advice may replace."""
    return lambda **how: sotdd.distance(a, b, **{**FEW, **usual, **how})


def opening(source, **usual):
    return lambda **how: sotdd.open_dataset(source, **{**usual, **how})


def images(*shapes):
    return [Image.new("L" if len(shape) == 2 else "RGB", shape[:2]) for shape in shapes], [0] * len(shapes)


def sketch(data, name, projections, **how):
    return sotdd.sketch(data, projections, name=name, **how)


def mix_of_sketches(**how):
    through = sotdd.Projections.fit([X], n_projections=32)
    sources = [sketch((X + shift, Y), str(shift), through, **how) for shift in (0, 1)]
    return sotdd.mix(X, sources)


def loss(**how):
    through = sotdd.Projections.fit([X], **{**FEW, "label_law": "quantiles", **how})
    x, y = torch.from_numpy(X), torch.from_numpy(Y)
    return sotdd.gradients.sotdd_loss(x, y, x + 1, y, through)


def stream(**how):
    frame = pd.DataFrame({"x": X[:, 0], "y": X[:, 1]})
    through = sotdd.Projections.fit([frame], **FEW, tilt=False)
    return sotdd.sketch_stream([frame], through, **how)


def cut_targets(**how):
    a, b = (sotdd.open_dataset((X, X[:, 0]), **{"bins": bins, **how}) for bins in (5, 6))
    return sotdd.distance(a, b, **FEW)


def hub(**how):
    datasets = pytest.importorskip("datasets")
    part = datasets.Dataset.from_dict({"x": [1.0, 2.0], "label": [0, 1]})
    return sotdd.open_dataset(datasets.DatasetDict({"train": part, "test": part}), **how)


def write_files(monkeypatch):
    """Tables and archives of which something must be chosen."""
    np.savez("splits.npz", X_train=X, y_train=Y, X_test=X, y_test=Y)
    np.savez("named.npz", points=X, kind=Y)
    for split in ("train", "test"):
        Path("parts", split).mkdir(parents=True)
        pd.DataFrame({"x": X[:, 0], "label": Y}).to_csv(f"parts/{split}/t.csv", index=False)
    with sqlite3.connect("two.db") as connection:
        for name in ("one", "other"):
            connection.execute(f"CREATE TABLE {name} AS SELECT 1.5 AS x, 2 AS label")
    late = ["1", "2"] * 50 + ["oops"] * 2
    pd.DataFrame({"x": late, "z": range(102)}).to_parquet("late.parquet")
    monkeypatch.setattr("sotdd.inputs.loaders.tables.LOOK_ROWS", 50)
    monkeypatch.setattr("sotdd.inputs.loaders.files._BATCH_ROWS", 50)


def list_cases():
    """Calls that raise an error with advice, and the values to choose for the settings that it names."""
    plain, frame = pd.DataFrame(X, columns=[*"abcd"]), pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "label": Y})
    texts = pd.DataFrame({"text": [f"words that never occur again {k}" for k in range(40)], "id": range(40)})
    words = plain.assign(a=[*map(str, X[:-1, 0]), "oops"])
    lists = pd.DataFrame({"u": [[1.0, 2.0]] * 9, "v": [[3.0]] * 9})
    parts = Items([(torch.zeros(2), 0, 5), (torch.ones(2), 1, 6)])
    return [
        (distance(X * 1e38, X * 1e37, scale=None), {}),
        (distance(X * 1e38, X * 1e37, scale=None, label_law="quantiles"), {}),
        (distance(X * 1e20, X * 1e21, scale=None, p=20, label_law="quantiles"), {}),
        (distance(X * 1e20, X * 1e20, scale=None, p=20, noise_floor=True, label_law="quantiles"), {}),
        (lambda **how: sotdd.peers.chsw((X * 1e39, Y), (X * 1e39, Y), **how), {}),
        (lambda **how: sotdd.peers.otdd((X * 1e200, Y), (X * 1e200, Y), **how), {}),
        (lambda **how: sotdd.peers.otdd((X, Y), (X + 1, Y), **how), {}),
        (loss, {}),
        (stream, {"label": None}),
        (mix_of_sketches, {}),
        (cut_targets, {"bins": 5}),
        (distance(plain, plain.rename(columns={"d": "e"})), {"features": [*"abc"]}),
        (distance(plain, words), {"exclude": "a", "na_values": "oops"}),
        (distance((X, Y), X), {}),
        (distance(frame, frame[["a", "b"]]), {}),
        (distance((X, X[:, 0]), (X, X[:, 0])), {}),
        (distance(GREY, GREY[:, :4]), {"image_size": 5}),
        (distance(GREY, COLOUR), {"image_mode": "L"}),
        (opening(plain, bins=3), {"label": "a"}),
        (opening(plain.mask(plain > 1), missing="error"), {}),
        (opening((X, [None, *Y[1:]]), missing="error"), {}),
        (opening(images(*[(4, 4)] * 300, (4, 4, 3))), {}),
        (opening(images((4, 4), (5, 4))), {}),
        (opening(([*texts.text], [0] * 40)), {}),
        (opening(texts.assign(note=texts.text[::-1].tolist())), {}),
        (opening(texts[["text"]]), {}),
        (opening(frame.assign(target=Y)), {"label": "label"}),
        (opening(lists), {"features": "u"}),
        (opening(parts), {"label": 1}),
        (opening(parts, label=7), {"label": 1}),
        (opening(Items([{"u": 1.0, "v": 2.0, "label": 0}] * 3)), {"features": "v"}),
        (opening(Items([(torch.zeros(2, 3), 0), (torch.zeros(3, 3), 0)])), {"image_size": 3}),
        (hub, {"split": "test"}),
        (opening("splits.npz"), {"split": "train"}),
        (opening("named.npz", label="kind"), {"features": "points"}),
        (opening("named.npz", features="points", label="y"), {"label": "kind"}),
        (opening("parts"), {"split": "train"}),
        (opening("parts", split="val"), {"split": "test"}),
        (opening("two.db"), {"table": "other"}),
        (opening("late.parquet"), {"na_values": "oops", "exclude": "x"}),
    ]  # fmt: skip


def find_advice():
    """The functions of the package that make an error with advice."""
    for path in SOURCE.rglob("*.py"):
        for function in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            calls = ast.walk(function) if isinstance(function, ast.FunctionDef) else ()
            makes = [call for call in calls if isinstance(call, ast.Call) and getattr(call.func, "id", "") in MADE]
            if any(keyword.arg in ("use", "by") for call in makes for keyword in call.keywords):
                yield path.name, function.name


MADE = ("SotddError", "OutOfRange")
# Classes overflow after random splits of the data, which are farther apart.
SECOND = {("classes.py", "conclude")}


def test_all_advice_that_errors_give_works(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_files(monkeypatch)
    tried, make = set(), SotddError.__init__

    def note(self, *args, use=None, by=(), **rest):
        if use or by:
            code = sys._getframe(1).f_code
            tried.add((Path(code.co_filename).name, code.co_name))
        make(self, *args, use=use, by=by, **rest)

    monkeypatch.setattr(SotddError, "__init__", note)
    failed = []
    for number, (call, values) in enumerate(list_cases()):
        with monkeypatch.context() as patch:
            if number == 6:
                patch.setattr("sotdd.basics.resources._FEW", 0)
                patch.setattr("sotdd.basics.resources.available_bytes", lambda: 200_000)
            try:
                call()
                failed.append(f"{number} raised nothing")
                continue
            except SotddError as raised:
                error = raised
            ways = [{name: value} for name, value in values.items() if name in error.by] or [error.use]
            if not ways[0]:
                failed.append(f"{number}: {error}")
                continue
            for how in ways:
                try:
                    call(**how)
                except SotddError as other:
                    failed.append(f"{number}: {error} -> {how}: {other}")
    assert not failed, "\n".join(failed)
    assert {*find_advice()} - tried == SECOND
