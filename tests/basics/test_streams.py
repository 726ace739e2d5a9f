"""Random streams: no two uses of a seed draw the same numbers."""

import numpy as np

from sotdd.basics.resources import Stream, generator


def test_streams_numbers_and_seeds_draw_different_numbers():
    keys = [(seed, stream, number) for seed in (0, 1) for stream in Stream.__members__.values() for number in (0, 1)]
    draws = {tuple(generator(*key).random(3)) for key in keys}
    assert len(draws) == len(keys)


def test_a_generator_is_keyed_as_it_always_was():
    """What a seed means is part of every committed number."""
    philox = np.random.Generator(np.random.Philox(np.random.SeedSequence(7, spawn_key=(3, 5))))
    np.testing.assert_array_equal(generator(7, Stream.SPLITS, 3).random(4), philox.random(4))
    assert (int(Stream.DIRECTIONS), int(Stream.LABEL_TERMS)) == (0, 2)
