"""A catalog in an object store: the same answers as on disk, and whole whatever dies, races or gets lost."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager

import numpy as np
import pytest

import sotdd

pytest.importorskip("lancedb")
pytestmark = pytest.mark.slow  # a server, and writers in processes of their own
for needed in ("moto", "flask", "flask_cors"):
    pytest.importorskip(needed, reason="the local object store needs moto[s3], flask and flask-cors")


@pytest.fixture(scope="module")
def store():
    from sketches.catalog.local_store import local_store

    with local_store() as one:
        yield one


@pytest.fixture
def keys(store, monkeypatch):
    """Only the environment says where the store is, as on a command line."""
    for name in list(os.environ):
        if name.startswith(("AWS_", "ALLOW_HTTP")):
            monkeypatch.delenv(name)
    for name, value in {
        "AWS_ENDPOINT_URL": store.url,
        "AWS_ACCESS_KEY_ID": "own",
        "AWS_SECRET_ACCESS_KEY": "secret",
        "AWS_REGION": "us-east-1",
        "AWS_EC2_METADATA_DISABLED": "true",
    }.items():
        monkeypatch.setenv(name, value)


@pytest.fixture
def place(keys, request):
    """A folder of one's own in the bucket."""
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
    there.rename("set 3", "third")
    there.remove("set 4")
    there.add("set 5", sketches["set 6"], overwrite=True)
    there.tidy()
    assert set(there.names) == (set(sketches) | {"third"}) - {"set 3", "set 4"}
    np.testing.assert_array_equal(sotdd.Catalog(place).get("set 5").quantiles, sketches["set 6"].quantiles)
    with pytest.raises(sotdd.SotddError, match="there is an entry 'third'"):
        there.add("third", sketches["set 3"])
    # Every version is written on condition that nobody wrote it before.
    versions = [condition for _, path, condition in store.writes["own"] if path.endswith(".manifest")]
    assert versions
    assert set(versions) == {"*"}


def test_commands_take_keys_from_the_environment(place, run, tmp_path, rng):
    np.savez(tmp_path / "march.npz", X=rng.normal(size=(80, 3)), y=rng.integers(2, size=80))
    code, out, errors = run("catalog", "add", place, "march", tmp_path / "march.npz", "--quiet")
    assert (code, errors) == (0, ""), errors
    assert "added 'march'" in out
    code, out, errors = run("catalog", "search", place, tmp_path / "march.npz", "--json")
    assert code == 0, errors
    assert json.loads(out)["hits"][0]["name"] == "march"
    code, _, errors = run("catalog", "list", f"{place}-other")
    assert code == 2
    assert "there is no catalog at" in errors


def test_options_go_before_the_environment(place, store, sketches, monkeypatch):
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")
    options = {"endpoint": store.url, "aws_access_key_id": "mine", "aws_secret_access_key": "x"}
    catalog = sotdd.Catalog(place, storage_options=options)
    catalog.add("one", sketches["set 1"])
    assert catalog.names == ("one",)
    assert store.writes["mine"]


def test_a_process_killed_at_any_of_its_writes_leaves_all_or_nothing(place, store, sketches, tmp_path):
    """Each is killed at another write; the store does what was asked in the last request, or never got it."""
    catalog = sotdd.Catalog(place)
    catalog.add("before", sketches["set 1"], number=-1)
    expected = {"before"}
    moments = [(number, False) for number in range(1, 5)] + [(4, True)]  # sketch, row, what is to change, version
    with adding(place, sketches["set 2"], tmp_path) as process:
        for turn, (number, applied) in enumerate(moments):
            key = f"victim{turn}"
            came, go_on = store.hold(key, number, applied)
            victim = ask(process, key, 1)
            assert came.wait(60), store.writes
            os.kill(victim, signal.SIGKILL)
            assert process.stdout.readline() == "over\n"  # and it never said that it had added
            go_on.set()
            made = store.writes[key]
            assert len(made) == number
            expected |= {f"{key} 0"} if applied else set()
            assert settled(place, len(expected)) == expected, made
            for name in catalog.names:
                assert catalog.get(name).n_quantiles == 32
    assert made[-1][1].endswith(".manifest")
    # The next one goes on, and what lies about does not show.
    catalog.add("after", sketches["set 3"])
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


def test_two_processes_adding_at_once_lose_nothing(place, sketches, tmp_path):
    words = ("one", "two")
    with ExitStack() as stack:
        both = [stack.enter_context(adding(place, sketches["set 1"], tmp_path)) for _ in words]
        for word, process in zip(words, both, strict=True):  # so that both make the catalog at once
            ask(process, word, 6)
        for process in both:
            assert [process.stdout.readline() for _ in range(7)] == ["added\n"] * 6 + ["over\n"]
    catalog = sotdd.Catalog(place)
    assert sorted(catalog.names) == sorted(f"{word} {i}" for word in words for i in range(6))
    assert len(catalog.entries("number = 3")) == 2
    for name in catalog.names:
        catalog.get(name)


@pytest.mark.parametrize(("seeds", "said"), [((0, 0), "there is an entry 'same'"), ((0, 1), "different projections")])
def test_of_two_that_add_the_same_at_once_one_is_told(place, seeds, said, rng):
    """Each has a connection of its own."""
    points = rng.normal(size=(50, 4))
    both = [sotdd.sketch(points, sotdd.Projections.fit([points], n_projections=16, seed=seed)) for seed in seeds]
    ready = threading.Barrier(2)

    def add(sketch):
        catalog = sotdd.Catalog(place)
        ready.wait()
        try:
            catalog.add("same", sketch)
        except sotdd.SotddError as error:
            return str(error)
        return "added"

    with ThreadPoolExecutor(2) as threads:
        answers = sorted(threads.map(add, both), key=lambda answer: answer != "added")
    assert answers[0] == "added"
    assert said in answers[1] or "there is an entry 'same'" in answers[1]  # whichever is seen first
    assert sotdd.Catalog(place).names == ("same",)


def test_an_answer_that_is_lost_is_not_taken_for_another_process(place, store, sketches):
    """The store has committed but says that it failed; LanceDB asks again, and knows the version for its own."""
    catalog = sotdd.Catalog(place)
    catalog.add("first", sketches["set 1"])
    store.lose_answer(r"sketches\.lance/_versions")
    catalog.add("second", sketches["set 2"])
    assert catalog.names == ("first", "second")
    store.lose_answer(r"sketches\.lance/_versions")
    catalog.rename("second", "third")
    assert catalog.names == ("first", "third")
    store.lose_answer(r"sketches\.lance/_versions")
    catalog.remove("third")
    assert catalog.names == ("first",)
    assert not store._spoiled


@pytest.mark.parametrize(
    ("path", "changes", "said"),
    [
        ("s3://nowhere/shop", {}, "there is no such bucket"),
        ("s3://bucket/shop", {"AWS_ENDPOINT_URL": "http://127.0.0.1:1"}, "the store cannot be reached"),
        ("s3://bucket/shop", {"AWS_ACCESS_KEY_ID": "refused"}, "the store refused the credentials"),
        ("s3://bucket/shop", {"AWS_ACCESS_KEY_ID": None}, "no credentials were found"),
        ("ftp://bucket/shop", {}, "this kind of URL is not known"),
        ("s3:///shop", {}, "the URL is not complete"),
    ],
)
def test_a_store_that_cannot_be_used_is_one_line(keys, path, changes, said, monkeypatch, run, sketches):
    for name, value in changes.items():
        monkeypatch.delenv(name) if value is None else monkeypatch.setenv(name, value)
    with pytest.raises(sotdd.SotddError, match=said) as caught:
        sotdd.Catalog(path).add("one", sketches["set 1"])
    assert len(str(caught.value).splitlines()) == 1
    assert "secret" not in str(caught.value)
    if "nowhere" in path:
        code, _, errors = run("catalog", "list", path)
        assert (code, len(errors.splitlines())) == (2, 1), errors
        assert said in errors
