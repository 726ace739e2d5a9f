"""Names that come with the data: no code in them reaches a terminal, no line breaks, nothing endless."""

import json
import pickle

import numpy as np
import pandas as pd
import pytest

import sotdd
from sotdd.basics.text import one_line, show

# Colours, a new line, a letter that turns the direction of writing, a C1 code that begins a sequence.
EVIL = "\x1b[31mred\r\n\u202eevil\x9b2J"
WRITTEN = r"\x1b[31mred\r\n\u202eevil\x9b2J"
LABELS = [EVIL, "plain", EVIL * 20]
LONG = "n" * 100_000


@pytest.fixture(scope="module")
def pair():
    rng = np.random.default_rng(0)
    y = np.repeat(np.array(LABELS, object), 30)
    return (rng.normal(size=(90, 3)), y), (rng.normal(1, 1, size=(90, 3)), y[::-1])


@pytest.fixture
def files(pair, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, (x, y) in zip("ab", pair, strict=True):
        np.savez(f"{name}.npz", X=x, y=y.astype(str))
        pd.DataFrame({f"{EVIL}{name}": x[:, 0], "z": x[:, 1], "y": y}).to_parquet(f"{name}.parquet")
        np.savez(f"{name}{EVIL}.npz", X=x, y=y.astype(str))
    np.savez("few.npz", X=pair[0][0][:, :2], y=pair[0][1].astype(str))
    return tmp_path


def clean(text, lines=True):
    """Whether a terminal shows this text and does nothing else."""
    return all(part.isprintable() for part in (text.split("\n") if lines else [text]))


NAMED = f"::name={EVIL.replace(',', '')}{LONG}"


@pytest.mark.parametrize(
    "words",
    ["distance --noise-floor", "explain", "explain --json", "matrix", "rank", "test --n-permutations 19",
     "check --n-permutations 19"],
)  # fmt: skip
@pytest.mark.parametrize("ends", [".npz", f"{EVIL}.npz", f".npz{NAMED}"], ids=["labels", "file", "name"])
@pytest.mark.usefixtures("files")
def test_commands_print_names_that_are_clean_and_short(words, ends, run):
    command, *options = words.split()
    code, out, err = run(command, f"a{ends}", f"b{ends}", "--n-projections", "32", *options)
    assert code in (0, 1), err
    assert clean(out)
    assert clean(err)
    if "--json" in options:
        json.loads(out)
    else:
        assert max(map(len, out.splitlines())) < 3000
        if command == "explain" or ends != ".npz":
            assert WRITTEN in out


@pytest.mark.usefixtures("files")
def test_sketches_and_catalogs_print_clean_names(run):
    for words, ended in (
        (["sketch", "a.npz", "-o", f"{EVIL}.sotdd", "--n-projections", "16"], 0),
        (["catalog", "add", "shop", "one", "a.npz", "--meta", f"note={EVIL}{LONG}"], 0),
        (["catalog", "add", "shop", EVIL, f"b{EVIL}.npz"], 2),
        (["catalog", "list", "shop"], 0),
        (["catalog", "search", "shop", f"a.npz{NAMED}"], 0),
        (["catalog", "remove", "shop", f"missing {EVIL}"], 2),
    ):
        code, out, err = run(*words)
        assert code == ended, err
        assert clean(out + err)
        assert len(out) < 10_000


@pytest.mark.parametrize(
    "words",
    [
        ["distance", "a.npz", f"missing{EVIL}.npz"],
        ["distance", "a.npz", f"few.npz{NAMED}"],
        ["distance", "a.parquet", "b.parquet"],  # whose columns differ
        ["distance", "a.npz", f"b.npz::{LONG}=1"],
        ["distance", "a.npz", "b.npz", "--method", f"{EVIL}{LONG}"],
        ["matrix", "a.npz", "b.npz", "--report", f"missing/{EVIL}"],
    ],
    ids=lambda words: ascii(words[-1])[:20],
)
@pytest.mark.usefixtures("files")
def test_errors_are_one_short_line(words, run):
    code, out, err = run(*words)
    assert (code, out) == (2, "")
    assert clean(err[:-1], lines=False)
    assert len(err) <= 1010


def test_results_print_clean_names(pair):
    named = dict(zip([EVIL + LONG, "b"], pair, strict=True))
    matrix = sotdd.pairwise(named, n_projections=16)
    why = sotdd.explain(*(sotdd.open_dataset(data, name=name) for name, data in named.items()), n_projections=16)
    ranking = sotdd.rank(sotdd.open_dataset(pair[0], name="a"), named, n_projections=16)
    opened = sotdd.open_dataset(pair[0], name=EVIL + LONG)
    sketch = sotdd.sketch(opened, sotdd.Projections.fit([opened], n_projections=8))
    for result in (matrix, why, ranking, opened, sketch, *matrix.distances.values()):
        assert clean(repr(result))
        assert len(repr(result)) < 10_000
    assert matrix.names[0] == EVIL + LONG  # only what is printed is cut
    assert why.classes[0] == tuple(LABELS)


def test_names_in_text():
    class Silent:
        def __str__(self):
            raise RuntimeError("no")

    assert show(Silent()) == "a Silent"
    for text in ("", "plain text", "größer als 3\u00a0cm", "हिन्दी", "👩\u200d🔬", "日本\u3000語"):
        assert show(text) == one_line(text) == text
    assert show("a" * 5000 + "b" * 5000) == "a" * 80 + "…" + "b" * 79
    error = sotdd.SotddError(f"dataset {LONG!r} has 2 features but dataset {LONG!r} has 1: every one needs the same.")
    assert len(str(error)) < 400
    for part in ("dataset 'nnn", "nnn' has 2 features but dataset 'nnn", "nnn' has 1: every one needs the same."):
        assert part in str(error)
    assert len(str(sotdd.SotddError("word " * 10_000))) == 1000
    assert str(pickle.loads(pickle.dumps(error))) == str(error)
