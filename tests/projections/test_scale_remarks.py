"""What is said of a scale: one feature, one point or one dataset that makes it."""

import pytest

import sotdd
from projections.tables import table
from sotdd import Scaler


def shifted_beside_a_loud_feature(rng):
    a, b = rng.normal(size=(500, 20)), rng.normal(size=(500, 20))
    b[:, 1:] += 1
    for x in (a, b):
        x[:, 0] *= 30
    return a, b


def test_a_feature_that_drowns_the_others_is_told_in_arrays_and_weighed_in_tables(rng):
    a, b = shifted_beside_a_loud_feature(rng)
    found = sotdd.distance(a, b)
    assert any(said.startswith("feature 0 carries 98 % of the spread: scale='features'") for said in found.remarks)
    one, other = table(a), table(b)
    seen = sotdd.distance(one, other, noise_floor=True)
    assert not seen.within_noise
    assert seen.value > 5 * seen.noise_floor
    assert seen.remarks == ()
    pooled = sotdd.distance(one, other, scale="pooled").remarks
    assert any(said.startswith("column 'c0' carries") for said in pooled)


def test_a_far_dataset_is_told(rng):
    x = rng.normal(size=(300, 4))
    near = {"here": x, "there": rng.normal(0.5, 1, size=(300, 4))}
    for scale in ("pooled", "features"):
        alone = sotdd.pairwise(near, scale=scale, n_projections=200)["here", "there"].value
        matrix = sotdd.pairwise({**near, "far": x + 1000}, scale=scale, n_projections=200)
        [said] = matrix["here", "there"].remarks
        assert said.startswith("dataset 'far' makes the scale: without it the others would be ")
        assert repr(matrix).endswith(said)
        told = float(said.split(" would be about ")[1].split(" ×")[0].replace(",", ""))
        measured = alone / matrix["here", "there"].value
        assert told == pytest.approx(measured, rel=0.4)  # the label term does not go with the scale
        assert sotdd.pairwise(near, scale=scale, n_projections=64)["here", "there"].remarks == ()
    same = sotdd.pairwise([x, x, x[:1] + 9], n_projections=64)  # two that are no farther apart without the third
    assert same["0", "1"].value == 0
    even = {**near, "third": rng.normal(-0.5, 1, size=(300, 4))}
    assert sotdd.pairwise(even, n_projections=64)["here", "third"].remarks == ()


@pytest.mark.parametrize(("size", "word"), [(10, "stands out"), (300, "makes the scale")])
def test_one_outlier_among_500_points_is_told(rng, size, word):
    a, b = rng.normal(size=(500, 20)), rng.normal(size=(500, 20))
    assert sotdd.distance(a, b, n_projections=64).remarks == ()
    b[123, :10] += size
    said = [text for text in sotdd.distance(a, b, n_projections=64).remarks if text.startswith("one point")]
    assert said[0].startswith(f"one point {word}: row 123 of 'b' carries ")
    assert Scaler.fit([a, b], "features").remarks == ()


def test_the_outlier_may_be_first_or_alone_in_its_block(rng):
    for place in (0, 511, 512):
        x = rng.normal(size=(513, 3))
        x[place] += 500
        assert any(f"row {place} of '0'" in said for said in Scaler.fit([x]).remarks)


def test_remarks_are_no_part_of_what_a_scaler_is(rng):
    a, b = shifted_beside_a_loud_feature(rng)
    scaler = Scaler.fit([a, b])
    quiet = Scaler(scaler.centre, scaler.scale)
    assert scaler.remarks
    assert quiet.fingerprint() == scaler.fingerprint()
    assert quiet.to_dict() == scaler.to_dict()


def test_remarks_come_with_tests_sketches_and_peers(rng, tmp_path):
    a, b = shifted_beside_a_loud_feature(rng)
    said = Scaler.fit([a, b]).remarks[0]
    assert said in sotdd.test(a, b, n_permutations=9, n_projections=64).remarks
    assert said in sotdd.peers.sliced_wasserstein(a, b, scale="pooled", n_projections=64).remarks
    assert said in sotdd.explain(a, b, n_projections=64).distance.remarks
    projections = sotdd.Projections.fit([a, b], n_projections=64)
    sotdd.sketch(a, projections).save(tmp_path / "a.sotdd")
    assert said in sotdd.Sketch.load(tmp_path / "a.sotdd").distance(sotdd.sketch(b, projections)).remarks
