"""Numbers and tables as text."""

import math

import pytest

from sotdd.basics.text import align_rows, with_error


@pytest.mark.parametrize(
    ("value", "stderr", "text"),
    [
        (0.50712, 0.01234, "0.507 ± 0.012"),
        (0.0, 0.0, "0 ± 0"),
        (0.50712, math.nan, "0.5071"),
        (0.50712, math.inf, "0.5071"),
        (12345.6, 123.4, "12350 ± 120"),
        (1.23456e9, 1.2e7, "1.235e+09 ± 1.2e+07"),
        (1e-9, 1.234e-11, "1e-09 ± 1.2e-11"),
        (3.0, 250.0, "0 ± 250"),
    ],
)
def test_a_value_has_as_many_digits_as_its_error_allows(value, stderr, text):
    assert with_error(value, stderr) == text


def test_columns_are_aligned_by_letters_not_bytes():
    lines = align_rows([("name", "value"), ("Größe", "0.5 ± 0.1"), ("Ω", "1")], to_the_right=[1])
    assert lines == ["name       value", "Größe  0.5 ± 0.1", "Ω              1"]
    assert align_rows([("a", "long"), ("b", "x")]) == ["a  long", "b  x"]
