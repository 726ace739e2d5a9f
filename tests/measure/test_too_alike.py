"""Data that are more alike than samples of one source: found, measured, and no more often by chance than allowed."""

import json

import numpy as np
import pandas as pd
import pytest

import sotdd
from sotdd.basics.remarks import Remark, Verdict

from .test_copies import LAWS, draw


def share_rows(rng, n, k, law="normal"):
    """Two samples of n rows, of which k are in both."""
    rows = draw(law, rng, 2 * n - k)
    return rows[:n], rows[n - k :]


@pytest.mark.slow
@pytest.mark.parametrize("sizes", [(60, 60), (90, 25)])
@pytest.mark.parametrize("law", LAWS)
def test_level_is_exact(law, sizes):
    """Many permutations end early where little is to be found: levels hold all the same, in both tails."""
    low, high, repeats = [], [], 200
    for seed in range(repeats):
        rng = np.random.default_rng([seed, 3])
        found = sotdd.test(*(draw(law, rng, n) for n in sizes), n_permutations=400, n_projections=32, seed=seed)
        low.append(found.too_alike.p_value)
        high.append(found.p_value)
    for p_values in (low, high):
        for level in (0.01, 0.05, 0.1):
            assert np.mean(np.array(p_values) <= level) <= level + 3 * np.sqrt(level * (1 - level) / repeats)


@pytest.mark.parametrize("sizes", [(300, 300), (400, 150)])
def test_the_shared_part_is_estimated(sizes):
    """With k rows in both of n and m, squared distances shrink by 2 k / (n + m): k as a share of the smaller one."""
    n, m = sizes
    shares = []
    for seed in range(12):
        rows = np.random.default_rng(seed).normal(size=(n + m - m // 2, 12))
        shares.append(sotdd.test(rows[:n], rows[n - m // 2 :], n_permutations=99).too_alike)
    within = 4 * shares[0].stderr / np.sqrt(12)
    assert np.mean([one.shared for one in shares]) == pytest.approx(0.5, abs=within)


def test_copied_rows_are_reported_and_change_no_verdict(rng):
    a, b = share_rows(rng, 300, 150)
    found = sotdd.test(a, b)
    assert (found.verdict, len(found.null)) == (Verdict.PASSED, 39)  # which were enough to say so
    assert found.too_alike.p_value <= 0.01
    assert {remark.kind for remark in found.remarks} == {"rows in both", "too alike"}
    assert Remark("rows in both", found=150, rows=300, name="b", other="a") in found.remarks
    told = json.loads(json.dumps(found.to_dict()))["too_alike"]
    assert told == {name: getattr(found.too_alike, name) for name in ("p_value", "shared", "stderr", "visible")}
    jittered = sotdd.test(a, b + rng.normal(0, 1e-3, b.shape))
    assert [remark.kind for remark in jittered.remarks] == ["too alike"]
    assert sotdd.test(a, b, statistic="distance").too_alike.shared > 0.2
    honest = sotdd.test(*share_rows(rng, 300, 0))
    assert (honest.remarks, honest.too_alike.p_value > 0.01) == ((), True)


def test_what_does_not_vary_is_not_too_alike():
    found = sotdd.test(np.ones((20, 2)), np.ones((30, 2)), n_permutations=19)
    assert found.too_alike == sotdd.results.TooAlike()
    assert found.too_alike.list_remarks() == ()


@pytest.mark.parametrize("name", ["sotdd.explain", "sotdd.DriftReference"])
def test_explanations_and_references_remark_on_rows_in_both(rng, name):
    a, b = share_rows(rng, 200, 100)
    test = sotdd.explain(a, b).test if name == "sotdd.explain" else sotdd.DriftReference.fit(a).test(b)
    assert "rows in both" in {remark.kind for remark in test.remarks}


def test_a_check_says_that_a_batch_repeats_its_reference(rng, run, tmp_path, monkeypatch):
    """On the terminal, as JSON, in the log and on the page; the check passes, since nothing has drifted."""
    monkeypatch.chdir(tmp_path)
    rows = pd.DataFrame(rng.normal(size=(300, 4)), columns=[*"abcd"])
    rows.to_csv("train.csv", index=False)
    (rows + 1e-4).to_csv("memorised.csv", index=False)
    files = ("--log", "gate.log", "--report", "page.html", "--summary", "s.json", "--junit", "j.xml")
    code, said, _ = run("check", "train.csv", "memorised.csv", *files)
    assert (code, "passed" in said, "nearer than samples of one source" in said) == (0, True, True)
    for file in ("gate.log", "page.html", "s.json"):
        assert "nearer than samples of one source" in (tmp_path / file).read_text(encoding="utf-8")
    told = json.loads(run("check", "train.csv", "memorised.csv", "--json")[1])
    assert told["test"]["too_alike"]["p_value"] == 0.005
    assert [remark["kind"] for remark in told["schema"]] == ["too alike"]
    for name in ("train", "memorised"):
        run("sketch", f"{name}.csv", "-o", f"{name}.sotdd", *(("--like", "train.sotdd") if name != "train" else ()))
    code, said, _ = run("check", "train.sotdd", "memorised.sotdd")
    assert (code, "nearer than samples of one source" in said) == (0, True)


def test_sketches_see_large_shares_alone():
    """By halves of each sketch: half of the rows in both shows among many features, a tenth does not."""
    found = {0.0: [], 0.1: [], 0.8: []}
    for seed in range(12):
        for share, each in found.items():
            a, b = share_rows(np.random.default_rng(seed), 400, int(400 * share))
            projections = sotdd.Projections.fit([a, b], n_projections=128)
            each.append(sotdd.sketch(a, projections).distance(sotdd.sketch(b, projections)).too_alike)
    seen = {share: sum(bool(one.list_remarks()) for one in each) for share, each in found.items()}
    assert seen[0.0] + seen[0.1] <= 1 < seen[0.8]
    assert np.mean([one.shared for one in found[0.8]]) == pytest.approx(0.8, abs=0.15)
    assert all(0.1 < one.visible < 0.8 for one in found[0.8])
    same = sotdd.sketch(a, projections)
    assert same.distance(same).too_alike.shared == 1
    assert "of rows stood in both" in repr(same.distance(same))
    assert same.distance(same).to_dict()["too_alike"]["shared"] == 1
    assert sotdd.distance(a, b).too_alike is None
