"""Catalogs that learned short vectors: against brute force, while they grow, and beside other processes."""

import pickle
import shutil
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import numpy as np
import pytest

import sotdd
from sotdd.sketches.catalog import basis as bases
from sotdd.sketches.catalog import learned, search
from sotdd.sketches.catalog.recipe import CatalogRecipe

pytest.importorskip("lancedb")
pytestmark = pytest.mark.slow  # a catalog that is large enough to learn from takes a while

ENTRIES, FEW, FAMILIES = 2000, 300, 80


def table(source, number, n=None):
    """A table of one of many sources: columns with heavy tails, some classes, 20 to 400 rows."""
    law = np.random.default_rng([1, source])
    centre, width, power = law.normal(size=5), law.uniform(0.5, 1.5, size=5), law.choice([1, 1, 3], size=5)
    rng = np.random.default_rng([2, source, number])
    n = round(20 * 20 ** rng.random()) if n is None else n
    z = rng.normal(size=(n, 5)) * width * (1 + 0.05 * rng.normal()) + centre + 0.05 * rng.normal(size=5)
    return np.sign(z) * np.abs(z) ** power, rng.integers(1 + source % 7, size=n)


@pytest.fixture(scope="module")
def through():
    return sotdd.Projections.fit([table(source, 0) for source in range(20)], n_projections=48)


@pytest.fixture(scope="module")
def many(through):
    return {f"e{i}": sotdd.sketch(table(i % FAMILIES, i), through, n_quantiles=32) for i in range(ENTRIES)}


@pytest.fixture(scope="module")
def made(many):
    return {name: many[name] for name in list(many)[:FEW]}


@pytest.fixture(autouse=True)
def learns_from_few(monkeypatch):
    monkeypatch.setattr(learned, "FEWEST", FEW)


@pytest.fixture(scope="module")
def taught(tmp_path_factory, made):
    catalog = sotdd.Catalog(tmp_path_factory.mktemp("taught") / "catalog")
    catalog.add_many(made, {name: {"even": int(name[1:]) % 2 == 0} for name in made})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(learned, "FEWEST", FEW)
        catalog.tidy()
    return catalog


@pytest.fixture
def catalog(tmp_path, taught):
    """A copy of one's own."""
    shutil.copytree(taught.path, tmp_path / "catalog")
    return sotdd.Catalog(tmp_path / "catalog")


def asked(through, count, rank=0):
    """Members of known sources, and of new ones."""
    return [sotdd.sketch(table(3 * i + rank, 10**6 + i), through, n_quantiles=32) for i in range(count)]


def exact(query, sketches, k=10, rank_by="excess"):
    """The names of the nearest, from the distances of all sketches."""
    distances = {name: query.distance(one, estimator="plain") for name, one in sketches.items()}
    key = {name: one.excess if rank_by == "excess" else one.value for name, one in distances.items()}
    return sorted(sketches, key=lambda name: (key[name], name))[:k]


def is_searched_in_memory(catalog):
    return catalog._learning.resident(catalog._snapshot(), catalog._settled()) is not None


def test_the_nearest_are_those_of_brute_force(tmp_path, many, through):
    catalog = sotdd.Catalog(tmp_path / "catalog")
    catalog.add_many(many)
    catalog.tidy()
    right, compared = 0, []
    for query in asked(through, 12):
        distances = {name: query.distance(one, estimator="plain") for name, one in many.items()}
        for rank_by, key in (("excess", "excess"), ("distance", "value")):
            hits = catalog.nearest(query, rank_by=rank_by)
            right += len(set(hits.names) & set(sorted(many, key=lambda name: getattr(distances[name], key))[:10]))
            compared.append(hits.compared)
            assert hits.sure
            assert hits.ranked_by == rank_by
            assert [hit.distance.value for hit in hits] == [distances[hit.name].value for hit in hits]
    assert is_searched_in_memory(catalog)
    assert right >= 0.99 * 240
    assert np.mean(compared) < 40
    assert catalog._store.open(learned.LEARNED).schema.field("vector").type.list_size <= 256


def test_few_looked_at_are_enough_or_it_says_that_it_is_not_sure(catalog, made, through, monkeypatch):
    for looked_at in ((32,), (32, 64, 1 << 60)):
        monkeypatch.setattr(search, "LOOKED_AT", looked_at)
        for query in asked(through, 6):
            hits = catalog.nearest(query, rank_by="distance")
            assert not hits.sure or set(hits.names) == set(exact(query, made, rank_by="distance"))
            assert hits.sure or len(looked_at) == 1


def test_conditions_and_large_k(catalog, made, through):
    (query,) = asked(through, 1)
    even = {name: one for name, one in made.items() if int(name[1:]) % 2 == 0}
    assert list(catalog.nearest(query, where="even").names) == exact(query, even)
    few = {name: made[name] for name in ("e3", "e4", "e5")}
    assert list(catalog.nearest(query, where="name IN ('e3', 'e4', 'e5')").names) == exact(query, few)
    assert len(catalog.nearest(query, where="name = 'nobody'")) == 0
    most = catalog.nearest(query, k=50)
    assert list(most.names) == exact(query, made, 50)
    stopped = catalog.nearest(query, k=3, max_compared=4)
    assert (stopped.compared, len(stopped)) == (4, 3)


def test_what_changes_after_learning_is_found(catalog, made, through):
    """One by one, many at once, renamed, replaced and removed, before and after the codes follow."""
    queries = asked(through, 4, rank=1)
    now = dict(made)
    for turn in range(2):
        for i in range(3):
            now[f"single {turn} {i}"] = sotdd.sketch(table(3 * i + 1, 2 * 10**6 + turn), through, n_quantiles=32)
            catalog.add(f"single {turn} {i}", now[f"single {turn} {i}"])
        several = {
            f"many {turn} {i}": sotdd.sketch(table(i % 9, 3 * 10**6 + 100 * turn + i), through, n_quantiles=32)
            for i in range(40)
        }
        catalog.add_many(several)
        now |= several
        victim = exact(queries[0], now)[0]
        catalog.rename(victim, f"renamed {turn}")
        now[f"renamed {turn}"] = now.pop(victim)
        gone = exact(queries[1], now)[0]
        catalog.remove(gone)
        del now[gone]
        near = exact(queries[2], now)[0]
        now[near] = sotdd.sketch(table(999, 1), through, n_quantiles=32)
        catalog.add(near, now[near], overwrite=True)
        for query in queries:
            assert list(catalog.nearest(query).names) == exact(query, now)
        assert is_searched_in_memory(catalog)
        assert is_searched_in_memory(sotdd.Catalog(catalog.path))
        catalog.tidy()
        of_all = catalog._learning.resident(catalog._snapshot(), catalog._settled())
        assert len(of_all.made_here.vectors) == 0
        for query in queries:
            assert list(catalog.nearest(query).names) == exact(query, now)


def test_single_additions_get_their_codes_after_a_while(catalog, through):
    for i in range(64):
        catalog.add(f"late {i}", sotdd.sketch(table(i, 7), through, n_quantiles=32))
    of_all = catalog._learning.resident(catalog._snapshot(), catalog._settled())
    assert len(of_all.made_here.vectors) < 64


def test_a_basis_is_found_anew_once_the_catalog_has_grown(tmp_path, many):
    catalog, names = sotdd.Catalog(tmp_path / "catalog"), list(many)
    catalog.add_many({name: many[name] for name in names[: FEW - 1]})
    catalog.tidy()
    assert catalog._store.open(learned.LEARNED) is None
    fits = []
    for end in (300, 400, 460):
        catalog.add_many({name: many[name] for name in names[len(catalog) : end]})
        catalog.tidy()
        fits.append(learned.read_basis(catalog._store.open(learned.LEARNED), catalog._settled(), "here")[1])
    assert fits[0] == fits[1] != fits[2]
    query, now = many[names[-1]], {name: many[name] for name in names[:460]}
    assert list(catalog.nearest(query).names) == exact(query, now)
    assert list(sotdd.Catalog(catalog.path).nearest(query).names) == exact(query, now)


def test_sketches_that_do_not_know_their_noise(catalog, made, through):
    """Where the query does not know its noise, its neighbours do; where one of them does not, it is by distance."""
    x, y = table(5, 10**7, 300)
    statistics = sotdd.ClassStatistics(through).add(x, y)
    query = sotdd.SketchBuilder(through, statistics, n_quantiles=32).add(x, y).finish()
    assert query.halves is None  # after two passes
    hits = catalog.nearest(query)
    assert (hits.ranked_by, list(hits.names)) == ("excess", exact(query, made))
    catalog.add("stream", query)
    hits = catalog.nearest(query)
    assert hits.ranked_by == "distance"
    assert list(hits.names) == exact(query, made | {"stream": query}, rank_by="distance")


LAWS = {
    "tables": lambda rng, i: table(i, i, 200),
    "one column": lambda rng, i: (rng.normal(i, 1, size=(50, 1)), rng.integers(2, size=50)),
    "heavy tails": lambda rng, i: (rng.standard_cauchy(size=(300, 3)), rng.integers(3, size=300)),
    "twenty rows": lambda rng, i: (rng.normal(size=(20, 4)), rng.integers(2, size=20)),
    "200 classes": lambda rng, i: (rng.normal(size=(400, 4)), rng.integers(200, size=400)),
    "all the same": lambda rng, i: (np.ones((30, 2)), np.zeros(30, int)),
}


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("n_quantiles", [24, 384])
def test_codes_bound_distances_whatever_the_basis(rng, law, n_quantiles):
    """Found from some sketches and used for others, at fewer quantiles than they have, in float64."""
    data = [LAWS[law](rng, i) for i in range(30)]
    through = sotdd.Projections.fit(data[:5], n_projections=100)
    sketches = [sotdd.sketch(one, through, n_quantiles=n_quantiles) for one in data]
    recipe = CatalogRecipe.of(sketches[0], "here")
    count = bases.coarse_quantiles(recipe)
    assert recipe.n_quantiles % count == 0
    assert 100 * count <= 1 << 14
    found = bases.Basis.of(np.array([bases.coarse_vector(one, count) for one in sketches[:20]]), count, 20)
    assert np.abs(found.axes.astype(float) @ found.axes.T.astype(float) - np.eye(len(found.axes))).max() < 1e-5
    read = bases.Basis.from_bytes(found.to_bytes(), "here")
    codes = read.codes(sketches, recipe).astype(float)
    alone = np.concatenate([read.codes([one], recipe) for one in sketches])
    whole = np.array([one.vector_at(recipe.levels, None) for one in sketches]).astype(float)
    scale = np.abs(whole).max() ** 2 * whole.shape[1]
    assert np.abs(alone - codes)[:, :-1].max() <= 1e-5 * np.sqrt(scale)
    assert np.abs(alone.astype(float) ** 2 - codes**2)[:, -1].max() <= 1e-6 * scale  # a difference of two squares
    for i in range(30):
        squared = ((whole - whole[i]) ** 2).sum(axis=1)
        within = ((codes - codes[i])[:, :-1] ** 2).sum(axis=1)
        assert (within + (codes[:, -1] - codes[i, -1]) ** 2 <= squared + 1e-6 * scale).all()
        others = np.arange(30) != i
        assert (within + (codes[:, -1] + codes[i, -1]) ** 2 >= squared - 1e-6 * scale)[others].all()


def test_there_is_no_basis_of_values_whose_squares_leave_float32(tmp_path, made, monkeypatch):
    assert bases.Basis.of(np.full((5, 40), 1e25, np.float32) * np.arange(5, dtype=np.float32)[:, None], 1, 5) is None
    monkeypatch.setattr(learned, "coarse_quantiles", lambda recipe: None)  # as with very many projections
    catalog = sotdd.Catalog(tmp_path / "catalog")
    catalog.add_many(made)
    catalog.tidy()
    assert catalog._store.open(learned.LEARNED) is None
    assert len(catalog.nearest(made["e5"])) == 10


def test_damaged_codes_are_done_without_and_made_again(catalog, made, through):
    (query,) = asked(through, 1)
    expected = exact(query, made)
    damaged = [path for path in (Path(catalog.path) / "learned.lance" / "data").rglob("*") if path.is_file()]
    assert damaged
    for path in damaged:
        path.write_bytes(path.read_bytes()[:100])
    found = sotdd.Catalog(catalog.path).nearest(query)  # by the vectors of the entries, which are rougher
    assert len(set(found.names) & set(expected)) >= 9
    sotdd.Catalog(catalog.path).tidy()
    again = sotdd.Catalog(catalog.path)
    assert list(again.nearest(query).names) == expected
    assert is_searched_in_memory(again)


def test_another_catalog_at_the_same_place_is_noticed(catalog, made, through, rng):
    (query,) = asked(through, 1)
    assert catalog.nearest(query).names
    shutil.rmtree(catalog.path)
    other = sotdd.Projections.fit([rng.normal(size=(100, 2))], n_projections=32)
    new = sotdd.sketch(rng.normal(size=(100, 2)), other)
    catalog.add("new", new)
    assert catalog.nearest(new).names == ("new",)
    with pytest.raises(sotdd.SotddError, match="different projections"):
        catalog.nearest(query)


def test_what_is_in_memory_does_not_travel(catalog, through):
    (query,) = asked(through, 1)
    names = catalog.nearest(query).names
    sent = pickle.dumps(catalog)
    assert len(sent) < 10_000
    assert pickle.loads(sent).nearest(query).names == names


TIDYING = """
    import sys, sotdd
    from sotdd.sketches.catalog import learned
    learned.FEWEST, learned._GROWN = 10, 0.0  # so that every call finds a basis anew
    catalog = sotdd.Catalog(sys.argv[1])
    for _ in range(int(sys.argv[2])):
        print("tidying", flush=True)
        catalog.tidy()
"""


def tidying(place, times):
    return subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(TIDYING), str(place), str(times)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


def test_a_process_killed_while_it_learns_loses_nothing(catalog, made, through, rng):
    queries = asked(through, 3)
    for _ in range(3):
        one = tidying(catalog.path, 1000)
        one.stdout.readline()
        time.sleep(rng.uniform(0.1, 1.0))
        one.kill()
        one.communicate()
        for query in queries:
            assert list(sotdd.Catalog(catalog.path).nearest(query).names) == exact(query, made)
            assert list(catalog.nearest(query).names) == exact(query, made)
    catalog.tidy()
    assert is_searched_in_memory(catalog)
    assert len(catalog) == FEW


def test_adding_and_searching_while_another_process_learns(catalog, made, through):
    one, now = tidying(catalog.path, 3), dict(made)
    one.stdout.readline()
    turn = 0
    while one.poll() is None and turn < 20:
        several = {f"{turn} {i}": made[f"e{(turn * 40 + i) % FEW}"] for i in range(40 if turn % 2 else 1)}
        catalog.add_many(several)
        now |= several
        (query,) = asked(through, 1, rank=turn)
        hits = catalog.nearest(query)
        assert [hit.distance.excess for hit in hits] == [
            query.distance(now[n], estimator="plain").excess for n in exact(query, now)
        ]
        turn += 1
    _, errors = one.communicate(timeout=300)
    assert one.returncode == 0, errors
    catalog.tidy()
    assert set(catalog.names) == set(now)
    of_all = catalog._learning.resident(catalog._snapshot(), catalog._settled())
    assert len(of_all.made_here.vectors) == 0
