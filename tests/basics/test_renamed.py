"""Old names of settings work, with a warning at the line that uses them."""

import inspect
import warnings

import pytest

import sotdd
from sotdd.basics.renamed import renamed


def test_an_old_name_becomes_the_new_one_in_its_place():
    with pytest.warns(
        FutureWarning, match="^old= is now called new=: please rename it, the old name will be removed.$"
    ):
        settings = renamed({"a": 1, "old": 2, "b": 3}, "old", "new")
    assert list(settings.items()) == [("a", 1), ("new", 2), ("b", 3)]


def test_new_names_are_not_warned_about():
    with warnings.catch_warnings(action="error"):
        assert renamed({"new": 2}, "old", "new") == {"new": 2}


def test_both_names_are_refused():
    with pytest.raises(sotdd.SotddError, match="old is the old name of new, and both are given: leave old out"):
        renamed({"old": 1, "new": 2}, "old", "new")


def test_the_warning_points_at_the_line_of_the_caller():
    """However deep inside the package the old name is found."""
    data = [[0.0], [1.0], [2.0]]
    line = inspect.currentframe().f_lineno + 2
    with pytest.warns(FutureWarning) as caught:
        sotdd.distance(data, data, label="moments", n_projections=9)
    assert [(warning.filename, warning.lineno) for warning in caught] == [(__file__, line)]
