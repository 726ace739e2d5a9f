"""The commands matrix, rank and explain, as a user runs them."""

import csv
import io
import json

import numpy as np
import pytest
from rich.console import Console

import sotdd
from sotdd.cli import terminal

FEW = ("--n-projections", "200")


@pytest.fixture
def files(rng, tmp_path, monkeypatch):
    """Five datasets: near and far, two equally far in other directions, one with a name that looks like markup."""
    monkeypatch.chdir(tmp_path)
    x, y = rng.normal(size=(300, 4)), rng.choice(["cat", "dog"], size=300)
    np.savez("here.npz", X=x, y=y)
    np.savez("again.npz", X=rng.normal(size=(250, 4)), y=rng.choice(["cat", "dog"], size=250))
    np.savez("north.npz", X=x + np.array([2, 0, 0, 0]), y=y)
    np.savez("east.npz", X=x + np.array([0, 2, 0, 0]), y=y)
    np.savez("far[red].npz", X=x + 3, y=y)
    np.savez("flat.npz", X=x[:, :3], y=y)
    return tmp_path


def loaded(*names):
    found = {}
    for name in names:
        with np.load(name) as arrays:
            found[name] = arrays["X"], arrays["y"]
    return found


def test_matrix_as_json_is_pairwise(files, run):
    code, said, errors = run(
        "matrix", "here.npz", "again.npz", "far[red].npz", "--json", *FEW, "--seed", "3", "--p", "1"
    )
    assert (code, errors) == (0, "")
    data = loaded("here.npz", "again.npz", "far[red].npz")
    expected = sotdd.pairwise(data, n_projections=200, seed=3, p=1)
    assert json.loads(said) == json.loads(json.dumps(expected.to_dict()))


def test_matrix_for_people(files, run):
    names = ["here.npz", "again.npz", "far[red].npz"]
    code, said, errors = run("matrix", *names, *FEW, "--noise-floor")
    assert (code, errors) == (0, "")
    header, *rows, legend = said.splitlines()
    assert header.split() == names
    matrix = sotdd.pairwise(loaded(*names), n_projections=200, noise_floor=True)
    assert [row.split()[0] for row in rows] == names
    for row, i in zip(rows, range(3), strict=True):
        cells = row.split(maxsplit=1)[1].split("  ")
        shown = [cell.strip() for cell in cells if cell.strip()]
        for cell, j in zip(shown, range(3), strict=True):
            if i == j:
                assert cell == "·"
                continue
            found = matrix[names[i], names[j]]
            assert float(cell.split(" ± ")[0]) == pytest.approx(found.value, abs=found.stderr)
            assert cell.endswith("~") == found.within_noise
    assert matrix.within_noise[0, 1]
    assert not matrix.within_noise[0, 2]
    assert "± one standard error" in legend
    assert run("matrix", *names, *FEW, "-q")[1].count("\n") == 4


def test_matrix_as_csv(files, run):
    code, said, _ = run("matrix", "here.npz", "far[red].npz", "--csv", *FEW)
    rows = list(csv.reader(io.StringIO(said)))
    matrix = sotdd.pairwise(loaded("here.npz", "far[red].npz"), n_projections=200)
    assert code == 0
    assert rows[0] == ["", "here.npz", "far[red].npz"]
    np.testing.assert_array_equal([[float(cell) for cell in row[1:]] for row in rows[1:]], matrix.values)


def test_tables_as_csv_and_how_many_remarks(files, run):
    def rows(*line):
        return list(csv.DictReader(io.StringIO(run(*line, "--csv", *FEW)[1])))

    order = sotdd.rank("here.npz", ["again.npz", "east.npz"], n_projections=200)
    ranked = rows("rank", "here.npz", "east.npz", "again.npz")
    assert [(row["name"], float(row["value"])) for row in ranked] == [(one.name, one.distance.value) for one in order]
    assert [row["label"] for row in rows("explain", "here.npz", "east.npz")] == ["cat", "dog"] * 2
    assert [row["verdict"] for row in rows("check", "here.npz", "again.npz", "east.npz")] == ["passed", "drift"]
    names = [f"{name}.npz" for name in ("here", "again", "north", "east")]
    line = ["matrix", *names, "--method", "mmd", "--max-points", "50"]
    assert (run(*line)[1].count("were sampled"), run(*line, "-v")[1].count("were sampled")) == (3, 4)
    assert "1 more remark: add -v" in run(*line)[1]


def test_sketches_and_catalogs_print_remarks_as_other_commands_do(files, run):
    pytest.importorskip("lancedb")
    rows = [f"{k},{k * 37 % 61},{k * 37 % 11 or ''},${k / 7:.2f},{k % 3}" for k in range(60)]
    (files / "t.csv").write_text("\n".join(["id,code,age,price,label", *rows]))
    reading = ("t.csv", "--label", "label")
    told = json.loads(run("sketch", *reading, "-o", "t.sotdd", "--json", *FEW)[1])
    kinds = ["columns left out", "values filled", "numbers in text", "may be ids"]
    assert sorted(remark["kind"] for remark in told["remarks"]) == sorted(kinds)
    run("catalog", "add", "shop", "first", "t.sotdd")
    for line in (
        ["sketch", *reading, "-o", "w.sotdd", *FEW],
        ["catalog", "add", "shop", "one", *reading, "--overwrite"],
        ["catalog", "search", "shop", *reading],
    ):
        few, everything = run(*line)[1], run(*line, "-v")[1]
        assert "left out: id" in few
        assert few.count("code") + few.count("price") == 1
        assert everything.count("code") + everything.count("price") == 2


def test_distances_and_rankings_have_a_page(files, run):
    code, said, _ = run("distance", "here.npz", "east.npz", "--rel-tol", "0.05", "--report", "d.html", "--title", "Two")
    page = (files / "d.html").read_text(encoding="utf-8")
    assert (code, "wrote d.html" in said, "<title>Two" in page, "rel_tol" in page) == (0, True, True, False)
    taken = json.loads(run("distance", "here.npz", "east.npz", "--rel-tol", "0.05", "--json")[1])["n_projections"]
    assert f"n_projections={taken}" in page
    assert run("matrix", "gone.npz", "here.npz", "--report", "r.pdf")[2].count("r.html") == 1


def test_matrix_of_sketches_and_data(files, run):
    run("sketch", "here.npz", "-o", "here.sotdd", *FEW, "-q")
    run("sketch", "east.npz", "-o", "east.sotdd", "--like", "here.sotdd", "-q")
    told = json.loads(run("rank", "here.sotdd", "east.sotdd", "again.npz", "--json")[1])
    assert [line["name"] for line in told["ranking"]] == ["again.npz", "east.sotdd"]
    code, said, errors = run("matrix", "here.sotdd", "east.sotdd", "again.npz", "--json", "--report", "r.html")
    assert (code, errors) == (0, "")
    told = json.loads(said)
    assert told["names"] == ["here.sotdd", "east.sotdd", "again.npz"]
    assert told["report"] == "r.html"
    assert told["values"][0][1] == json.loads(run("distance", "here.sotdd", "east.sotdd", "--json")[1])["value"]


def test_names_can_be_chosen(files, run):
    told = json.loads(run("matrix", "here.npz::name=ours", "far[red].npz::name=theirs", "--json", *FEW)[1])
    assert told["names"] == ["ours", "theirs"]
    run("sketch", "here.npz::name=ours", "-o", "s.sotdd", "-q", *FEW)
    assert sotdd.Sketch.load("s.sotdd").name == "ours"


def shown_at(width, monkeypatch, run, *arguments):
    """Output at a terminal of this width, without colours."""
    monkeypatch.setattr(
        terminal, "console", lambda: Console(highlight=False, markup=False, width=width, force_terminal=False)
    )
    return run(*arguments)[1]


def test_tables_are_laid_out_to_fit(files, run, monkeypatch):
    command = ["matrix", "here.npz", "again.npz", "north.npz", "east.npz", *FEW]
    assert shown_at(100, monkeypatch, run, *command).splitlines()[1].count("±") == 3
    narrow = shown_at(40, monkeypatch, run, *command).splitlines()[:5]
    assert narrow[0].split() == ["1", "2", "3", "4"]
    assert [row.split()[:2] for row in narrow[1:3]] == [["1", "here.npz"], ["2", "again.npz"]]
    assert max(map(len, narrow)) <= 40
    assert "…" not in shown_at(10, monkeypatch, run, *command)  # too long rather than cut short


def test_a_report_is_written(files, run):
    code, said, _ = run("matrix", "here.npz", "far[red].npz", *FEW, "--report", "page.html")
    assert code == 0
    assert said.endswith("wrote page.html\n")
    page = (files / "page.html").read_text(encoding="utf-8")
    assert "far[red].npz" in page
    run("matrix", "here.npz", "far[red].npz", *FEW, "--report", "bare.html", "--no-classes", "-q")
    assert len((files / "bare.html").read_text(encoding="utf-8")) < len(page)


def test_a_report_that_fails_leaves_the_old_one(files, run):
    (files / "page.html").write_text("old")
    assert run("matrix", "here.npz", "flat.npz", "--report", "page.html")[0] == 2
    assert (files / "page.html").read_text() == "old"


def test_rank(files, run):
    candidates = ["far[red].npz", "north.npz", "again.npz", "east.npz"]
    code, said, errors = run("rank", "here.npz", *candidates, "--json", "--noise-floor", *FEW)
    assert (code, errors) == (0, "")
    told = json.loads(said)
    lines = told["ranking"]
    assert [line["rank"] for line in lines] == [1, 2, 2, 4]
    assert [line["tied"] for line in lines] == [False, True, True, False]
    assert (lines[0]["name"], lines[3]["name"]) == ("again.npz", "far[red].npz")
    assert [line["within_noise"] for line in lines] == [True, False, False, False]
    matrix = sotdd.pairwise(loaded("here.npz", *candidates), n_projections=200)
    assert [line["value"] for line in lines] == [line.distance.value for line in matrix.ranking("here.npz")]
    code, said, errors = run("rank", "here.npz", *candidates, "--noise-floor", *FEW)
    assert (code, errors) == (0, "")
    first, header, *rows, answer, legend = said.splitlines()
    assert "here.npz: 300 points, 4 features, 2 classes" in first
    assert header.split("  ")[0] == "rank"
    assert header.endswith("distance  beyond noise")
    assert [row.split()[0] for row in rows] == ["1", "2=", "2=", "4"]
    assert ["~" in row for row in rows] == [True, False, False, False]
    assert (told["best"], answer) == (["again.npz"], "nearest: again.npz")
    assert "= not significantly different" in legend


def test_explain(files, run):
    code, said, errors = run("explain", "here.npz", "far[red].npz", *FEW)
    assert (code, errors) == (0, "")
    data = loaded("here.npz", "far[red].npz")
    why = sotdd.explain(*(sotdd.open_dataset(source, name=name) for name, source in data.items()), n_projections=200)
    assert said.startswith(why.table())
    told = json.loads(run("explain", "here.npz", "far[red].npz", *FEW, "--json")[1])
    assert told == {"a": "here.npz", "b": "far[red].npz", **json.loads(json.dumps(why.to_dict()))}
    assert "… and 1 more" in run("explain", "here.npz", "far[red].npz", *FEW, "--top", "1")[1]
