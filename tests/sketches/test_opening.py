"""Sources are opened once: public calls open what they are given, and what they call works on labelled data."""

import sys

import numpy as np
import pytest

import sotdd
from sketches.cases import labelled


@pytest.fixture
def openings():
    """Counts the calls of open_dataset while a function runs."""

    def count(call):
        calls = []

        def profile(frame, event, _):
            if event == "call" and frame.f_code is sotdd.open_dataset.__code__:
                calls.append(frame.f_code.co_name)

        sys.setprofile(profile)
        try:
            call()
        finally:
            sys.setprofile(None)
        return len(calls)

    return count


def test_a_sketch_opens_its_data_once(openings, pair, projections):
    a, b = pair
    assert openings(lambda: sotdd.sketch(a, projections).distance(sotdd.sketch(b, projections))) == 2


def test_a_large_dataset_is_opened_once_however_many_batches_it_has(openings, pair, projections, monkeypatch):
    monkeypatch.setattr("sotdd.sketches.making._MOST_SORTED", 1000)
    monkeypatch.setattr("sotdd.sketches.making._BATCH_VALUES", 6 * 700)
    assert openings(lambda: sotdd.sketch(pair[0], projections)) == 1
    monkeypatch.setattr("sotdd.sketches.statistics.CLASS_BYTES", 0)  # which takes two passes
    assert openings(lambda: sotdd.sketch(pair[0], projections)) == 1


def test_data_beside_a_sketch_are_opened_once(openings, pair, projections):
    made, opened = sotdd.sketch(pair[0], projections), sotdd.open_dataset(pair[1])
    assert openings(lambda: sotdd.distance(made, pair[1])) == 1
    assert openings(lambda: sotdd.distance(made, opened)) == 0
    assert openings(lambda: sotdd.pairwise([made, opened, pair[1]])) == 1


def test_a_stream_opens_each_batch_once(openings, rng):
    batches = [labelled(rng, 50) for _ in range(4)]
    projections = sotdd.Projections.fit(batches, n_projections=64)
    assert openings(lambda: sotdd.sketch_stream(batches, projections)) == 4
    assert openings(lambda: sotdd.sketch_stream([*batches, np.empty((0, 6))], projections)) == 4
