"""Results in notebooks, in order and in format strings."""

import html.parser

import numpy as np
import pytest

import sotdd

ODD = "<script>alert('x')</script>\x1b[31m"


class Balanced(html.parser.HTMLParser):
    """Goes through a piece of HTML, and keeps its tags and its text."""

    def __init__(self, text):
        super().__init__()
        self.open, self.tags, self.text = [], [], ""
        self.feed(text)
        assert not self.open

    def handle_starttag(self, tag, attrs):
        self.open.append(tag)
        self.tags.append(tag)
        assert not any(name.startswith("on") for name, _ in attrs)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data


@pytest.fixture(scope="module")
def results():
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(120, 3)), np.repeat([ODD, "b"], 60)
    moved = x + np.array([0, 1, 0])
    matrix = sotdd.pairwise({ODD: (x, y), "b": (moved, y), "c": (x[:50] * 2, y[:50])}, n_projections=64)
    ours = sotdd.LabelledData.of((x, y), ODD)
    return {
        "matrix": matrix,
        "ranking": sotdd.rank(ours, {ODD: (moved, y), "c": (x, y)}, n_projections=64),
        "explanation": sotdd.explain(ours, (moved, y), n_projections=64),
    }


@pytest.mark.parametrize("name", ["matrix", "ranking", "explanation"])
def test_results_show_themselves_without_a_word_of_the_data_as_html(results, name):
    written = results[name]._repr_html_()
    page = Balanced(written)
    assert "script" not in page.tags
    assert "\x1b" not in written
    assert "<script>alert('x')</script>" in page.text
    for line in repr(results[name]).splitlines()[1:]:
        for cell in line.split("  "):
            assert cell.strip() in page.text
