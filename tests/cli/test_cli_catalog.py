"""The commands sketch and catalog, as a user runs them."""

import json
import os

import numpy as np
import pytest

import sotdd

pytest.importorskip("lancedb")


@pytest.fixture
def files(rng, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, shift in {"a": 0.0, "b": 0.3, "c": 2.0}.items():
        np.savez(f"{name}.npz", X=rng.normal(shift, 1, size=(700, 4)), y=rng.choice(["cat", "dog"], size=700))
    np.savez("wide.npz", X=rng.normal(size=(50, 9)), y=rng.integers(3, size=50))
    np.savez("named.npz", points=rng.normal(size=(50, 4)), kind=rng.integers(3, size=50))
    return tmp_path


def loaded(name):
    with np.load(f"{name}.npz") as arrays:
        return arrays["X"], arrays["y"]


def test_sketch_and_distance(files, run):
    code, said, errors = run("sketch", "a.npz", "-o", "a.sotdd", "--n-projections", "200", "--seed", "5")
    assert (code, errors) == (0, "")
    assert "a.sotdd: 700 points, 2 classes, 200 projections × 384 quantiles" in said
    assert "sotdd sketch OTHER -o OTHER.sotdd --like a.sotdd" in said
    assert run("sketch", "b.npz", "-o", "b.sotdd", "--like", "a.sotdd", "-q")[0] == 0
    told = json.loads(run("distance", "a.sotdd", "b.sotdd", "--json")[1])
    projections = sotdd.Projections.fit([loaded("a")], n_projections=200, seed=5)
    direct = sotdd.sketch(loaded("a"), projections).distance(sotdd.sketch(loaded("b"), projections))
    assert told["value"] == direct.value
    assert json.loads(run("distance", "a.sotdd", "b.npz", "--json")[1])["value"] == direct.value
    said = run("distance", "b.npz", "a.sotdd")[1]
    assert "a.sotdd: 700 points, 4 features, 2 classes" in said
    assert repr(direct) in said


def test_sketch_options(files, run):
    whole = json.loads(run("sketch", "a.npz", "-o", "a.sotdd", "--json")[1])
    assert whole["name"] == "a.npz"
    like = json.loads(run("sketch", "b.npz", "-o", "b.sotdd", "--like", "a.sotdd", "--json")[1])
    assert (like["n_quantiles"], like["fingerprint"]) == (384, whole["fingerprint"])
    source = "named.npz::features=points,label=kind"
    assert json.loads(run("sketch", source, "-o", "n.sotdd", "--json")[1])["n_points"] == 50
    by_option = run("sketch", "named.npz", "--features", "points", "--label", "kind", "-o", "n.sotdd", "--json")
    assert json.loads(by_option[1])["n_points"] == 50


def test_a_catalog_from_the_first_to_the_last_entry(files, run):
    code, said, errors = run("catalog", "add", "shop", "first", "a.npz", "--meta", "year=2024", "--meta", "by=it's us")
    assert (code, errors) == (0, "")
    assert "added 'first' to shop: 700 points, 2 classes" in said
    assert "New catalog: datasets added later use the same 1,000 projections" in said
    assert "New catalog" not in run("catalog", "add", "shop", "second", "b.npz", "--meta", "year=2020")[1]
    assert run("sketch", "c.npz", "-o", "c.sotdd", "--like", "shop")[0] == 0
    assert run("catalog", "add", "shop", "third", "c.sotdd", "--meta", 'zip="0123"', "--meta", "ok=true")[0] == 0

    said = run("catalog", "list", "shop")[1]
    assert [line.split()[0] for line in said.splitlines()] == ["name", "first", "second", "third", "3"]
    told = json.loads(run("catalog", "list", "shop", "--json")[1])
    assert [entry["metadata"] for entry in told["entries"]] == [
        {"year": 2024, "by": "it's us"}, {"year": 2020}, {"zip": "0123", "ok": True}
    ]  # fmt: skip
    assert "1 entry of 3 in shop" in run("catalog", "list", "shop", "--where", "by = 'it''s us'")[1]

    told = json.loads(run("catalog", "search", "shop", "c.npz", "-k", "2", "--json")[1])
    assert [hit["name"] for hit in told["ranking"]] == ["third", "second"]
    assert told["ranking"][0]["value"] == 0
    code, said, errors = run("catalog", "search", "shop", "c.sotdd", "--where", "year > 2000")
    assert (code, errors) == (0, "")
    assert [line.split()[1] for line in said.splitlines()[2:4]] == ["second", "first"]

    assert "beyond noise" in run("catalog", "search", "shop", "c.npz")[1]
    assert "2 entries left" in run("catalog", "remove", "shop", "third")[1]
    assert json.loads(run("catalog", "remove", "shop", "second", "--json")[1])["entries"] == 1
    assert run("catalog", "add", "shop", "first", "b.npz", "--overwrite")[0] == 0
    assert json.loads(run("catalog", "list", "shop", "--json")[1])["entries"][0]["metadata"] == {}


@pytest.fixture
def shop(files, run):
    run("sketch", "a.npz", "-o", "a.sotdd", "--n-projections", "64", "-q")
    run("catalog", "add", "shop", "first", "a.sotdd", "-q")
    run("sketch", "b.npz", "-o", "other.sotdd", "--n-projections", "32", "-q")
    (files / "text.sotdd").write_text("text")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["sketch", "a.npz", "-o", "a.bin"], "call it 'a.sotdd'"),
        (["sketch", "a.sotdd", "-o", "x.sotdd"], "is a sketch, which has no points to sketch"),
        (["sketch", "a.npz", "-o", "x.sotdd", "--like", "a.sotdd", "--seed", "1"], "--seed"),
        (["sketch", "wide.npz", "-o", "x.sotdd", "--like", "a.sotdd"], "9 features"),
        (["sketch", "a.npz", "-o", "no/x.sotdd"], "cannot write"),
        (["distance", "a.sotdd", "other.sotdd"], "projections is 64 and 32"),
        (["distance", "a.sotdd", "text.sotdd"], "is not a whole sketch"),
        (["distance", "a.sotdd", "b.npz", "--method", "otdd"], "'a.sotdd' is a sketch"),
        (["catalog", "add", "shop", "first", "b.npz"], "there is an entry 'first'"),
        (["catalog", "add", "shop", "x", "other.sotdd"], "projections is 64 and 32"),
        (["catalog", "add", "shop", "x", "b.npz", "--meta", "year"], "KEY=VALUE"),
        (["catalog", "add", "shop", "x", "b.npz", "--scale", "none"], "--scale"),
        (["catalog", "add", "a.npz", "x", "b.npz"], "'a.npz'"),
        (["catalog", "search", "shop", "a.npz", "--where", "colour = 1"], "colour"),
        (["catalog", "search", "typo", "a.npz"], "'typo'"),
        (["catalog", "remove", "shop", "x"], "there is no entry 'x'"),
    ],
)
def test_errors_are_one_line_and_exit_code_2(shop, run, arguments, said):
    code, output, errors = run(*arguments)
    assert (code, output) == (2, "")
    assert len(errors.splitlines()) == 1, errors
    assert said in errors
    assert not os.path.exists("typo")
    assert not os.path.exists("x.sotdd")


def test_tables_are_read_for_a_catalog_as_for_other_commands(run, rng, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with open("shop.csv", "w", encoding="utf-8") as file:
        file.write("id,age,day,city,y\n")
        for row in range(60):
            age = "" if row == 7 else f"{rng.normal(40, 9):.2f}"
            file.write(f"{row},{age},2024-01-{1 + row % 28:02d},{'Rome' if row % 3 else 'Oslo'},{row % 2}\n")
    refused = run("catalog", "add", "shops", "first", "shop.csv", "--missing", "error")
    assert refused[0] == 2
    assert "missing" in refused[2]
    reading = ["--missing", "drop", "--one-hot", "5", "--exclude", "id"]
    code, said, _ = run("catalog", "add", "shops", "first", "shop.csv", *reading)
    assert code == 0
    assert "59 points" in said
    again = run("catalog", "add", "shops", "first", "shop.csv", *reading)
    assert again[0] == 2
    assert "overwrite" in again[2]
    found = json.loads(run("catalog", "search", "shops", "shop.csv", *reading, "--json")[1])
    assert "first" in json.dumps(found)
