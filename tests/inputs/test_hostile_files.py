"""Files that are valid but hostile, or only oddly named: read as what they are, or refused in one line."""

import os
import sqlite3
import stat
import subprocess
import sys
import time
import warnings
import zipfile
from dataclasses import replace
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


def test_opening_leaves_nothing_behind_and_removes_what_kills_left(folder):
    """Copies are gone when a dataset is open; those of a killed process when the next one makes one."""
    pytest.importorskip("pyarrow")
    np.savez("a.npz", X=np.eye(3), y=[0, 1, 1])
    Path("wide.csv").write_text(TABLE, encoding="utf-16")
    code = (
        "import os, sotdd, tempfile; from pathlib import Path; from sotdd.inputs import sources\n"
        "sotdd.open_dataset('a.npz'); sotdd.open_dataset('wide.csv', label=None)\n"
        "print([len(list(one.iterdir())) for one in Path(tempfile.gettempdir()).glob('sotdd-copies-*')], flush=True)\n"
        "os.kill(os.getpid(), 9)"
    )
    for _ in range(2):  # of the first, only the lock is left, which the second removes
        environment = os.environ | {"TMPDIR": str(folder / "copies")}
        (folder / "copies").mkdir(exist_ok=True)
        done = subprocess.run([sys.executable, "-c", code], env=environment, stdout=subprocess.PIPE, check=False)
        assert done.stdout.split() == [b"[1]"]
        assert len(list(Path("copies").iterdir())) == 1


def test_an_array_that_an_archive_has_twice_is_refused():
    with warnings.catch_warnings(action="ignore"), zipfile.ZipFile("twice.npz", "w") as archive:
        for value in (0, 1):
            np.save("x.npy", np.full((3, 2), value))
            archive.write("x.npy", "X.npy")
    with pytest.raises(sotdd.SotddError, match="two arrays 'X'"):
        sotdd.open_dataset("twice.npz", label=None)


def test_a_file_that_claims_very_many_features_is_refused_before_anything_is_drawn(monkeypatch):
    made = sotdd.sketch(
        np.eye(3), sotdd.Projections.fit([np.eye(3)], scale=None, tilt=False, n_projections=8), name="small"
    )
    settings = {**made.recipe, "n_features": 10**7}
    replace(made, through=replace(made.through, settings=settings, known=None), controls=None).save("small.sotdd")
    monkeypatch.setattr(sotdd.Projections, "restore", lambda *_: pytest.fail("drawn"))
    with pytest.raises(sotdd.SotddError, match="has 3 features but the sketch is of 10000000"):
        sotdd.distance("small.sotdd", np.eye(3))


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


def many(*lines):
    """A few lines, ten times."""
    return "\n".join(lines * 10)


# What is valid, if odd: its columns and its first row; or what is said of it.
TEXTS = {
    "bom.csv": ("\ufeff" + TABLE, ("a", "b"), [1, 2]),
    "returns.csv": (TABLE.replace("\n", "\r"), ("a", "b"), [1, 2]),
    "blanks.csv": (TABLE.replace("\n", "\n\n"), ("a", "b"), [1, 2]),
    "ends.csv": (TABLE.replace("\n", ",\n"), ("a", "b"), [1, 2]),
    "cases.csv": (TABLE.replace("b", "A"), ("a", "A"), [1, 2]),
    "thousands.csv": ("a,b\n" + many('"1,000",2', '"3,000",5'), ("a", "b"), [1000, 2]),
    "shares.csv": ("a,b\n" + many("10%,2", "12%,5"), ("a", "b"), [10, 2]),
    "integers.csv": ("a,b\n" + many(f"{2**70},2", "3,5"), ("a", "b"), [2**70, 2]),
    "hex.csv": ("a,b\n" + many("0x10,2", "0x11,5"), ("a=0x10", "a=0x11", "b"), [1, 0, 2]),
    "formulas.csv": ("a,b\n" + many("=1+1,2", "@x,5"), ("a==1+1", "a=@x", "b"), [1, 0, 2]),
    "digits.csv": ("a,b\n" + many("١,2", "٢,5"), ("a=١", "a=٢", "b"), [1, 0, 2]),
    "zero.csv": (TABLE.replace("5", "5\0", 1), ("a", "b=2", "b=5", "b=5\0"), [1, 1, 0, 0]),
    "twice.csv": (TABLE.replace("b", "a"), "multiple columns named a", None),
    "infinite.csv": ("a,b\n" + many("inf,2", "3,5"), "NaN or infinite", None),
    "beyond.csv": ("a,b\n" + many("1e400,2", "3,5"), "NaN or infinite", None),
    "ragged.csv": ("a,b\n" + many("1,2", "3"), "Expected 2 columns", None),
    "late.jsonl": (many('{"a": 1}', '{"a": 2, "z": 3}'), ("a", "z", "z is missing"), [1, 3, 1]),
    "nan.jsonl": (many('{"a": NaN, "b": 3}', '{"a": 4, "b": 5}'), ("a", "a is missing", "b"), [4, 1, 3]),
    "twice.jsonl": (many('{"a": 1, "a": 2}'), "specified twice", None),
    "beyond.jsonl": (many('{"a": 1e999}'), "too big", None),
    "deep.jsonl": ("[" * 100_000 + "]" * 100_000, "cannot read", None),
    "mixed.jsonl": (many('{"a": 1}', '{"a": "x"}'), "from number to string", None),
}


@pytest.mark.parametrize("name", TEXTS)
def test_odd_texts_are_read_as_what_they_are(name):
    pytest.importorskip("pyarrow")
    content, columns, row = TEXTS[name]
    Path(name).write_bytes(content.encode())
    if row is None:
        with pytest.raises(sotdd.SotddError, match=columns) as refused:
            sotdd.open_dataset(name, label=None)
        assert len(str(refused.value)) < 1000
        assert str(refused.value).isprintable()
        return
    found = sotdd.open_dataset(name, label=None)
    assert (found.columns, np.asarray(found.features)[0].tolist()) == (columns, row)


def test_odd_types_of_columns_are_read_by_their_value_or_left_out():
    """The largest integers and decimals, half precision, columns of nothing, of times, of bytes and of records."""
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    columns = {
        "large": arrow.array([2**64 - 1, 1] * 10, arrow.uint64()),
        "half": arrow.array(np.array([65504, 1] * 10, np.float16)),
        "decimal": arrow.array([10**37, 1] * 10, arrow.decimal128(38, 0)),
        "nothing": arrow.nulls(20),
        "time": arrow.array([1, 2] * 10, arrow.timestamp("ns", "Europe/Rome")),
        "span": arrow.array([1, 2] * 10, arrow.duration("us")),
        "bytes": [b"\xff", b"a"] * 10,
        "record": [{"x": 1}, {"x": 2}] * 10,
    }
    parquet.write_table(arrow.table(columns), "odd.parquet")
    found = sotdd.open_dataset("odd.parquet", label=None)
    assert found.columns == ("large", "half", "decimal")
    assert np.asarray(found.features)[0].tolist() == [2.0**64, 65504, 1e37]
    parquet.write_table(arrow.Table.from_arrays([arrow.array([1, 2])] * 2, names=["a", "a"]), "twice.parquet")
    with pytest.raises(sotdd.SotddError, match="two columns named 'a'"):
        sotdd.open_dataset("twice.parquet", label=None)


def test_odd_arrays_are_read_by_their_value_or_refused():
    x = np.random.default_rng(0).normal(size=(20, 2))
    for same in (x.astype(">f8"), np.asfortranarray(x), x.astype(np.longdouble)):
        np.save("x.npy", same)
        np.testing.assert_array_equal(np.asarray(sotdd.open_dataset("x.npy", label=None).features, float), x)
    records = np.array([(1, 2.0)] * 20, [("a", "i4"), ("b", "f8")])
    for odd in (x.astype(complex), records, np.array([["2020-01-01"]] * 9, "M8[D]"), x[:0], x[:, :0], x[0, 0]):
        np.save("x.npy", odd)
        with pytest.raises(sotdd.SotddError, match="expected"):
            sotdd.open_dataset("x.npy", label=None)


def test_odd_names_in_a_database_are_names():
    with sqlite3.connect("odd.db") as database:
        database.execute('CREATE TABLE "t""; DROP TABLE t" ("a b" REAL, "select" REAL)')
        database.executemany('INSERT INTO "t""; DROP TABLE t" VALUES (?, ?)', [(1, 2), (3, 5)])
    for source in ("odd.db", 'odd.db::table=t"; DROP TABLE t'):
        assert sotdd.open_dataset(source, label=None).columns == ("a b", "select")


def test_a_large_value_that_many_rows_refer_to_is_one_line():
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    texts = arrow.DictionaryArray.from_arrays(arrow.array([0] * 3000, arrow.int32()), arrow.array(["x" * 10**6]))
    parquet.write_table(arrow.table({"a": texts, "b": np.arange(3000.0)}), "large.parquet")
    with pytest.raises(sotdd.SotddError, match=r"a column of text would take 3\.0 GB"):
        sotdd.open_dataset("large.parquet", label=None)
