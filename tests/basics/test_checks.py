"""Settings that are accepted, and one-line refusals of all others."""

import numpy as np
import pytest

import sotdd
from sotdd.basics.checks import (
    as_number,
    check_count,
    check_law,
    check_order,
    check_positive,
    check_seed,
    described,
    first_line,
)


def test_good_settings_come_back_as_python_numbers():
    assert (check_count(np.int32(3), "n"), type(check_count(np.int32(3), "n"))) == (3, int)
    assert check_positive(np.float32(0.5), "x") == 0.5
    assert (check_order(1), check_order(np.int64(2))) == (1.0, 2.0)
    assert check_seed(0) == 0
    assert check_seed(np.random.default_rng(1)) == check_seed(np.random.default_rng(1)) >= 0


@pytest.mark.parametrize("value", [0, -1, 1.0, True, None, "3", np.nan, [1]])
def test_counts_are_integers_of_at_least_one(value):
    with pytest.raises(sotdd.SotddError, match=r"^n is .*: expected an integer of at least 1\.$"):
        check_count(value, "n")


@pytest.mark.parametrize("value", [0, -1.0, np.nan, np.inf, True, None, "3", 10**400])
def test_positive_numbers_are_finite(value):
    with pytest.raises(sotdd.SotddError, match=r"^x is .*: expected a positive number\.$"):
        check_positive(value, "x")


@pytest.mark.parametrize("value", [0.5, np.inf, np.nan, None, "2", True])
def test_orders_are_at_least_one(value):
    with pytest.raises(sotdd.SotddError, match=r"^p is "):
        check_order(value)


@pytest.mark.parametrize("value", [-1, 1.5, True, None, "0"])
def test_seeds_are_not_negative(value):
    with pytest.raises(sotdd.SotddError, match=r"^seed is "):
        check_seed(value)


def test_numbers():
    assert as_number(np.float64(2)) == 2.0
    assert as_number(np.inf) == np.inf
    assert [as_number(value) for value in (True, np.True_, "1", None, np.nan, 10**400, 1j)] == [None] * 7


def test_laws_are_instances_with_the_methods():
    class Law:
        def draw(self, one, other):
            """Takes two."""

    check_law(Law(), {"draw": 2}, "expected a law")
    for wrong in (Law, object(), 3):
        with pytest.raises(sotdd.SotddError, match=r"^expected a law, not "):
            check_law(wrong, {"draw": 2}, "expected a law")
    with pytest.raises(sotdd.SotddError, match="not a Law"):
        check_law(Law(), {"draw": 3}, "expected a law")


def test_values_in_errors_are_short():
    assert described(3) == "3"
    assert described("a") == "'a'"
    assert described(dict) == "the class dict itself"
    assert described({}) == "a dict"
    assert len(described("x" * 1000)) == 60
    assert first_line(ValueError("one.\ntwo")) == "one"
    assert first_line(ValueError()) == "ValueError"
