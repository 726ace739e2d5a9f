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
    never = filled(days, projections, ("tue", "wed"))
    assert left.names == ("tue", "wed")
    assert left.n_points == 450
    alike(left.finish(), never.finish())


def test_a_window_is_the_sketch_of_all_rows(days, projections):
    x, y = (np.concatenate(parts) for parts in zip(*days.values(), strict=True))
    made, whole = filled(days, projections).finish("week"), sotdd.sketch((x, y), projections)
    other = sotdd.sketch(labelled(np.random.default_rng(5), 400, shift=0.5), projections)
    assert made.name == "week"
    assert made.distance(other).value == pytest.approx(whole.distance(other).value, rel=0.01)
    assert made.distance(other).within_noise is False


def test_rows_are_added_to_a_part_of_the_same_name(days, projections):
    x, y = days["mon"]
    window = sotdd.SketchWindow(projections).add("mon", x[:100], y[:100]).add("mon", x[100:], y[100:])
    assert (window.names, window.n_points) == (("mon",), 300)
    alike(window.finish(), filled(days, projections, ("mon",)).finish())


def test_a_file_goes_on_where_it_was_left(days, projections, tmp_path):
    path = tmp_path / "week.sotdd"
    filled(days, projections, ("mon", "tue")).save(path)
    again = sotdd.SketchWindow.load(path)
    assert again.names == ("mon", "tue")
    alike(again.add("wed", *days["wed"]).finish(), filled(days, projections).finish())
    again.forget("mon").save(path)
    assert sotdd.SketchWindow.load(path).names == ("tue", "wed")


def test_a_window_is_read_as_its_sketch(days, projections, tmp_path):
    path = tmp_path / "week.sotdd"
    window = filled(days, projections)
    window.save(path)
    alike(sotdd.Sketch.load(path), window.finish())
    assert sotdd.Sketch.load(path).name == "week"
    assert sotdd.distance(str(path), days["mon"]).value > 0


def test_what_cannot_be_done_is_refused(days, projections, tmp_path):
    window = filled(days, projections)
    sotdd.sketch(days["mon"], projections).save(tmp_path / "one.sotdd")
    for call, said in [
        (lambda: window.forget("sun"), "no part 'sun' to forget: there is 'mon', 'tue', 'wed'"),
        (lambda: window.forget([]), "name is a list"),
        (lambda: sotdd.SketchWindow(projections).finish(), "no points to sketch"),
        (lambda: window.add("thu", days["mon"][0], ["a"] * 300).finish(), "labels are text in one batch"),
        (lambda: sotdd.SketchWindow.load(tmp_path / "one.sotdd"), "holds a sketch: expected a sketch window"),
    ]:
        with pytest.raises(sotdd.SotddError, match=said):
            call()


def test_a_failed_part_is_not_there(days, projections):
    window = filled(days, projections, ("mon",))
    with pytest.raises(sotdd.SotddError):
        window.add("bad", np.full((3, 6), np.nan))
    assert window.names == ("mon",)
    window.finish()


# ------------------------------------------------------------------ the command line


@pytest.fixture
def files(tmp_path, days):
    for name, (x, y) in days.items():
        np.savez(tmp_path / f"{name}.npz", X=x, y=y)
    return tmp_path


def test_a_rolling_window_behind_a_gate(files, run):
    """The reference is Monday: Tuesday may pass, Wednesday has drifted."""
    reference, week = files / "reference.sotdd", files / "week.sotdd"
    assert run("sketch", files / "mon.npz", "-o", reference, "--n-projections", 128)[0] == 0
    code, out, _ = run("sketch", files / "mon.npz", "-o", week, "--parts", "--like", reference)
    assert (code, "week.sotdd: 300 points" in out) == (0, True)
    assert run("check", reference, week)[0] == 0
    code, out, _ = run("update", week, files / "wed.npz", "--forget", "mon.npz", "--json")
    assert (code, json.loads(out)["parts"]) == (0, {"wed.npz": 250})
    code, out, _ = run("check", reference, week, "--json")
    told = json.loads(out)
    assert (code, told["drifted"], told["checks"][0]["criterion"]) == (1, True, "noise")
    assert told["distance"]["within_noise"] is False
    code, out, _ = run("check", reference, week)
    assert out.startswith("FAILED  ")
    assert "farther than 95 % of samples of one source would be" in out


def test_an_update_that_fails_changes_nothing(files, run):
    week = files / "week.sotdd"
    run("sketch", files / "mon.npz", "-o", week, "--parts", "--n-projections", 64)
    before = week.read_bytes()
    for wrong in (("--forget", "sun"), ("--forget", "mon.npz"), (files / "missing.npz",), (files / "mon.npz",)):
        code, _, said = run("update", week, *wrong)
        assert code == 2
        assert len(said.strip().splitlines()) == 1
    assert week.read_bytes() == before
    code, out, _ = run("update", week, files / "mon.npz", "--forget", "mon.npz")  # replaced
    assert (code, "mon.npz: 300 points" in out) == (0, True)
    code, out, _ = run("update", week)  # nothing to do: what is there
    assert (code, "mon.npz: 300 points" in out) == (0, True)
    assert run("sketch", files / "mon.npz", "-o", week, "--parts", "--half")[0] == 2
