"""Numbers, lists and tables as text."""

import math

import pytest

from sotdd.basics.text import aligned, counted, listed, with_error


@pytest.mark.parametrize(
    ("count", "text"),
    [(0, "0 classes"), (1, "1 class"), (2, "2 classes"), (1234, "1,234 classes")],
)
def test_counted(count, text):
    assert counted(count, "class", "classes") == text


def test_counted_adds_an_s_unless_told_otherwise():
    assert [counted(count, "point") for count in (0, 1, 2)] == ["0 points", "1 point", "2 points"]


@pytest.mark.parametrize(
    ("value", "stderr", "text"),
    [
        (0.50712, 0.01234, "0.507 ± 0.012"),
        (0.5, 0.0, "0.5 ± 0"),
        (0.0, 0.0, "0 ± 0"),
        (0.50712, math.nan, "0.5071"),
        (0.50712, math.inf, "0.5071"),
        (12345.6, 123.4, "12350 ± 120"),
        (1.23456e9, 1.2e7, "1.235e+09 ± 1.2e+07"),
        (1e-9, 1.234e-11, "1e-09 ± 1.2e-11"),
        (1e300, 1e298, "1e+300 ± 1e+298"),
        (3.0, 250.0, "0 ± 250"),
    ],
)
def test_with_error(value, stderr, text):
    assert with_error(value, stderr) == text


def test_aligned_counts_letters_not_bytes():
    lines = aligned([("name", "value"), ("Größe", "0.5 ± 0.1"), ("Ω", "1")], to_the_right=[1])
    assert lines == ["name       value", "Größe  0.5 ± 0.1", "Ω              1"]


def test_aligned_leaves_no_blanks_at_the_end():
    assert aligned([("a", "long"), ("b", "x")]) == ["a  long", "b  x"]


def test_listed():
    assert listed([]) == ""
    assert listed(["a"]) == "a"
    assert listed(["a", "b"], most=2) == "a, b"
    assert listed(["a", "b", "c"], most=2) == "a, b and 1 more"
    assert listed([str(number) for number in range(2008)], most=1) == "0 and 2,007 more"
