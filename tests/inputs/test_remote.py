"""Files elsewhere: on fsspec's memory file system, and behind a web server on this machine."""

import functools
import http.server
import io
import threading

import fsspec
import numpy as np
import pytest

import sotdd
from inputs.helpers import frame_of, refusal, same
from sotdd import open_dataset


@pytest.fixture
def files(xy):
    """A small dataset in several forms, as bytes by name."""
    frame = frame_of(xy)
    csv = frame.to_csv(index=False).encode()
    parquet, npz = io.BytesIO(), io.BytesIO()
    frame.to_parquet(parquet)
    np.savez(npz, X=xy[0], y=xy[1])
    return {"t.csv": csv, "t.parquet": parquet.getvalue(), "t.npz": npz.getvalue()}


@pytest.fixture
def memory(files, xy):
    system = fsspec.filesystem("memory")
    frame = frame_of(xy)
    for name, content in files.items():
        system.pipe_file(f"/bucket/{name}", content)
    for number, part in enumerate((frame.iloc[:100], frame.iloc[100:])):
        content = io.BytesIO()
        part.to_parquet(content)
        system.pipe_file(f"/bucket/parts/part-{number}.parquet", content.getvalue())
    system.pipe_file("/bucket/parts/_log.parquet", b"not data")
    yield "memory://bucket"
    system.rm("/bucket", recursive=True)


@pytest.fixture
def web(files, tmp_path):
    for name, content in files.items():
        (tmp_path / name).write_bytes(content)

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *arguments):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=tmp_path)) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()
        thread.join()


@pytest.mark.parametrize("name", ["t.csv", "t.parquet", "parts", "parts/*.parquet", "parts/part-*.parquet"])
def test_a_store(memory, xy, name):
    same(open_dataset(f"{memory}/{name}", label="species"), xy)


def test_a_store_in_every_call(memory, xy):
    same(open_dataset(f"{memory}/t.npz"), xy)
    one = f"{memory}/t.csv::label=species"
    assert sotdd.distance(one, f"{memory}/parts::label=species", n_projections=16).value == 0
    batches = sotdd.inputs.ParquetBatches.open(f"{memory}/parts", label="species")
    assert batches.n_points == len(xy[1])
    assert sum(len(labels) for _, labels in batches) == len(xy[1])


@pytest.mark.parametrize("name", ["t.csv", "t.parquet", "t.npz", "t.csv?version=3"])
def test_the_web(web, xy, name):
    label = {} if name == "t.npz" else {"label": "species"}
    same(open_dataset(f"{web}/{name}", **label), xy)


def test_addresses_that_lead_nowhere(memory, web):
    assert "there is no file memory://bucket/no.csv" in refusal(f"{memory}/no.csv")
    assert "there is no file or folder memory://bucket/no" in refusal(f"{memory}/no")
    assert "there is no file http://127" in refusal(f"{web}/no.csv")
    assert "Protocol not known: klingon" in refusal("klingon://bucket/t.csv")
    assert "cannot read https://:0/t.csv" in refusal("https://:0/t.csv")
    assert "no file matches" in refusal(f"{memory}/parts/x*.parquet")


def test_what_is_not_installed(monkeypatch):
    """Where fsspec lacks what a store needs, or is not there itself, one line says what to install."""

    def without(url):
        raise ImportError("Install gcsfs to access Google Storage")

    monkeypatch.setattr(fsspec.core, "url_to_fs", without)
    assert "needs huggingface_hub: run 'pip install huggingface_hub'" in refusal("hf://datasets/a/b.csv")
    monkeypatch.setitem(__import__("sys").modules, "fsspec", None)
    assert "needs fsspec" in refusal("hf://datasets/a/b.csv")
