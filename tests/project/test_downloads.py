"""Datasets are downloaded by name from a real server: whole and checked, or not at all; and made into what is read."""

import gzip
import hashlib
import http.server
import threading

import numpy as np
import pytest
from experiments import data, files

BODY = np.random.default_rng(0).bytes(300_000)


@pytest.fixture
def server():
    """Serves ``content``, cut off after some bytes if asked, and from a place on."""

    class Answer(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            body = http_server.content.get(self.path)
            if body is None:
                self.send_error(404)
                return
            asked = self.headers.get("Range")
            http_server.asked.append(asked)
            begun = int(asked[6:-1]) if asked else 0
            self.send_response(206 if begun else 200)
            self.send_header("Content-Length", str(len(body) - begun))
            self.end_headers()
            self.wfile.write(body[begun : http_server.cut])

        def log_message(self, *_):
            """Nothing."""

    http_server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answer)
    http_server.content, http_server.cut, http_server.asked = {"/set.bin": BODY}, None, []
    thread = threading.Thread(target=http_server.serve_forever, args=(0.01,))
    thread.start()
    yield http_server
    http_server.shutdown()
    thread.join()
    http_server.server_close()


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


def test_a_transfer_that_was_cut_off_goes_on(server, tmp_path):
    server.cut = 100_000
    with pytest.raises(files.MissingData, match="100,000 bytes"):
        fetch(wanted(server), tmp_path)
    assert left(tmp_path) == ["official/set.bin.part"]
    server.cut = None
    assert fetch(wanted(server), tmp_path) == BODY
    assert server.asked == [None, "bytes=100000-"]
    assert left(tmp_path) == ["official/set.bin"]


def test_a_dataset_is_downloaded_once_converted_and_read(server, tmp_path, rng):
    """From the files of MNIST and its like."""
    x, y = rng.integers(0, 256, size=(5, 28, 28), dtype=np.uint8), np.array([3, 1, 2, 1, 26], np.uint8)
    content = {
        f"/{name}.gz": gzip.compress(
            bytes([0, 0, 8, part.ndim]) + np.array(part.shape, ">u4").tobytes() + part.tobytes()
        )
        for name, part in zip("abcd", (x, y, x[:2], y[:2]), strict=True)
    }
    server.content |= content
    known = files.DATASETS["fashion_mnist"]
    downloads = tuple(wanted(server, body, path) for path, body in content.items())
    mine = {"fashion_mnist": files.Dataset("fashion_mnist", known.file, known.terms, known.made_by, downloads)}
    for _ in range(2):
        files.at_hand("fashion_mnist", tmp_path, mine)
        assert len(server.asked) == 4
    train, test = data.images("fashion_mnist", tmp_path)
    np.testing.assert_array_equal(train.x, x)
    np.testing.assert_array_equal(train.y, y)
    np.testing.assert_array_equal(test.x, x[:2])
