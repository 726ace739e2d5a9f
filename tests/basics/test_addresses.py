"""Addresses go wherever paths go: references, sketches, logs, pages and tables, on real stores and servers."""

import functools
import http.server
import json
import sys
import threading
import urllib.request
from pathlib import Path

import fsspec
import numpy as np
import pytest

import sotdd
from sotdd.basics.files import read_whole, refuse_unwritable, write_whole

RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(60, 3)), np.arange(60) % 2
FEW = ("--n-projections", "16", "--n-permutations", "19")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, shift in (("train", 0), ("same", 0), ("gone", 9)):
        np.savez(f"{name}.npz", X=RNG.permutation(X) + shift, y=Y)
    return tmp_path


@pytest.fixture
def s3(monkeypatch):
    """A bucket of moto's, which the environment leads to."""
    server = pytest.importorskip("moto.server").ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    endpoint = "http://{}:{}".format(*server.get_host_and_port())
    urllib.request.urlopen(urllib.request.Request(f"{endpoint}/bucket", method="PUT")).close()
    for name, value in {
        "ENDPOINT_URL": endpoint,
        "ACCESS_KEY_ID": "a",
        "SECRET_ACCESS_KEY": "b",
        "REGION": "x",
    }.items():
        monkeypatch.setenv(f"AWS_{name}", value)
    yield "s3://bucket"
    server.stop()


@pytest.fixture(params=["memory", "file", pytest.param("s3", marks=pytest.mark.slow)])
def place(request, folder):
    """The address of a folder on a store."""
    if request.param == "s3":
        yield request.getfixturevalue("s3")
    elif request.param == "file":
        yield folder.as_uri()
    else:
        yield "memory://bucket"
        fsspec.filesystem("memory").rm("/bucket", recursive=True)


def text_at(address):
    return read_whole(address, "text").decode()


def test_a_gate_whose_files_are_all_on_a_store(place, run):
    write_whole(f"{place}/train.npz", Path("train.npz").read_bytes())
    assert run("reference", f"{place}/train.npz", "-o", f"{place}/train.ref", "--n-projections", "16")[0] == 0
    log, page = f"{place}/gate.log", f"{place}/gate.html"
    gate = ("check", f"{place}/train.ref", "--n-permutations", "19", "--log", log, "--report", page)
    assert run(*gate, "same.npz", "--p-value", "0.05")[0] == 0
    code, out, _ = run(*gate, f"{place}/train.npz", "gone.npz", "--p-value", "0.2", "--json")
    assert (code, json.loads(out)["report"]) == (1, page)
    assert [json.loads(line)["verdict"] for line in text_at(log).splitlines()] == ["passed", "passed", "drift"]
    assert "Over time" in text_at(page)
    code, _, said = run("check", f"{place}/no.ref", "same.npz")
    assert (code, "no.ref" in said, "expected the file of a drift reference" in said) == (2, True, True)


def test_sketches_on_a_store(place, run):
    made, other = f"{place}/train.sotdd", f"{place}/same.sotdd"
    code, out, _ = run("sketch", "train.npz", "-o", made, "--n-projections", "16", "--json")
    assert (code, json.loads(out)["file"]) == (0, made)
    assert run("sketch", "same.npz", "-o", other, "--like", made)[0] == 0
    code, out, _ = run("distance", made, other, "--json")
    assert (code, json.loads(out)["b"]) == (0, other)
    assert run("sketch", "train.npz", "-o", f"{place}/x.npz")[0] == 2


def test_pages_and_tables_on_a_store(place, run, folder):
    matrix = sotdd.pairwise({"a": (X, Y), "b": (X + 1, Y)}, n_projections=8)
    assert matrix.to_csv(f"{place}/values.csv") == text_at(f"{place}/values.csv")
    assert str(sotdd.report(matrix, f"{place}/one.html")).endswith("one.html")
    assert run("test", "train.npz", "gone.npz", *FEW, "--report", f"{place}/two.html")[0] == 0
    assert all("</html>" in text_at(f"{place}/{name}.html") for name in ("one", "two"))
    assert not [path for path in folder.iterdir() if path.name.startswith((".sotdd", "memory:", "s3:", "file:"))]


def test_references_behind_a_web_server(folder, run):
    sotdd.DriftReference.fit((X, Y), n_projections=16).save("train.ref")
    handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=folder)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, args=(0.02,)).start()
        web = f"http://127.0.0.1:{server.server_address[1]}"
        assert run("check", f"{web}/train.ref?token=1", "same.npz", "--n-permutations", "19")[0] == 0
        code, _, said = run("check", f"{web}/no.ref", "same.npz")
        assert (code, "HTTP Error 404" in said) == (2, True)
        server.shutdown()


@pytest.mark.parametrize("address", ["https://example.org/a.ref", "klingon://bucket/a.ref", "memory://bucket/"])
def test_addresses_that_cannot_be_written_are_refused_before_the_work(address, folder, run):
    with pytest.raises(sotdd.SotddError, match="cannot"):
        refuse_unwritable(address)
    assert run("reference", "no such file", "-o", address)[0] == 2
    code, _, said = run("check", "train.npz", "same.npz", "--log", address, *FEW)
    assert (code, said.count("\n")) == (2, 1)


def test_what_goes_wrong_in_a_store_is_one_line(monkeypatch):
    def full(*_, **__):
        raise RuntimeError("quota exceeded\nby 3 GB")

    monkeypatch.setattr(type(fsspec.filesystem("memory")), "_open", full)
    with pytest.raises(sotdd.SotddError, match=r"cannot write 'memory://bucket/a' \(quota exceeded\)"):
        write_whole("memory://bucket/a", b"new")
    monkeypatch.setitem(sys.modules, "fsspec", None)
    with pytest.raises(sotdd.SotddError, match="pip install fsspec"):
        write_whole("memory://bucket/a", b"new")
