"""A catalog in an object store (moto's S3): the same answers as on disk, and whole whatever dies or races."""

import os
import re
import signal
import subprocess
import sys
import threading
import time
import urllib.request
from contextlib import contextmanager

import numpy as np
import pytest

import sotdd

pytest.importorskip("lancedb")
pytestmark = pytest.mark.slow  # a server, and writers in processes of their own
for needed in ("moto", "flask", "flask_cors"):
    pytest.importorskip(needed, reason="the local object store needs moto[s3], flask and flask-cors")


class LocalStore:
    """moto's S3, one request at a time, since S3 decides conditions at once and moto does not lock.

    ``writes`` has path and ``If-None-Match`` of every request that changes something, by access key.
    """

    def __init__(self):
        from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app

        self._backend = DomainDispatcherApplication(create_backend_app)
        self._lock = threading.Lock()
        self.writes = {}
        self._held = {}

    def hold(self, key, number, applied):
        """Let the nth write of a key wait: an event that it has come, and one to let it go on, or be dropped."""
        self._held[key] = number, applied, threading.Event(), threading.Event()
        return self._held[key][2:]

    def __call__(self, environ, start):
        key = (re.search(r"Credential=(\w+)", environ.get("HTTP_AUTHORIZATION", "")) or ["", ""])[1]
        if environ["REQUEST_METHOD"] in ("PUT", "POST", "DELETE"):
            done = self.writes.setdefault(key, [])
            done.append((environ["PATH_INFO"], environ.get("HTTP_IF_NONE_MATCH")))
            number, applied, came, go_on = self._held.get(key, (None, None, None, None))
            if len(done) == number:
                came.set()
                go_on.wait(60)
                if not applied:
                    start("503 Service Unavailable", [])
                    return []
        with self._lock:
            return list(self._backend(environ, start))


@pytest.fixture(scope="module")
def store():
    from werkzeug.serving import WSGIRequestHandler, make_server

    handler = type("Quiet", (WSGIRequestHandler,), {"log": lambda *_: None})
    store = LocalStore()
    server = make_server("127.0.0.1", 0, store, threaded=True, request_handler=handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    store.url = f"http://127.0.0.1:{server.server_port}"
    urllib.request.urlopen(urllib.request.Request(f"{store.url}/bucket", method="PUT")).close()
    yield store
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def place(store, request, monkeypatch):
    """A folder of one's own in the bucket. Only the environment says where the store is, as on a command line."""
    for name in list(os.environ):
        if name.startswith(("AWS_", "ALLOW_HTTP")):
            monkeypatch.delenv(name)
    keys = {"AWS_ACCESS_KEY_ID": "own", "AWS_SECRET_ACCESS_KEY": "secret", "AWS_REGION": "us-east-1"}
    for name, value in {
        **keys,
        "AWS_ENDPOINT_URL": store.url,
        "AWS_EC2_METADATA_DISABLED": "true",
        "ALLOW_HTTP": "true",
    }.items():
        monkeypatch.setenv(name, value)
    return f"s3://bucket/{abs(hash(request.node.name))}"


# Another process with a sketch, which lets children of its own add it under a name, with a key of their own.
ADDING = """
import os, sys
import sotdd
sketch = sotdd.Sketch.load(sys.argv[2])
print("ready", flush=True)
for line in sys.stdin:
    key, several = line.split()
    child = os.fork()  # it has no threads yet: LanceDB is imported below
    if not child:
        os.environ["AWS_ACCESS_KEY_ID"] = key
        catalog = sotdd.Catalog(sys.argv[1])
        for number in range(int(several)):
            catalog.add(f"{key} {number}", sketch, number=number)
            print("added", flush=True)
        os._exit(0)
    print(child, flush=True)
    os.waitpid(child, 0)
    print("over", flush=True)
"""


@contextmanager
def adding(place, sketch, tmp_path):
    sketch.save(tmp_path / "one.sotdd")
    with subprocess.Popen(
        [sys.executable, "-c", ADDING, place, tmp_path / "one.sotdd"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    ) as process:  # fmt: skip
        assert process.stdout.readline() == "ready\n"
        try:
            yield process
        finally:
            process.stdin.close()


def ask(process, key, several):
    """Let it begin: the number of the process that adds."""
    process.stdin.write(f"{key} {several}\n")
    process.stdin.flush()
    return int(process.stdout.readline())


def test_it_answers_as_a_folder_does(place, store, original, sketches, rng):
    there = sotdd.Catalog(place)
    assert there.recipe is None
    assert len(there) == 0
    there.add_many(sketches, {name: {"place": i, "even": i % 2 == 0} for i, name in enumerate(sketches)})
    query = rng.normal(size=(120, 4))
    for where in (None, "even AND place > 5"):
        found, expected = (catalog.nearest(query, 7, where=where) for catalog in (there, original))
        assert found.names == expected.names
        assert [hit.distance.value for hit in found] == [hit.distance.value for hit in expected]
    there.remove("set 3")
    there.remove("set 4")
    there.add("set 5", sketches["set 6"], overwrite=True)
    there.tidy()
    # Every version is written on condition that nobody wrote it before.
    assert {condition for path, condition in store.writes["own"] if path.endswith(".manifest")} == {"*"}
    again = sotdd.Catalog(place)
    assert set(again.names) == set(sketches) - {"set 3", "set 4"}
    np.testing.assert_array_equal(again.get("set 5").quantiles, sketches["set 6"].quantiles)


def test_a_process_killed_at_any_of_its_writes_leaves_all_or_nothing(place, store, sketches, tmp_path):
    """Each is killed at another write; the store does what was asked in the last request, or never got it."""
    catalog = sotdd.Catalog(place)
    catalog.add("before", sketches["set 1"], number=-1)
    expected = {"before"}
    moments = [(1, False), (2, False), (4, False), (4, True)]  # of sketch, row, what is to change, version
    with adding(place, sketches["set 2"], tmp_path) as process:
        for turn, (number, applied) in enumerate(moments):
            key = f"victim{turn}"
            came, go_on = store.hold(key, number, applied)
            victim = ask(process, key, 1)
            assert came.wait(60), store.writes
            os.kill(victim, signal.SIGKILL)
            assert process.stdout.readline() == "over\n"  # and it never said that it had added
            go_on.set()
            assert len(store.writes[key]) == number
            expected |= {f"{key} 0"} if applied else set()
            assert settled(place, len(expected)) == expected, store.writes[key]
            for name in catalog.names:
                assert catalog.get(name).n_quantiles == 32
    assert store.writes[key][-1][0].endswith(".manifest")
    catalog.add("after", sketches["set 3"])  # the next one goes on, and what lies about does not show
    catalog.tidy()
    assert set(catalog.names) == {*expected, "after"}
    assert len(catalog.nearest(sketches["set 4"], k=5)) == 3


def settled(place, number):
    """The names, once the last request has been answered, which nobody waits for any more."""
    for _ in range(100):
        names = set(sotdd.Catalog(place).names)
        if len(names) == number:
            break
        time.sleep(0.05)
    return names


@pytest.mark.parametrize("path", ["s3://nowhere/shop", "s3://bucket/shop", "ftp://bucket/shop", "s3:///shop"])
def test_a_store_that_cannot_be_used_is_one_line(place, path, monkeypatch, sketches):
    if path == "s3://bucket/shop":
        monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")
    with pytest.raises(sotdd.SotddError, match=path) as caught:
        sotdd.Catalog(path).add("one", sketches["set 1"])
    assert "\n" not in str(caught.value)
    assert "secret" not in str(caught.value)
