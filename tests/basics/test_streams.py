"""Random streams: the same for the same seed, different for every use of it."""

from itertools import product

from sotdd.basics.streams import Stream, generator


def test_numbers_of_streams_never_change():
    assert [(stream.name, stream.value) for stream in Stream] == [
        ("DIRECTIONS", 0), ("LABEL_DIRECTIONS", 1), ("LABEL_TERMS", 2), ("MORE_LABEL_TERMS", 3), ("SAMPLE", 4),
        ("SPLITS", 5), ("REFERENCE", 6), ("HALF_SAMPLES", 7), ("FLOW_STEPS", 8),
    ]  # fmt: skip


def test_draws_are_all_different_and_do_not_depend_on_each_other():
    uses = list(product((0, 1, 2**63 - 1), Stream, (0, 1, 1000)))
    forwards = [generator(*use).integers(2**63) for use in uses]
    backwards = [generator(*use).integers(2**63) for use in reversed(uses)]
    assert forwards == backwards[::-1]
    assert len(set(forwards)) == len(uses)
