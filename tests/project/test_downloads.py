"""Datasets are downloaded by name from a real server: whole and checked, or not at all; and made into what is read."""

import functools
import gzip
import hashlib
import http.server
import threading

import numpy as np
import pytest
from experiments.lib import data, files

BODY = np.random.default_rng(0).bytes(300_000)


class Quiet(http.server.SimpleHTTPRequestHandler):
    """It says nothing."""

    def log_message(self, *_):
        pass


@pytest.fixture
def server(tmp_path_factory):
    """Serves the files of a folder, always whole."""
    folder = tmp_path_factory.mktemp("served")
    (folder / "set.bin").write_bytes(BODY)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=folder)) as running:
        running.folder = folder
        thread = threading.Thread(target=running.serve_forever, args=(0.01,))
        thread.start()
        yield running
        running.shutdown()
        thread.join()


def wanted(server, content=BODY, path="/set.bin"):
    digest = f"sha256:{hashlib.sha256(content).hexdigest()}"
    return files.Download(f"http://127.0.0.1:{server.server_port}{path}", len(content), digest)


def fetch(download, folder):
    return files.fetched(download, folder / "official", folder).read_bytes()


def left(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def test_another_file_and_a_missing_one_are_refused_and_not_kept(server, tmp_path):
    for download, why in ((wanted(server, b"other" * 60_000), "sha256"), (wanted(server, path="/gone.bin"), "404")):
        with pytest.raises(files.MissingData, match=why):
            fetch(download, tmp_path)
        assert left(tmp_path) == []


def test_a_dataset_is_downloaded_once_converted_and_read(server, tmp_path, rng):
    """From the files of MNIST and its like."""
    x, y = rng.integers(0, 256, size=(5, 28, 28), dtype=np.uint8), np.array([3, 1, 2, 1, 26], np.uint8)
    content = {
        f"/{name}.gz": gzip.compress(
            bytes([0, 0, 8, part.ndim]) + np.array(part.shape, ">u4").tobytes() + part.tobytes()
        )
        for name, part in zip("abcd", (x, y, x[:2], y[:2]), strict=True)
    }
    for path, body in content.items():
        (server.folder / path[1:]).write_bytes(body)
    known = files.DATASETS["fashion_mnist"]
    downloads = tuple(wanted(server, body, path) for path, body in content.items())
    mine = {"fashion_mnist": files.Dataset("fashion_mnist", known.file, known.terms, known.made_by, downloads)}
    files.at_hand("fashion_mnist", tmp_path, mine)
    for path in content:
        (server.folder / path[1:]).unlink()
    files.at_hand("fashion_mnist", tmp_path, mine)  # nothing is asked for again
    train, test = data.images("fashion_mnist", tmp_path)
    np.testing.assert_array_equal(train.x, x)
    np.testing.assert_array_equal(train.y, y)
    np.testing.assert_array_equal(test.x, x[:2])
