"""Random streams: no two uses of a seed draw the same numbers, and all of them go through the enum."""

import re
from pathlib import Path

import numpy as np

import sotdd
from sotdd.basics.streams import Stream, generator, sequence

PACKAGE = Path(sotdd.__file__).parent
SOURCES = {path: path.read_text(encoding="utf-8") for path in PACKAGE.rglob("*.py") if path.name != "streams.py"}


def test_numbers_are_distinct_and_stay_what_they_were():
    assert {stream.name: stream.value for stream in Stream} == {
        "DIRECTIONS": 0,
        "LABEL_DIRECTIONS": 1,
        "LABEL_TERMS": 2,
        "MORE_LABEL_TERMS": 3,
        "SAMPLE": 4,
        "SPLITS": 5,
        "REFERENCE": 6,
        "HALF_SAMPLES": 7,
        "FLOW_STEPS": 8,
        "STREAM_GROUPS": 9,
        "DEBIASING_HALVES": 10,
        "FEATURE_ROWS": 20,
        "FEATURE_DIRECTIONS": 21,
        "FEATURE_SPLITS": 22,
        "FEATURE_HALVES": 23,
        "FEATURE_TIES": 24,
        "REFERENCE_KEYS": 30,
    }
    assert len(Stream.__members__) == len(set(Stream)), "an alias would be a second use of a number"


def test_streams_numbers_and_seeds_draw_different_numbers():
    keys = [(seed, stream, number) for seed in (0, 1) for stream in Stream for number in (0, 1)]
    draws = {tuple(generator(*key).random(3)) for key in keys}
    assert len(draws) == len(keys)


def test_a_generator_is_keyed_as_it_always_was():
    old = np.random.Generator(np.random.Philox(np.random.SeedSequence(7, spawn_key=(3, 5))))
    np.testing.assert_array_equal(generator(7, Stream.SPLITS, 3).random(4), old.random(4))
    assert sequence(7, Stream.SPLITS, 3).spawn_key == (3, 5)


def test_every_stream_is_used_and_none_goes_past_the_enum():
    used = {name for text in SOURCES.values() for name in re.findall(r"\bStream\.([A-Z_]+)", text)}
    assert used == set(Stream.__members__)
    assert not [str(path) for path, text in SOURCES.items() if "spawn_key" in text]
