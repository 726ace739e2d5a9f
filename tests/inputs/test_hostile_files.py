"""Files that are valid but hostile, or only oddly named: read as what they are, or refused in one line."""

import os
import sqlite3
import stat
import subprocess
import sys
import time
import zipfile
from pathlib import Path

import numpy as np
import pytest

import sotdd
from sotdd.basics.files import write_whole
from sotdd.inputs import sources
from sotdd.inputs.loaders import files

TABLE = "a,b\n" + "1,2\n3,5\n" * 10


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def make_database(*statements):
    with sqlite3.connect("data.db") as database:
        for statement in (
            "CREATE TABLE points (a REAL, b REAL)",
            "INSERT INTO points VALUES (1, 2), (3, 5)",
            *statements,
        ):
            database.execute(statement)


ENDLESS = "CREATE VIEW endless AS WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x FROM n) SELECT max(x) FROM n"


def test_views_of_a_database_are_read_only_if_they_are_named(monkeypatch):
    make_database(ENDLESS, "CREATE VIEW twice AS SELECT 2 * a AS c FROM points")
    assert sotdd.open_dataset("data.db", label=None).columns == ("a", "b")
    assert sotdd.open_dataset("data.db", table="twice", label=None).columns == ("c",)
    monkeypatch.setattr(files, "_MOST_SECONDS", 0.2)
    begin = time.monotonic()
    with pytest.raises(sotdd.SotddError, match=r"data\.db.*interrupted"):
        sotdd.open_dataset("data.db", table="endless", label=None)
    assert time.monotonic() - begin < 20


def test_values_and_rows_of_a_database_are_bounded(monkeypatch):
    make_database("CREATE VIEW large AS SELECT hex(zeroblob(400000000)) AS a")
    with pytest.raises(sotdd.SotddError, match="too big"):
        sotdd.open_dataset("data.db", table="large", label=None)
    monkeypatch.setattr(files, "_MOST_ROWS", 1)
    with pytest.raises(sotdd.SotddError, match="more than 1 rows"):
        sotdd.open_dataset("data.db", table="points", label=None)


def test_a_view_of_duckdb_reads_no_other_file():
    duckdb = pytest.importorskip("duckdb")
    Path("secret.csv").write_text(TABLE)
    with duckdb.connect("data.duckdb") as database:
        database.execute("CREATE TABLE points AS SELECT * FROM (VALUES (1.0, 2.0), (3.0, 5.0)) AS t(a, b)")
        database.execute(f"CREATE VIEW leak AS SELECT * FROM read_csv('{Path('secret.csv').absolute()}')")
    assert sotdd.open_dataset("data.duckdb", label=None).columns == ("a", "b")
    with pytest.raises(sotdd.SotddError, match="disabled"):
        sotdd.open_dataset("data.duckdb", table="leak", label=None)


@pytest.mark.parametrize("cell", ["XFD1048576", "CV1048576"])
def test_a_small_workbook_with_a_cell_far_out_is_refused_before_it_is_read(cell):
    openpyxl = pytest.importorskip("openpyxl")
    pytest.importorskip("python_calamine")
    book = openpyxl.Workbook()
    for row in (["a", "b"], [1, 2], [3, 5]):
        book.active.append(row)
    book.save("book.xlsx")
    assert sotdd.open_dataset("book.xlsx", label=None).n_points == 2
    book.active[cell] = 1
    book.save("book.xlsx")
    with pytest.raises(sotdd.SotddError, match=r"1,048,576 × (16,384|100) cells: expected at most"):
        sotdd.open_dataset("book.xlsx", label=None)


def test_a_path_that_exists_is_that_path():
    Path("good.csv").write_text(TABLE)
    Path("good.csv::name=bad.csv").write_text(TABLE.replace("5", "9"))
    assert sotdd.open_dataset("good.csv::name=bad.csv", label=None).features.max() == 9
    assert sotdd.open_dataset("good.csv::name=other", label=None).features.max() == 5
    found = sotdd.open_dataset("good.csv::name=bad.csv::max_points=3", label=None)
    assert (found.n_points, found.name) == (3, "good.csv::name=bad.csv::max_points=3")
    assert sources.write_source("good.csv::name=bad.csv", label="b") == "good.csv::name=bad.csv::label=b"


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_a_name_with_a_colon_is_no_address(suffix):
    table = pytest.importorskip("pyarrow.csv").read_csv
    Path("plain.csv").write_text(TABLE)
    if suffix == ".parquet":
        pytest.importorskip("pyarrow.parquet").write_table(table("plain.csv"), "plain.parquet")
    os.rename(f"plain{suffix}", f"word:x{suffix}")
    assert sotdd.open_dataset(f"word:x{suffix}", label=None).n_points == 20


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no pipes")
def test_pipes_are_refused_and_not_waited_for():
    pillow = pytest.importorskip("PIL.Image")
    for name in ("cat", "dog"):
        Path("photos", name).mkdir(parents=True)
        pillow.fromarray(np.zeros((4, 4), np.uint8)).save(f"photos/{name}/1.png")
    os.mkfifo("photos/cat/2.png")
    os.mkfifo("labels.npy")
    np.save("x.npy", np.eye(3))
    for source in ("photos", "x.npy::label=labels.npy"):
        code = f"import sotdd\ntry:\n sotdd.open_dataset({source!r})\nexcept sotdd.SotddError as error:\n print(error)"
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
        assert "is no regular file" in done.stdout


def test_a_link_back_to_its_folder_is_no_class():
    pillow = pytest.importorskip("PIL.Image")
    for name in ("cat", "dog"):
        Path("photos", name).mkdir(parents=True)
        pillow.fromarray(np.zeros((4, 4), np.uint8)).save(f"photos/{name}/1.png")
    Path("photos/loop").symlink_to(".")
    found = sotdd.open_dataset("photos")
    assert (found.classes, found.n_points) == (("cat", "dog"), 2)


def test_opening_an_archive_leaves_nothing_behind():
    np.savez("a.npz", X=np.eye(3), y=[0, 1, 1])
    left = set(Path(sources.temporary_folder().name).iterdir())
    sotdd.open_dataset("a.npz")
    assert set(Path(sources.temporary_folder().name).iterdir()) == left


@pytest.mark.skipif(os.name == "nt", reason="modes are of POSIX")
def test_a_file_that_is_written_again_keeps_its_mode():
    x = np.random.default_rng(0).normal(size=(50, 2))
    sotdd.DriftReference.fit(x).save("new.ref")
    assert stat.S_IMODE(os.stat("new.ref").st_mode) == 0o600  # it holds rows
    write_whole("page.html", b"1")
    os.chmod("page.html", 0o640)
    write_whole("page.html", b"2")
    assert stat.S_IMODE(os.stat("page.html").st_mode) == 0o640


def test_workbooks_are_looked_through_whatever_the_blocks(monkeypatch):
    """A reference to a cell may lie across two blocks."""
    monkeypatch.setattr(files, "_BLOCK_BYTES", 7)
    with zipfile.ZipFile("book.xlsx", "w") as archive:
        archive.writestr("xl/worksheets/sheet1.xml", '<row r="1"><c r="A1"/></row>\n<c r="XFD1048576"/>' + " " * 99)
    with pytest.raises(sotdd.SotddError, match="1,048,576"):
        sotdd.open_dataset("book.xlsx", label=None)
