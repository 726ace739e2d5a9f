"""Sketches of parts that come and go."""

import json

import numpy as np
import pytest

import sotdd
from sketches.cases import labelled


@pytest.fixture
def days(rng):
    return {
        day: labelled(rng, n, shift=shift) for day, n, shift in (("mon", 300, 0), ("tue", 200, 0.1), ("wed", 250, 1))
    }


@pytest.fixture
def projections(days):
    return sotdd.Projections.fit([days["mon"]], n_projections=128, seed=3)


def filled(days, projections, names=("mon", "tue", "wed")):
    window = sotdd.SketchWindow(projections)
    for name in names:
        window.add(name, *days[name])
    return window


def alike(a, b):
    np.testing.assert_array_equal(a.quantiles, b.quantiles)
    np.testing.assert_array_equal(a.counts, b.counts)
    np.testing.assert_allclose(a.class_terms, b.class_terms, rtol=1e-6)
    np.testing.assert_allclose(a.controls.places, b.controls.places, rtol=1e-5, atol=1e-6)


def test_what_is_forgotten_leaves_nothing_behind(days, projections):
    left = filled(days, projections).forget("mon")
    x, y = days["wed"]  # rows are added to a part of the same name
    never = filled(days, projections, ("tue",)).add("wed", x[:100], y[:100]).add("wed", x[100:], y[100:])
    assert left.names == never.names == ("tue", "wed")
    assert left.n_points == never.n_points == 450
    alike(left.finish(), never.finish())


def test_a_window_is_the_sketch_of_all_rows(days, projections):
    x, y = (np.concatenate(parts) for parts in zip(*days.values(), strict=True))
    made, whole = filled(days, projections).finish("week"), sotdd.sketch((x, y), projections)
    other = sotdd.sketch(labelled(np.random.default_rng(5), 400, shift=0.5), projections)
    assert made.name == "week"
    assert made.distance(other).value == pytest.approx(whole.distance(other).value, rel=0.01)
    assert made.distance(other).within_noise is False


def test_a_file_goes_on_where_it_was_left(days, projections, tmp_path):
    path = tmp_path / "week.sotdd"
    filled(days, projections, ("mon", "tue")).save(path)
    again, whole = sotdd.SketchWindow.load(path), filled(days, projections).finish()
    assert again.names == ("mon", "tue")
    again.add("wed", *days["wed"]).save(path)
    for made in (again.finish(), sotdd.Sketch.load(path)):  # a window is read as its sketch, too
        alike(made, whole)
    assert sotdd.Sketch.load(path).name == "week"
    assert sotdd.distance(str(path), days["mon"]).value > 0


def test_what_cannot_be_done_is_refused(days, projections, tmp_path):
    window = filled(days, projections)
    sotdd.sketch(days["mon"], projections).save(tmp_path / "one.sotdd")
    for call, named in [
        (lambda: window.forget("sun"), "'sun' .*'mon', 'tue', 'wed'"),
        (lambda: window.forget([]), "name"),
        (lambda: sotdd.SketchWindow(projections).finish(), "no points"),
        (lambda: window.add("bad", np.full((3, 6), np.nan)), "NaN"),
        (lambda: sotdd.SketchWindow.load(tmp_path / "one.sotdd"), "expected a sketch window"),
    ]:
        with pytest.raises(sotdd.SotddError, match=named):
            call()
    assert window.names == ("mon", "tue", "wed")
    assert window.finish().n_points == 750
    with pytest.raises(sotdd.SotddError, match="text"):
        window.add("thu", days["mon"][0], ["a"] * 300).finish()


def test_a_rolling_window_behind_a_gate(tmp_path, days, run):
    """The reference is Monday: Tuesday may pass, Wednesday has drifted. An update that fails changes nothing."""
    for name, (x, y) in days.items():
        np.savez(tmp_path / f"{name}.npz", X=x, y=y)
    reference, week, mon = (tmp_path / name for name in ("reference.sotdd", "week.sotdd", "mon.npz"))
    assert run("sketch", mon, "-o", reference, "--n-projections", 128)[0] == 0
    code, out, _ = run("sketch", mon, "-o", week, "--parts", "--like", reference)
    assert (code, "300 points" in out) == (0, True)
    assert run("check", reference, week)[0] == 0
    before = week.read_bytes()
    for wrong in (("--forget", "sun"), ("--forget", "mon.npz"), (tmp_path / "missing.npz",), (mon,)):
        code, _, said = run("update", week, *wrong)
        assert (code, len(said.strip().splitlines())) == (2, 1)
    assert week.read_bytes() == before
    assert run("update", week, mon, "--forget", "mon.npz")[0] == 0  # replaced
    assert json.loads(run("update", week, "--json")[1])["parts"] == {"mon.npz": 300}
    code, out, _ = run("update", week, tmp_path / "wed.npz", "--forget", "mon.npz", "--json")
    assert (code, json.loads(out)["parts"]) == (0, {"wed.npz": 250})
    code, out, _ = run("check", reference, week, "--json")
    told = json.loads(out)
    assert (code, told["drifted"], told["checks"][0]["criterion"]) == (1, True, "noise")
    assert told["distance"]["within_noise"] is False
