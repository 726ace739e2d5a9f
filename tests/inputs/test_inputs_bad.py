"""Bad input: truncated, empty, wrong-typed, mixed, huge and hostile files; one line each, and what to do."""

import io
import os
import subprocess
import sys
import threading
import zipfile

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import parquet as pq

import sotdd
from sotdd import open_dataset
from sotdd.engines.comparison import compare
from sotdd.engines.torch.engine import TorchEngine
from sotdd.inputs.grouped import GroupCache, GroupedRows


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def read(*arguments, **options):
    """Open a source and read all of it."""
    data = open_dataset(*arguments, **options)
    for block in data.blocks():
        data.rows(block)
    return data


def refusal(*arguments, **options):
    """What is said, which is one line."""
    with pytest.raises(sotdd.SotddError) as caught:
        read(*arguments, **options)
    said = str(caught.value)
    assert "\n" not in said
    return said


# ------------------------------------------------------------------ files of every kind, damaged


def write(kind):
    """A good file of each kind."""
    x = np.random.default_rng(0).normal(size=(200, 3))
    y = np.arange(200) % 2
    frame = pd.DataFrame({"a": x[:, 0], "b": x[:, 1], "label": y})
    path = f"good.{kind}"
    if kind == "npz":
        np.savez_compressed(path, X=x, y=y)
    elif kind == "npy":
        np.save(path, x)
        np.save("y.npy", y)
    elif kind in ("csv", "csv.gz"):
        frame.to_csv(path, index=False)
    elif kind == "parquet":
        frame.to_parquet(path, row_group_size=50)
    elif kind == "arrow":
        pl.from_pandas(frame).write_ipc(path)
    return path


KINDS = ["npz", "npy", "csv", "csv.gz", "parquet", "arrow"]


def source(kind, path):
    return f"{path}::label=y.npy" if kind == "npy" else path


@pytest.mark.parametrize("kind", KINDS)
def test_good_files_open(folder, kind):
    assert open_dataset(source(kind, write(kind))).n_points == 200


@pytest.mark.parametrize("kind", KINDS)
def test_missing_empty_truncated_and_foreign_files(folder, kind):
    path = write(kind)
    content = folder.joinpath(path).read_bytes()
    assert "there is no file" in refusal(source(kind, f"missing.{kind}"))
    (folder / path).write_bytes(b"")
    assert path in refusal(source(kind, path))
    (folder / path).write_bytes(bytes(range(256)) * 20)
    assert path in refusal(source(kind, path))
    if kind != "csv":  # half a table is a table
        (folder / path).write_bytes(content[: len(content) // 2])
        assert path in refusal(source(kind, path))


@pytest.mark.parametrize("kind", KINDS)
def test_bytes_changed_at_random(folder, kind):
    """Rows come out, or one line; never another error."""
    rng = np.random.default_rng(1)
    path = write(kind)
    whole = np.frombuffer((folder / path).read_bytes(), np.uint8)
    refused, lines = 0, set()
    for _ in range(60):
        broken = whole.copy()
        places = np.concatenate([rng.integers(len(whole), size=2), rng.integers(min(200, len(whole)), size=1)])
        broken[places] = rng.integers(256, size=3)
        (folder / path).write_bytes(broken.tobytes())
        try:
            read(source(kind, path))
        except sotdd.SotddError as error:
            refused += 1
            lines.update(str(error).splitlines()[1:])
    assert refused > 3
    assert not lines


# ------------------------------------------------------------------ tables


@pytest.mark.parametrize("convert", [pd.DataFrame, pl.DataFrame, pa.table], ids=["pandas", "polars", "arrow"])
@pytest.mark.parametrize("stored", [False, True])
def test_tables_that_leave_a_question(folder, convert, stored):
    def table(columns):
        made = convert(columns)
        if not stored:
            return made
        pl.DataFrame(columns, strict=False).write_parquet("t.parquet")
        return "t.parquet"

    assert "'x' (numbers), 'z' (numbers), of which none is named label" in refusal(table({"x": [1.0], "z": [2.0]}))
    assert "'y' and 'target' are named" in refusal(table({"x": [1.0], "y": [2], "target": [3]}))
    assert "has no column 'kind', only 'x' (numbers)" in refusal(table({"x": [1.0]}), label="kind")
    assert "has no column 'z'" in refusal(table({"x": [1.0], "y": [1]}), features="z")
    assert "no column beside the labels" in refusal(table({"y": [1]}))
    said = refusal(table({"x": [1.0], "note": ["a"], "y": [1]}))
    assert "'note' (text): name the features with features=COLUMN, or pass encoder=" in said
    assert "'note' of" in refusal(table({"note": ["a"], "y": [1]}))
    assert "name the features with features=" in refusal(table({"x": [1.0], "v": [[1.0, 2.0]], "y": [1]}))
    assert "have 1 to 2 entries" in refusal(table({"v": [[1.0, 2.0], [1.0]], "y": [1, 2]}))
    assert "column 'x' of" in refusal(table({"x": [1.0, None], "y": [1, 2]}))
    assert "NaN or infinite" in refusal(table({"x": [1.0, float("inf")], "y": [1, 2]}))
    assert "list" in refusal(table({"x": [1.0], "y": [[1]]}))
    assert "has no rows" in refusal(convert({"x": pa.array([], pa.float64()), "y": pa.array([], pa.int64())})
                                    if convert is pa.table else convert({"x": [], "y": []}))  # fmt: skip


def test_frames_with_one_name_twice():
    assert "cannot read the table" in refusal(pd.DataFrame([[1.0, 2.0]], columns=["x", "x"]), name="twice")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("x,y\n1,2\n3\n", "cannot read t.csv"),
        ("x,y\n1,2\nabc,3\n", "text"),
        ("x,y\n" + "1,2\n" * 2_000_000 + "abc,3\n", "cannot read t.csv"),
        ("x,y\n", "no "),
        ("x,x,y\n1,2,3\n", "two columns named 'x'"),
        ("\n\n\n", "cannot read t.csv"),
        ("1,2\n3,4\n", "name the labels with label="),
        ("x,y\n1,2\n,3\n", "column 'x' of t.csv has 1 missing value"),
        ("x,y\nnan,2\n4,3\n", "column 'x' of t.csv has 1 missing value"),
    ],
)
def test_bad_tables_as_text(folder, text, said):
    (folder / "t.csv").write_text(text)
    assert said in refusal("t.csv")


def test_parquet_files_that_do_not_belong_together(folder):
    pq.write_table(pa.table({"x": [1.0], "y": [1]}), "p-1.parquet")
    pq.write_table(pa.table({"z": [1.0], "y": [1]}), "p-2.parquet")
    assert "p-2.parquet has no column 'x', which p-1.parquet has" in refusal("p-*.parquet")
    pq.write_table(pa.table({"x": ["a"], "y": [1]}), "p-2.parquet")
    assert "column 'x' holds text in p-2.parquet but numbers in p-1.parquet" in refusal("p-*.parquet")
    pq.write_table(pa.table({"x": pa.array([2], pa.int8()), "y": pa.array([2], pa.int16())}), "p-2.parquet")
    assert open_dataset("p-*.parquet").rows(slice(None)).tolist() == [[1.0], [2.0]]  # one dtype for all
    pq.write_table(pa.table({"v": [[1.0, 2.0]], "y": [1]}), "q-1.parquet")
    pq.write_table(pa.table({"v": [[1.0]], "y": [1]}), "q-2.parquet")
    assert "expected one length" in refusal("q-*.parquet")
    assert "no file matches" in refusal("r-*.parquet")
    (folder / "p-3.csv").write_text("x,y\n1,2\n")
    assert "p-3.csv is not a Parquet file" in refusal("p-*")


def test_a_page_damaged_further_down_is_found_when_it_is_read(folder):
    """Opening reads the footer and the labels only."""
    table = pa.table({"x": np.random.default_rng(0).normal(size=20_000), "y": np.arange(20_000) % 3})
    pq.write_table(table, "t.parquet", row_group_size=5000, compression="snappy", use_dictionary=False)
    offset = pq.ParquetFile("t.parquet").metadata.row_group(2).column(0).data_page_offset
    with open("t.parquet", "r+b") as file:
        file.seek(offset)
        file.write(b"\xff" * 2000)
    data = open_dataset("t.parquet")
    data.rows(slice(0, 100))
    with pytest.raises(sotdd.SotddError, match=r"cannot read t\.parquet") as caught:
        data.rows(slice(10_000, 10_100))
    assert "\n" not in str(caught.value)


def test_streamed_values_that_are_not_finite_are_found_when_read(folder):
    x = np.zeros((1000, 3), np.float32)
    x[700, 1] = np.nan
    np.save("x.npy", x)
    data = open_dataset("x.npy", label=None)
    with pytest.raises(sotdd.SotddError, match=r"the first \(nan\) in row 700, feature 1"):
        sotdd.distance(data, np.zeros((5, 3)), n_projections=64)
    sample = open_dataset("x.npy", label=None, max_points=999)
    with pytest.raises(sotdd.SotddError, match="in row 700"):
        np.asarray(sample.features)


# ------------------------------------------------------------------ NumPy files, hostile


def npy_bytes(shape, dtype="<f8", data=b""):
    file = io.BytesIO()
    np.lib.format.write_array_header_1_0(file, {"descr": dtype, "fortran_order": False, "shape": shape})
    return file.getvalue() + data


def test_headers_that_lie(folder):
    for shape, data in [((10, 3), b"\0" * 100), ((10**9, 10**6), b"\0" * 800), ((2, 3), b"\0" * 480), ((), b"\0" * 8)]:
        (folder / "x.npy").write_bytes(npy_bytes(shape, data=data))
        said = refusal("x.npy", label=None)
        assert "x.npy" in said
        with zipfile.ZipFile("x.npz", "w") as archive:
            archive.writestr("X.npy", npy_bytes(shape, data=data))
        assert "x.npz" in refusal("x.npz")
    assert "declares 8,000,000,000,000,000 bytes" in refusal_of(folder, (10**9, 10**6))


def refusal_of(folder, shape):
    (folder / "x.npy").write_bytes(npy_bytes(shape))
    return refusal("x.npy", label=None)


def test_zip_bombs_are_refused(folder):
    """Two gigabytes of zeros in two megabytes: the header is honest, the ratio is not that of data."""
    size = 2 << 30
    block = b"\0" * (1 << 24)
    with (
        zipfile.ZipFile("bomb.npz", "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive,
        archive.open("X.npy", "w", force_zip64=True) as file,
    ):
        file.write(npy_bytes((size // 8, 1)))
        for _ in range(size // len(block)):
            file.write(block)
    assert os.path.getsize("bomb.npz") < 32 << 20
    assert "would become 2.1 GB, as a zip bomb does" in refusal("bomb.npz")


def test_archives_that_do_not_fit_are_refused_before_they_are_read(folder, monkeypatch):
    from sotdd.inputs.loaders import npy

    np.savez("x.npz", X=np.zeros((1000, 1000)))
    monkeypatch.setattr(npy, "available_bytes", lambda: 10**6)
    assert "shape (1000, 1000) of float64, 0.0 GB" in refusal("x.npz")


def test_pickles_are_never_loaded(folder):
    """What a pickle would run is not run."""

    class Trap:
        def __reduce__(self):
            return os.mkdir, (str(folder / "trapped"),)

    np.save("x.npy", np.array([Trap()], object), allow_pickle=True)
    np.savez("x.npz", X=np.array([Trap()], object), y=[1])
    np.savez("y.npz", X=[[1.0]], y=np.array([Trap()], object))
    np.save("good.npy", np.zeros((1, 2)))
    (folder / "raw.npy").write_bytes(__import__("pickle").dumps(Trap()))
    for text in ["x.npy::label=", "x.npz", "y.npz", "good.npy::label=x.npy", "raw.npy::label="]:
        assert "objects" in refusal(text) or "cannot read" in refusal(text)
    assert not (folder / "trapped").exists()


def test_wrong_types_in_arrays(folder):
    np.save("text.npy", np.array(["a", "b"]))
    assert "strings" in refusal("text.npy", label=None)
    np.save("complex.npy", np.zeros((2, 2), complex))
    assert "complex" in refusal("complex.npy", label=None)
    np.save("none.npy", np.zeros((0, 3)))
    assert "at least one point" in refusal("none.npy", label=None)
    np.save("x.npy", np.zeros((5, 3)))
    np.save("y.npy", np.zeros(4, int))
    assert "4 entries but features have 5 rows" in refusal("x.npy::label=y.npy")
    assert "name the file with the labels, x.npy::label=LABELS.npy" in refusal("x.npy")
    assert "there is no file nowhere.npy" in refusal("x.npy::label=nowhere.npy")


# ------------------------------------------------------------------ large files


# Of this process alone: what getrusage tells of a new process begins with the peak of the one that started it.
PEAK = """
def peak():
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("VmHWM")) / 1024
"""


def test_five_gigabytes_open_at_once_and_stream(folder):
    """A sparse file takes no room on the disk; memory is that of a fresh process, read from the kernel."""
    if not sys.platform.startswith("linux"):
        pytest.skip("sparse files and peak memory are read as Linux has them")
    rows, columns = 6_400_000, 200  # 5.12 GB of float32
    header = npy_bytes((rows, columns), "<f4")
    try:
        with open("huge.npy", "wb") as file:
            file.write(header)
            file.truncate(len(header) + 4 * rows * columns)
    except OSError as error:
        pytest.skip(f"this disk has no room for a sparse file ({error})")
    code = f"""{PEAK}
import sotdd
from sotdd import open_dataset
before = peak()
data = open_dataset("huge.npy", label=None)
opened = peak() - before
for block in data.blocks()[:: 5]:
    data.rows(block)
sample = open_dataset("huge.npy", label=None, max_points=100_000)
for block in sample.blocks():
    sample.rows(block)
print(data.n_points, opened, peak() - before)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    points, opened, streamed = map(float, done.stdout.split())
    assert points == rows
    assert opened < 100  # MB: the codes of so many points take 26
    assert streamed < 250


def test_a_distance_of_a_gigabyte_in_bounded_memory(folder):
    if not sys.platform.startswith("linux"):
        pytest.skip("peak memory is read as Linux has it")
    rows, columns = 50_000, 5000  # 1 GB of float32
    header = npy_bytes((rows, columns), "<f4")
    with open("large.npy", "wb") as file:
        file.write(header)
        file.truncate(len(header) + 4 * rows * columns)
        file.seek(len(header) + 4 * columns * 100)
        file.write(np.ones(columns, "<f4").tobytes())
    code = f"""{PEAK}
import sotdd, numpy as np
small = np.zeros((10, 5000), np.float32)
sotdd.distance(small, small + 1, n_projections=64)  # loads and compiles
before = peak()
found = sotdd.distance("large.npy::label=", small, n_projections=64)
print(found.value > 0, peak() - before)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    positive, grown = done.stdout.split()
    assert positive == "True"
    assert float(grown) < 300  # MB


# ------------------------------------------------------------------ rows read in groups


def grouped(sizes, log, fail=()):
    edges = np.concatenate([[0], np.cumsum(sizes)])

    def decode(group):
        log.append(group)
        if group in fail:
            raise sotdd.SotddError("broken")
        return np.arange(edges[group], edges[group + 1], dtype=float)[:, None]

    return GroupedRows("g", sizes, (1,), float, decode)


@given(st.lists(st.integers(0, 9), min_size=1, max_size=8), st.data())
@settings(max_examples=100, deadline=None)
def test_any_rows_of_any_groups(sizes, data):
    rows = grouped(sizes, [])
    n = sum(sizes)
    start = data.draw(st.integers(0, n))
    stop = data.draw(st.integers(start, n))
    assert rows[start:stop][:, 0].tolist() == list(range(start, stop))
    if n:
        picked = data.draw(st.lists(st.integers(0, n - 1), max_size=20))
        assert rows[np.array(picked, int)][:, 0].tolist() == picked
        assert rows[::-1][:, 0].tolist() == list(range(n))[::-1]


def test_groups_are_decoded_once_by_many_threads():
    log = []
    rows = grouped([1000] * 20, log)
    barrier = threading.Barrier(8)
    wrong = []

    def work(seed):
        barrier.wait()
        starts = np.random.default_rng(seed).integers(0, 19_000, size=200).tolist()
        wrong.extend(at for at in starts if rows[at : at + 900][:, 0].tolist() != list(range(at, at + 900)))

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    assert sorted(log) == sorted(set(log))


def test_the_cache_stays_within_its_budget():
    cache = GroupCache(budget=10_000)
    made = []
    for _ in range(3):
        for key in range(20):
            cache.get((0, key), lambda key=key: made.append(key) or np.zeros(100))  # 800 bytes each, 12 are held
            assert cache._bytes <= 10_000
    assert made[:20] == list(range(20))
    assert len(made) < 45  # rounds after the first find about half of it; the oldest first would find nothing
    cache.get((1, 0), lambda: np.zeros(10_000))  # larger than the budget: kept alone
    assert cache._bytes == 80_000
    cache.forget(1)
    assert cache._bytes == 0


def test_a_group_that_fails_fails_again_and_harms_no_other():
    rows = grouped([5, 5], [], fail={1})
    for _ in range(2):
        with pytest.raises(sotdd.SotddError, match="broken"):
            rows[3:7]
    assert len(rows[:5]) == 5


def test_distances_of_streamed_data_are_those_of_arrays(folder, rng):
    x = rng.normal(size=(3000, 6)).astype(np.float32)
    y = rng.integers(4, size=3000)
    pq.write_table(pa.table({**{f"x{j}": x[:, j] for j in range(6)}, "y": y}), "t.parquet", row_group_size=700)
    np.save("x.npy", x)
    np.save("y.npy", y)
    other = rng.normal(1, 1, size=(500, 6))
    expected = {
        scale: sotdd.distance((x, y), other, n_projections=256, scale=scale).value for scale in ("pooled", "features")
    }
    for text in ["t.parquet", "x.npy::label=y.npy"]:
        for scale, value in expected.items():
            assert sotdd.distance(text, other, n_projections=256, scale=scale).value == value
        assert (
            sotdd.peers.otdd(text, other, max_samples=50).value == sotdd.peers.otdd((x, y), other, max_samples=50).value
        )
    data = [open_dataset("x.npy::label=y.npy"), open_dataset("t.parquet"), open_dataset(other)]
    projections = sotdd.Projections.fit(data, n_projections=64)
    both = [compare(data, [(0, 1), (1, 2)], projections, 2, engine=engine) for engine in (None, TorchEngine("cpu"))]
    assert both[0][1, 2].value == pytest.approx(both[1][1, 2].value, rel=1e-5)
    span = sotdd.onto_span({"a": open_dataset("x.npy::label=y.npy", max_points=2), "b": x[:3]})
    assert span.datasets["a"].n_points == 2


# ------------------------------------------------------------------ objects


class Items(torch.utils.data.Dataset):
    """Whatever items it is given."""

    def __init__(self, *items):
        self.items = items

    def __len__(self):
        return len(self.items)

    def __getitem__(self, row):
        return self.items[row]


@pytest.mark.parametrize(
    ("items", "said"),
    [
        ([], "has no points"),
        ([(torch.zeros(2), 0), (torch.zeros(3), 1)], "point 1 of dataset 'data' has shape (3,) but others (2,)"),
        ([(torch.zeros(2, 2), 0), (torch.zeros(3, 2), 1)], "image_size="),
        ([(torch.zeros(2), 0, 1)], "have 3 parts: expected (point, label)"),
        ([torch.zeros(2)], "are a Tensor: expected (point, label)"),
        ([({}, 0)], "expected numbers"),
        ([(None, 0)], "expected numbers"),
        ([{"a": 1.0, "b": 2.0}], "name the labels with label="),
        ([{"a": 1.0, "b": 2.0, "label": 0}], "name one with features="),
        ([(torch.tensor([float("nan")]), 0)], "NaN or infinite"),
        ([("a text", 0)], "encoder="),
        ([(torch.zeros(2), None)], "1 label that is missing"),
        ([(torch.zeros(2), [1, 2])], "hold a list"),
    ],
)
def test_torch_items_that_are_no_points(items, said):
    assert said in refusal(Items(*items))


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"label": 1.5}, "label is 1.5"),
        ({"features": []}, "features is a list"),
        ({"features": "x"}, "leave it out"),
        ({"label": "x"}, "leave it out"),
        ({"split": "train"}, "leave it out"),
        ({"broken": "skip"}, "leave it out"),
        ({"broken": "mend"}, "broken is 'mend'"),
        ({"image_size": (1, 2, 3)}, "image_size is a tuple"),
        ({"image_size": 0}, "image_size is 0"),
        ({"image_mode": "CMYK"}, "image_mode is 'CMYK'"),
        ({"transform": 3}, "transform is 3"),
        ({"bins": 0}, "bins is 0"),
        ({"max_points": 0}, "max_points is 0"),
        ({"max_points": 2.5}, "max_points is 2.5"),
        ({"seed": -1}, "seed is -1"),
        ({"drop_missing": "yes"}, "drop_missing is 'yes'"),
        ({"encoder_name": "x"}, "no encoder"),
    ],
)
def test_options_that_mean_nothing(options, said):
    assert said in refusal((np.eye(3), [0, 1, 2]), **options)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "has no path"),
        ("::label=y", "has no path"),
        ("x.csv::label", "cannot read 'label'"),
        ("x.csv::colour=red", "write options as FILE::features=NAME,label=NAME"),
        ("x.csv::max_points=many", "expected a whole number"),
        ("x.csv::image_size=3xy", "expected a whole number"),
        ("x.csv::drop_missing=maybe", "expected true or false"),
        ("nowhere.csv", "there is no file nowhere.csv"),
        ("nowhere/", "there is no file nowhere"),
        ("hf:nowhere", "there is no file nowhere"),
        ("hf:.", "expected one written by save_to_disk"),
        ("a\0b", "there is no file"),
        ("a" * 5000, "there is no file"),
    ],
)
def test_source_texts_that_cannot_be_read(folder, text, said):
    assert said in refusal(text)


def test_saved_folders_that_are_damaged(folder):
    hub = pytest.importorskip("datasets")
    hub.Dataset.from_dict({"x": [1.0, 2.0], "label": [0, 1]}).save_to_disk("saved")
    for path in (folder / "saved").glob("*.arrow"):
        path.write_bytes(path.read_bytes()[:50])
    assert "cannot read saved" in refusal("hf:saved")
    empty = hub.Dataset.from_dict({"x": [], "label": []})
    assert "no rows" in refusal(empty)


# Folders by a lucky guess are left out: "/" would be searched for images.
TEXTS = st.text().filter(lambda text: text.strip("/.~") != "")


@given(st.one_of(TEXTS, st.binary(), st.lists(st.text()), st.dictionaries(st.text(), st.integers()), st.none()))
@settings(max_examples=200, deadline=None)
def test_odd_objects_are_a_dataset_or_refused(thing):
    try:
        data = open_dataset(thing)
    except sotdd.SotddError:
        return
    assert data.n_points >= 1


def test_the_command_line_says_one_line(folder):
    np.savez("good.npz", X=np.eye(3), y=[0, 1, 2])
    (folder / "bad.parquet").write_bytes(b"PAR1")
    (folder / "t.csv").write_text("a,b\n1,2\n")
    for text in ["bad.parquet", "t.csv", "nowhere.arrow", "hf:nowhere", "good.npz::label=z"]:
        done = subprocess.run(
            [sys.executable, "-m", "sotdd", "distance", "good.npz", text], capture_output=True, text=True, check=False
        )
        assert done.returncode == 2
        assert done.stdout == ""
        assert len(done.stderr.splitlines()) == 1
        assert done.stderr.startswith("sotdd: ")


def test_missing_libraries_say_how_to_install_them(folder):
    (folder / "t.csv").write_text("x,y\n1,2\n")
    code = "import sys; sys.modules['pyarrow'] = None; import sotdd; sotdd.open_dataset('t.csv')"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "which is not installed: pip install 'sotdd[inputs]'" in done.stderr.splitlines()[-1]
