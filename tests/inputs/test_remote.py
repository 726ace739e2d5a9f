"""Files elsewhere: on fsspec's memory file system, and behind a web server on this machine."""

import functools
import http.server
import io
import threading

import fsspec
import numpy as np
import pytest

from inputs.helpers import frame_of, refusal, same
from sotdd import open_dataset
from sotdd.inputs import ParquetBatches


def as_parquet(frame):
    content = io.BytesIO()
    frame.to_parquet(content)
    return content.getvalue()


@pytest.fixture
def files(xy):
    """A small dataset in several forms, as bytes by name."""
    frame, npz = frame_of(xy), io.BytesIO()
    np.savez(npz, X=xy[0], y=xy[1])
    return {
        "t.csv": frame.to_csv(index=False).encode(),
        "t.parquet": as_parquet(frame),
        "t.npz": npz.getvalue(),
        "parts/part-0.parquet": as_parquet(frame.iloc[:100]),
        "parts/part-1.parquet": as_parquet(frame.iloc[100:]),
        "parts/_log.parquet": b"not data",
    }


@pytest.fixture
def memory(files):
    system = fsspec.filesystem("memory")
    for name, content in files.items():
        system.pipe_file(f"/bucket/{name}", content)
    yield "memory://bucket"
    system.rm("/bucket", recursive=True)


@pytest.fixture
def web(files, tmp_path):
    for name in ("t.csv", "t.parquet", "t.npz"):
        (tmp_path / name).write_bytes(files[name])

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *arguments):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=tmp_path)) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()
        thread.join()


def test_a_store_and_the_web(memory, web, xy):
    for name in ("t.csv", "t.parquet", "parts", "parts/*.parquet", "parts/part-*.parquet"):
        same(open_dataset(f"{memory}/{name}", label="species"), xy)
    for name in ("t.csv", "t.parquet", "t.csv?version=3"):
        same(open_dataset(f"{web}/{name}", label="species"), xy)
    for place in (memory, web):
        same(open_dataset(f"{place}/t.npz"), xy)
    batches = ParquetBatches.open(f"{memory}/parts", label="species")
    assert sum(len(labels) for _, labels in batches) == batches.n_points == len(xy[1])


def test_addresses_that_lead_nowhere(memory, web, monkeypatch):
    for address, said in (
        (f"{memory}/no.csv", "no.csv"),
        (f"{memory}/no", "memory://bucket/no"),
        (f"{web}/no.csv", "404"),
        ("klingon://bucket/t.csv", "klingon"),
        ("https://:0/t.csv", "https://:0/t.csv"),
        (f"{memory}/parts/x*.parquet", "x*.parquet"),
    ):
        assert said in refusal(address)

    def without(url):
        raise ImportError("Install gcsfs to access Google Storage")

    monkeypatch.setattr(fsspec.core, "url_to_fs", without)
    assert "Install gcsfs" in refusal("hf://datasets/a/b.csv")
    monkeypatch.setitem(__import__("sys").modules, "fsspec", None)
    assert "pip install fsspec" in refusal("hf://datasets/a/b.csv")
