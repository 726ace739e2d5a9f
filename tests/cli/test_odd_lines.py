"""Odd command lines and odd files, drawn at random: every outcome is a result, or one line that says what to do.

Warnings are errors here, so a line that warns fails too. ``SOTDD_FUZZ=100000`` draws a hundredth of that, new ones.
"""

import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import sotdd

EXAMPLES = max(60, int(os.environ.get("SOTDD_FUZZ", "0")) // 100)

fuzz = settings(
    max_examples=EXAMPLES,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)

WORDS = [
    "distance", "matrix", "rank", "mix", "explain", "test", "check", "sketch", "catalog", "add", "search", "list",
    "remove", "demo", "a.npz", "b.npz", "odd.npz", "odd.csv", "odd.npy", "odd.parquet", "odd.sotdd",
    "a.sotdd", "folder", "kept", "missing.npz", "a.npz::", "a.npz::label=", "a.npz::features=X,label=y",
    "odd.csv::label=x",
    "--n-projections", "--seed", "--p", "--label", "--features", "--label-law", "--noise-floor",
    "--method", "--device", "--csv", "--json", "--quiet", "--n-permutations", "--max-points",
    "--top", "--like", "-o", "out.sotdd", "--report", "out.html", "--fail-above", "-k",
    "--p-value",
    "--", "-", "", "0", "1", "3", "-1", "nan", "inf", "1e400", "99999999999999999999", "cpu", "otdd", "frechet",
    "plain", "quantiles", "X", "y", "x", "--help", "--version", "[bold]", "\x00", "é", "../", "/",
]  # fmt: skip
lines = st.one_of(
    st.lists(st.one_of(st.sampled_from(WORDS), st.text(max_size=5)), max_size=7),
    st.builds(
        lambda command, sources, rest: [command, *sources, "--n-projections", "3", *rest],
        st.sampled_from(["distance", "matrix", "rank", "mix", "explain", "test", "check", "sketch"]),
        st.lists(st.sampled_from(WORDS[15:31]), min_size=1, max_size=2),
        st.lists(st.sampled_from(WORDS[31:]), max_size=4),
    ),
)
contents = st.one_of(
    st.binary(max_size=60),
    st.text(alphabet='x,y;"\n1 0.é\t-eNa', max_size=60).map(str.encode),
    st.sampled_from([b"PK\x03\x04", b"\x93NUMPY", b"PAR1", b"x,y\n1,a\n2,b\n", b"\xff\xfe", b"x,x\n1,2\n", b"{}"]),
)


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    for name in "ab":
        np.savez(f"{name}.npz", X=rng.normal(size=(9, 2)), y=np.arange(9) % 2)
    projections = sotdd.Projections.fit(["a.npz"], n_projections=3)
    sotdd.sketch("a.npz", projections).save("a.sotdd")
    Path("folder").mkdir()
    return tmp_path


@pytest.mark.slow
@fuzz
@given(lines, contents)
def test_the_command_line(files, run, arguments, content):
    for kind in ("npz", "csv", "npy", "parquet", "sotdd"):
        Path(f"odd.{kind}").write_bytes(content)
    code, _, said = run(*arguments)
    assert code in {0, 1, 2}, (arguments, said)
    assert "Traceback" not in said
