"""Catalogs under other hands: processes that add at once or are killed, and damage."""

import subprocess
import sys
import textwrap
import time
from pathlib import Path

import numpy as np
import pytest

import sotdd
from sketches.catalog.cases import labelled

lancedb, pyarrow = pytest.importorskip("lancedb"), pytest.importorskip("pyarrow")


@pytest.fixture
def large(rng):
    """Sketches whose blobs are files of their own."""
    projections = sotdd.Projections.fit([labelled(rng, 500)], n_projections=512)
    return {name: sotdd.sketch(labelled(rng, 300), projections, n_quantiles=128) for name in "abcdef"}


def test_many_single_additions_are_tidied_and_stay_readable(tmp_path, large, monkeypatch):
    monkeypatch.setattr("sotdd.sketches.catalog._PARTS", 8)
    catalog = sotdd.Catalog(tmp_path / "catalog")
    sketches = list(large.values())
    for i in range(70):
        catalog.add(f"e{i}", sketches[i % 6])
    parts = catalog._store.entries().stats()["fragment_stats"]["num_fragments"]
    assert parts < 40
    catalog.remove("e3")
    catalog.tidy()
    assert catalog._store.entries().stats()["fragment_stats"]["num_fragments"] == 1
    assert len(catalog) == 69
    for i in (0, 17, 69):
        assert np.array_equal(catalog.get(f"e{i}").quantiles, sketches[i % 6].quantiles)


def test_a_damaged_sketch_is_refused(tmp_path, large):
    catalog = sotdd.Catalog(tmp_path / "catalog")
    catalog.add_many(large)
    assert len(catalog.nearest(large["a"])) == 6
    blobs = [path for path in (tmp_path / "catalog").rglob("*") if path.is_file() and path.stat().st_size > 1e6]
    assert blobs
    for path in blobs:
        whole = bytearray(path.read_bytes())
        whole[len(whole) // 2] ^= 1
        path.write_bytes(whole)
    with pytest.raises(sotdd.SotddError, match=r"damaged|not a whole sketch"):
        sotdd.Catalog(catalog.path).nearest(large["a"])


@pytest.mark.parametrize("content", [None, 2**40, "x", [1, 2], {"a": 1}, b"", b"x" * 99, []])
def test_an_altered_recipe_is_refused(catalog, sketches, content):
    store = lancedb.connect(catalog.path)
    store.drop_table("recipe")
    store.create_table("recipe", pyarrow.table({"content": [] if content == [] else [content]}))
    with pytest.raises(sotdd.SotddError, match="catalog"):
        catalog.nearest(sketches["set 0"])


def test_altered_metadata_are_refused(catalog):
    lancedb.connect(catalog.path).open_table("sketches").update(where="name = 'set 3'", values={"metadata": "{"})
    with pytest.raises(sotdd.SotddError, match="cannot read the catalog"):
        catalog.entries()


def test_a_flipped_byte_of_the_recipe_is_refused(catalog, sketches):
    (path,) = (path for path in Path(catalog.path, "recipe.lance", "data").iterdir())
    whole = bytearray(path.read_bytes())
    whole[-39] ^= 1  # LanceDB panics
    path.write_bytes(whole)
    with pytest.raises(sotdd.SotddError, match=r"cannot read the catalog|recipe of the catalog"):
        catalog.nearest(sketches["set 0"])


def child(code, *arguments):
    """Another process that has a sketch ``s`` through agreed projections, and says when it is ready."""
    before = """
        import sys
        import numpy as np, sotdd
        rng = np.random.default_rng(0)
        def made(seed=0):
            p = sotdd.Projections.fit([rng.normal(size=(300, 4))], n_projections=512, seed=seed, scale=None)
            return sotdd.sketch(np.ones((300, 4)), p, n_quantiles=64)
        catalog = sotdd.Catalog(sys.argv[1])
    """
    return subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(before) + textwrap.dedent(code), *map(str, arguments)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


ADDING = """
    s = made()
    print("ready", flush=True)
    sys.stdin.readline()
    for i in range(int(sys.argv[3])):
        catalog.add(f"{sys.argv[2]} {i}", s, number=i, **{sys.argv[2]: True})
        print(i, flush=True)
"""


@pytest.mark.slow
def test_a_process_killed_in_the_middle_of_adding_loses_nothing(tmp_path, rng):
    place = tmp_path / "catalog"
    told = set()
    for turn in range(3):
        adding = child(ADDING, place, f"turn{turn}", 1000)
        adding.stdout.readline()
        adding.stdin.write("go\n")
        adding.stdin.flush()
        if turn:  # the first is killed while it makes the catalog
            told.add(f"turn{turn} {int(adding.stdout.readline())}")
        time.sleep(rng.uniform(0.01, 0.3))
        adding.kill()
        told |= {f"turn{turn} {int(line)}" for line in adding.communicate()[0].splitlines()}
        catalog = sotdd.Catalog(place)
        assert told <= set(catalog.names)
        assert len(catalog) <= len(told) + turn + 1  # of each turn at most one was added and not told
        for name in catalog.names:
            assert catalog.get(name).n_quantiles == 64
    assert len(catalog.nearest(catalog.get(catalog.names[0]), k=3)) == 3
    catalog.remove(catalog.names[0])
    catalog.tidy()


@pytest.mark.slow
def test_processes_adding_at_once_lose_nothing(tmp_path):
    place = tmp_path / "catalog"
    several = [child(ADDING, place, word, 12) for word in ("one", "two", "three")]
    for one in several:
        one.stdout.readline()
    for one in several:  # so that all make the catalog at once
        one.stdin.write("go\n")
        one.stdin.flush()
    for one in several:
        _, errors = one.communicate(timeout=120)
        assert one.returncode == 0, errors
    catalog = sotdd.Catalog(place)
    assert sorted(catalog.names) == sorted(f"{word} {i}" for word in ("one", "two", "three") for i in range(12))
    assert len(catalog.entries("number = 3")) == 3
    assert len(catalog.entries("two")) == 12
    for name in catalog.names:
        catalog.get(name)


RACING = """
    s = made(int(sys.argv[2]))
    print("ready", flush=True)
    sys.stdin.readline()
    try:
        catalog.add("same", s)
    except sotdd.SotddError as error:
        print(error, flush=True)
    else:
        print("added", flush=True)
"""


@pytest.mark.slow
@pytest.mark.parametrize(("seeds", "said"), [((0, 0), "there is an entry 'same'"), ((0, 1), "different projections")])
def test_of_two_that_add_the_same_at_once_one_is_told(tmp_path, seeds, said):
    two = [child(RACING, tmp_path / "catalog", seed) for seed in seeds]
    for one in two:
        one.stdout.readline()
    for one in two:
        one.stdin.write("go\n")
        one.stdin.flush()
    answers = sorted((one.communicate(timeout=120)[0].strip() for one in two), key=lambda answer: answer != "added")
    assert answers[0] == "added"
    assert said in answers[1] or "there is an entry 'same'" in answers[1]  # whichever is seen first
    catalog = sotdd.Catalog(tmp_path / "catalog")
    assert catalog.names == ("same",)
    catalog.get("same")
