"""Settings that are accepted, and one-line refusals of all others."""

import numpy as np
import pytest

import sotdd
from sotdd.basics.errors import check_count, check_law, check_order, check_positive, check_seed, describe, first_line


def test_good_settings_come_back_as_python_numbers():
    assert (check_count(np.int32(3), "n"), type(check_count(np.int32(3), "n"))) == (3, int)
    assert check_positive(np.float32(0.5), "x") == 0.5
    assert (check_order(1), check_order(np.int64(2))) == (1.0, 2.0)
    assert check_seed(0) == 0
    assert check_seed(np.random.default_rng(1)) == check_seed(np.random.default_rng(1)) >= 0


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
    assert describe(3) == "3"
    assert describe(dict) == "the class dict itself"
    assert describe({}) == "a dict"
    assert len(describe("x" * 1000)) == 60
    assert first_line(ValueError("one.\ntwo")) == "one"
    assert first_line(ValueError()) == "ValueError"
