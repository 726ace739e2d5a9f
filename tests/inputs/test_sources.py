"""Paths and source texts: files of every kind, whole, damaged, malformed, and not to be read."""

import inspect
import os
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from pyarrow import feather
from pyarrow import parquet as pq

import sotdd
from inputs.helpers import D, frame_of, read, refusal, same
from sotdd import open_dataset
from sotdd.inputs.reading import OPTIONS, Reading, ReadingSettings
from sotdd.inputs.sources import parse_source, write_source


def test_every_source_opens_as_the_same_points_and_labels(xy, folder):
    x, y = xy
    frame, table = frame_of(xy), pa.Table.from_pandas(frame_of(xy))
    for name, how in {
        "t.csv": {}, "t.csv.gz": {}, "t.tsv": {"sep": "\t"}, "utf-16.csv": {"sep": "\t", "encoding": "utf-16"},
        "bars.csv": {"sep": "|", "decimal": ","},
    }.items():  # fmt: skip
        frame.to_csv(name, index=False, **how)
    (folder / "parts").mkdir()
    for number in range(3):
        pq.write_table(table.slice(100 * number, 100), f"parts/part-{number}.parquet", row_group_size=30)
    pq.write_table(table, "t.parquet", row_group_size=70)
    for name, new in (("t.arrow", pa.ipc.new_file), ("stream.arrow", pa.ipc.new_stream)):
        with pa.OSFile(name, "wb") as sink, new(sink, table.schema) as writer:
            writer.write_table(table, max_chunksize=70)
    feather.write_feather(table, "t.feather", compression="lz4", chunksize=50)
    lists = pa.table({"v": pa.FixedSizeListArray.from_arrays(x.ravel(), D), "label": pa.array(y).dictionary_encode()})
    pq.write_table(lists, "lists.parquet", row_group_size=64)
    np.savez("a.npz", X=x, y=y)
    np.savez_compressed("b.npz", points=x, kind=y)
    for name, array in {"x": x, "fortran": np.asfortranarray(x), "y": y}.items():
        np.save(f"{name}.npy", array)
    tables = ["t.csv", "t.csv.gz", "t.tsv", "utf-16.csv", "bars.csv::decimal=comma", "t.parquet", "parts", "parts/",
              "parts/part-*.parquet", "t.arrow", "stream.arrow", "t.feather", folder / "t.parquet",
              frame, pl.from_pandas(frame), pl.from_pandas(frame).lazy(), table, pa.RecordBatch.from_pandas(frame),
              frame.astype({"species": "category"}), frame.convert_dtypes()]  # fmt: skip
    turned = frame[frame.columns[::-1]].rename(columns={"species": "label"})
    for source in tables:
        opened = open_dataset(source, label="species")
        same(opened, xy)
        found = sotdd.distance(opened, turned, n_projections=16)  # columns are matched by name
        assert (opened.columns, found.columns, found.remarks) == (("x0", "x1", "x2", "x3"),) * 2 + ((),)
        assert found.value == pytest.approx(0, abs=1e-6)
    for source in ["a.npz", folder / "a.npz", "b.npz::features=points,label=kind", "x.npy::label=y.npy",
                   "fortran.npy::label=y.npy", f"{folder}/x.npy::label=y.npy", "lists.parquet",
                   pd.DataFrame({"v": x.tolist(), "y": y}), pl.DataFrame({"v": x.tolist(), "y": y})]:  # fmt: skip
        same(open_dataset(source), xy)
    for name in ("label", "y", "Class"):
        same(open_dataset(frame.rename(columns={"species": name})), xy)
    same(open_dataset("t.csv::label=species,features=x0+x2"), (x[:, [0, 2]], y))
    same(open_dataset("parts/part-1.parquet", label="species"), (x[100:200], y[100:200]))
    assert open_dataset("x.npy::label=").classes == ("all",)


WRITERS = {
    "npz": lambda path, frame: np.savez_compressed(path, X=frame[["a", "b"]], y=frame["label"]),
    "npy": lambda path, frame: np.save(path, frame[["a", "b"]]),
    "csv": lambda path, frame: frame.to_csv(path, index=False),
    "csv.gz": lambda path, frame: frame.to_csv(path, index=False),
    "parquet": lambda path, frame: frame.to_parquet(path, row_group_size=50),
    "arrow": lambda path, frame: pl.from_pandas(frame).write_ipc(path),
}


@pytest.mark.parametrize("kind", WRITERS)
def test_missing_empty_truncated_foreign_and_changed_files(folder, kind):
    """Of bytes changed at random, rows come out, or one line; never another error."""
    path, how = f"good.{kind}", {"label": None} if kind == "npy" else {}
    frame = pd.DataFrame(np.random.default_rng(0).normal(size=(200, 2)), columns=["a", "b"])
    WRITERS[kind](path, frame.assign(label=np.arange(200) % 2))
    assert open_dataset(path, **how).n_points == 200
    assert f"missing.{kind}" in refusal(f"missing.{kind}", **how)
    whole = np.frombuffer((folder / path).read_bytes(), np.uint8)
    half = [] if kind == "csv" else [whole[: len(whole) // 2].tobytes()]  # half a table is a table
    for content in (b"", bytes(range(256)) * 20, *half):
        (folder / path).write_bytes(content)
        assert path in refusal(path, **how)
    rng = np.random.default_rng(1)
    refused, lines = 0, set()
    for _ in range(60):
        broken = whole.copy()
        places = np.concatenate([rng.integers(len(whole), size=2), rng.integers(min(200, len(whole)), size=1)])
        broken[places] = rng.integers(256, size=3)
        (folder / path).write_bytes(broken.tobytes())
        try:
            read(path, **how)
        except sotdd.SotddError as error:
            refused += 1
            lines.update(str(error).splitlines()[1:])
    assert refused > 3
    assert not lines


def test_a_size_that_was_changed_is_no_want_of_memory(folder):
    feather.write_feather(pa.table({"a": np.arange(500.0), "y": np.arange(500)}), "t.arrow", compression="lz4")
    whole, size = (folder / "t.arrow").read_bytes(), (8 * 500).to_bytes(8, "little")
    (folder / "t.arrow").write_bytes(whole.replace(size, (1 << 60).to_bytes(8, "little")))
    assert "t.arrow needs more memory than there is" in refusal("t.arrow")


@pytest.mark.parametrize(
    "text",
    ["x.csv::label", "x.csv::colour=red", "x.csv::max_points=many", "x.csv::image_size=3xy",
     "x.csv::one_hot=maybe", "nowhere.csv"],
)  # fmt: skip
def test_source_texts_that_cannot_be_read(folder, text):
    assert text.rpartition(":")[2].partition("=")[0] in refusal(text)


def test_options_are_said_once_and_written_as_they_are_read():
    shown = inspect.signature(open_dataset).parameters
    assert [*shown][2:] == [*OPTIONS] == [*ReadingSettings.__annotations__]
    asked = {"label": None, "features": ["a", "b"], "one_hot": True, "image_size": (3, 2), "bins": 4, "missing": "mean"}
    path, options = parse_source(write_source("t.csv", **asked))
    assert (path, Reading.of(**options)) == ("t.csv", Reading.of(**asked))


def test_source_texts_that_are_no_path(folder):
    for text, said in (("::label=y", "no path"), ("a\0b", "no file"), ("a" * 999, "no file")):
        assert said in refusal(text)


posix = pytest.mark.skipif(sys.platform == "win32", reason="permissions and links as POSIX has them")


@contextmanager
def closed_to_others(path, mode=0):
    """Be somebody who may not read this path: root may read whatever its mode is."""
    temporary, before, user = Path(tempfile.gettempdir()).resolve(), path.stat().st_mode, os.geteuid()
    for place in path.parents:  # pytest keeps its folders to their owner
        if place != temporary and place.is_relative_to(temporary) and place.stat().st_uid == user:
            place.chmod(0o755)
    path.chmod(mode)
    os.seteuid(65534 if user == 0 else user)  # nobody
    try:
        yield
    finally:
        os.seteuid(user)
        path.chmod(before)


@pytest.fixture
def tables(folder):
    frame = pd.DataFrame({"x": np.arange(6.0), "y": [0, 1] * 3})
    frame.to_csv("t.csv", index=False)
    np.save("x.npy", np.ones((6, 2)))
    for year in (1, 2):
        (folder / "parts" / f"year={year}").mkdir(parents=True)
        frame.to_parquet(f"parts/year={year}/t.parquet")


@posix
@pytest.mark.parametrize(
    ("source", "closed", "mode"),
    [
        ("grey", "grey/cat", 0),
        ("grey", "grey/cat", 0o444),
        ("grey", "grey/cat/2.png", 0),
        ("grey", "grey", 0),
        ("t.csv", "t.csv", 0),
        ("x.npy::label=", "x.npy", 0),
        ("parts", "parts/year=2", 0),
        ("parts", "parts", 0),
    ],
)
def test_what_may_not_be_read_is_refused(photos, tables, tmp_path, source, closed, mode):
    open_dataset(source)
    with closed_to_others(tmp_path / closed, mode):
        assert closed in refusal(source)


@posix
def test_hidden_folders_may_be_closed(photos, tmp_path):
    (tmp_path / "grey" / "cat" / ".thumbnails").mkdir()
    with closed_to_others(tmp_path / "grey" / "cat" / ".thumbnails"):
        assert open_dataset("grey").n_points == 8


@posix
def test_links_are_followed_and_refused_where_they_lead_nowhere(photos, tmp_path):
    (tmp_path / "grey" / "cat").rename(tmp_path / "elsewhere")
    (tmp_path / "grey" / "cat").symlink_to(tmp_path / "elsewhere")
    assert open_dataset("grey").counts.tolist() == [4, 4]
    (tmp_path / "grey" / "cat" / "9.png").symlink_to("nowhere.png")
    assert "9.png is broken" in refusal("grey")


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    monkeypatch.setattr("sotdd.inputs.loaders.files._BLOCK_BYTES", 1 << 14)
    monkeypatch.setattr("sotdd.inputs.loaders.tables.LOOK_ROWS", 1000)


def test_separators_decimals_and_encodings_may_be_said(folder):
    (folder / "t.csv").write_text("a;ä,b;y\n1,5;2;0\n2,5;3;1\n", encoding="latin-1")
    assert "an encoding" in refusal("t.csv")
    opened = open_dataset("t.csv::separator=semicolon,decimal=comma,encoding=latin-1")
    assert opened.columns == ("a", "ä,b")
    assert opened.rows(slice(None)).tolist() == [[1.5, 2], [2.5, 3]]
    for wrong in ("separator=ab", "decimal=semicolon", "encoding=klingon", "separator=comma,decimal=comma"):
        assert wrong.partition("=")[0] in refusal(f"t.csv::{wrong}")


def test_csv_labels_keep_their_kind(folder):
    for written, expected in [
        (["1", "2", "1"], [1, 2, 1]),
        (["01", "2", "01"], ["01", "2", "01"]),
        (["1.0", "1.00", "2"], [1.0, 1.0, 2.0]),
    ]:
        folder.joinpath("l.csv").write_text("x,y\n" + "".join(f"{i},{label}\n" for i, label in enumerate(written)))
        opened = open_dataset("l.csv")
        assert [opened.classes[code] for code in opened.codes] == expected


def test_csv_types_may_change_further_down(folder):
    """The first block looks like integers; fractions and letters come later."""
    (folder / "long.csv").write_text("x,y\n" + "1,1\n" * 30_000 + "2.5,a\n")
    opened = open_dataset("long.csv")
    assert opened.n_points == 30_001
    assert set(opened.classes) == {"1", "a"}
    assert opened.rows(slice(30_000, None))[0, 0] == 2.5


def test_quoted_fields_over_lines_and_blocks(folder):
    labels = ["two\nlines", "plain", 'a "quoted" word', "a,comma", "three\r\nmore\nlines", 'ends in "', " spaces "]
    quoted = ['"' + label.replace('"', '""') + '"' for label in labels]
    text = "x,label\n" + "".join(f"{i},{q}\n" for i in range(1000) for q in quoted)
    folder.joinpath("q.csv").write_bytes(text.encode())
    opened = open_dataset("q.csv")
    assert opened.classes == tuple(sorted(label.strip() for label in labels))
    assert opened.counts.tolist() == [1000] * len(labels)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("x,y\n1,2\n3\n", "cannot read t.csv"),
        ("x,y\n" + "1,2\n" * 30_000 + "abc,3\n", "'abc' in row 30,000"),
        ("age,y\n", "no rows"),
        ("x,x,y\n1,2,3\n", "named x"),
        (f"{'x' * 20_000},y\n1,2\n", "first line"),
        ("\n\n\n", "cannot read t.csv"),
        ('x,y\n1,"k1\n' + "2,k2\n" * 300, "label of 1,"),  # a quote that is left open
        ('x,y\n"1,k1\n' + "2,k2\n" * 300, "cannot read t.csv"),
    ],
)
def test_malformed_tables_are_one_line(folder, text, said):
    (folder / "t.csv").write_text(text)
    assert said in refusal("t.csv")


def test_missing_libraries_say_how_to_install_them(folder, monkeypatch):
    (folder / "t.csv").write_text("x,y\n1,2\n")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    monkeypatch.setitem(sys.modules, "pyarrow.dataset", None)
    assert "pip install 'sotdd[inputs]'" in refusal("t.csv")
