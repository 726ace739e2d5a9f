"""Conditions, numbers and names that a catalog cannot use: one line each, in no time and in no memory."""

import json
import subprocess
import sys
import textwrap

import pytest

import sotdd
from sotdd.sketches.catalog.condition import checked_condition

pytest.importorskip("lancedb")


@pytest.mark.parametrize(
    ("where", "said"),
    [
        ("place > 1; DROP TABLE sketches", r"has ';' at character 10: expected one SQL condition and no more"),
        ("place > 1;", "has ';'"),
        ("place > 1 -- and nothing else", "has '--'"),
        ("place > 1 /* or */", r"has '/\*'"),
        ("name = $1", r"has '\$'"),
        ("name = 'a", "expected a closing quote"),
        ("name = 'a') OR (place = 1", "parentheses do not match"),
        (")(", "parentheses do not match"),
        ("repeat('x', 1000000000) = name", "calls repeat: expected only abs"),
        ("RPAD ('x', 2000000000) = name", "calls RPAD"),
        ("\"repeat\"('x', 1000000000) = name", 'calls "repeat"'),
        ("+".join(["1"] * 3000) + " = 1", r"has 3,000 words and signs: expected at most 500"),
        ("NOT " * 3000 + "even", "words and signs"),
        ("name = '" + "x" * 2_000_000 + "'", r"has 2,000,009 characters"),
        ("name = '\ud800'", "expected text that can be written as UTF-8"),
        (" ", "where is empty"),
        ("n_points / 0 = 1", "Divide by zero.*expected an SQL condition on name"),
    ],
)  # fmt: skip
def test_conditions_that_are_refused(catalog, sketches, where, said):
    for call in (lambda: catalog.entries(where), lambda: catalog.nearest(sketches["set 1"], where=where)):
        with pytest.raises(sotdd.SotddError, match=said) as caught:
            call()
        assert len(str(caught.value)) < 1000
        assert len(str(caught.value).splitlines()) == 1


@pytest.mark.parametrize(
    ("where", "count"),
    [
        ("name = 'a;b -- c /* d */ $1'", 0),
        ("lower(name) = 'set 1' OR starts_with(name, 'set 2')", 12),
        ('`place` + 1 <= 3 AND "even"', 2),
        ("place IN (1,\n2, 3.0) AND NOT (even)", 2),
        ("date_part('year', added) > 2000 AND added > timestamp '2020-01-01 00:00:00'", 60),
        ("name IN (" + ", ".join(f"'set {i}'" for i in range(5000)) + ")", 60),
    ],
)
def test_conditions_that_are_met(catalog, where, count):
    assert checked_condition(where) == where
    assert len(catalog.entries(where)) == count


def test_a_condition_takes_no_memory(tmp_path, sketches):
    """In a process that may not have much: a function that fills text is refused before LanceDB sees it."""
    sotdd.Catalog(tmp_path / "catalog").add("a", sketches["set 1"])
    code = """
        import resource, sys, sotdd
        catalog = sotdd.Catalog(sys.argv[1])
        catalog.entries("n_points > 1")
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        try:
            catalog.entries("rpad('x', 400000000) = name")
        except sotdd.SotddError as error:
            print("refused", resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code), str(tmp_path / "catalog")], capture_output=True, text=True,
        check=True,
    )  # fmt: skip
    word, grown = done.stdout.split()
    assert word == "refused"
    assert int(grown) * (1 if sys.platform == "darwin" else 1024) < 100e6


@pytest.mark.parametrize("k", [10**9, 2**63, 10**30])
def test_more_entries_than_64_bits_can_count(catalog, sketches, run, k):
    """All that there are, or one line where counts have a largest."""
    for where, count in ((None, 60), ("even", 30)):
        try:
            assert len(catalog.nearest(sketches["set 1"], k, where=where, max_compared=k)) == count
        except sotdd.SotddError as error:
            assert k > 10**9
            assert "expected at most" in str(error)  # noqa: PT017
    code, said, errors = run("catalog", "search", catalog.path, "--entry", "set 1", "-k", k, "--json")
    if code:
        assert (code, k > 10**9, errors.count("\n")) == (2, True, 1)
    else:
        assert len(json.loads(said)["hits"]) == 59


def test_a_condition_of_a_command_stays_within_its_parentheses(catalog, run):
    arguments = ("catalog", "search", catalog.path, "--entry", "set 1", "--where", "even) OR (NOT even")
    code, _, errors = run(*arguments)
    assert (code, errors.count("\n")) == (2, 1)
    assert "parentheses do not match" in errors


@pytest.mark.parametrize(
    ("given", "metadata", "said"),
    [
        (lambda one: [one], None, "sketches is a list: expected sketches or data by name"),
        (lambda _: None, None, "sketches is None"),
        (lambda _: "abc", None, "sketches is 'abc'"),
        (lambda one: (pair for pair in [("a", one)]), None, "sketches is a generator"),
        (lambda one: {5: one}, None, "the name of an entry is 5"),
        (lambda one: {"n" * 1001: one}, None, "name of an entry has 1,001 characters: expected at most 1,000"),
        (lambda one: {"new": one}, ["x"], "metadata is a list"),
        (lambda one: {"new": one}, {"new": "x"}, "the metadata of an entry is 'x'"),
        (lambda one: {"new": one}, {"new": None}, "the metadata of an entry is None"),
        (lambda one: {"new": one}, {"new": {"k" * 101: 1}}, "at most 100 of them"),
        (lambda one: {"new": one}, {"new": {"k": "\ud800"}}, "metadata 'k' is '.ud800': expected text"),
    ],
)
def test_additions_that_are_refused(tmp_path, catalog, given, metadata, said):
    one = catalog.get("set 1")
    for place in (catalog, sotdd.Catalog(tmp_path / "new")):
        with pytest.raises(sotdd.SotddError, match=said) as caught:
            place.add_many(given(one), metadata)
        assert len(str(caught.value)) < 300
    assert len(catalog) == 60
    assert "new" not in catalog
    assert "\ud800" not in catalog


def test_nothing_is_added_where_one_of_several_cannot_be(catalog):
    with pytest.raises(sotdd.SotddError, match="dataset 'other' is None"):
        catalog.add_many({"new": catalog.get("set 1"), "other": None})
    assert "new" not in catalog


@pytest.mark.parametrize("options", [5, {"key": 5}, [("key", "value")]])
def test_options_of_stores_are_texts(tmp_path, options):
    with pytest.raises(sotdd.SotddError, match=r"storage_options is .*: expected texts by name"):
        sotdd.Catalog(tmp_path, storage_options=options)
