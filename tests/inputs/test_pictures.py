"""Arrays of images in grey and in colour, bytes beside fractions, and folders one level too high."""

import numpy as np
import pytest
from PIL import Image

import sotdd
from inputs.helpers import refusal
from sotdd import open_dataset


def colours(rng, n=12):
    return rng.integers(256, size=(n, 6, 5, 3)).astype(np.uint8)


def test_image_mode_for_arrays(rng):
    x, y = colours(rng), np.arange(12) % 2
    by_pillow = np.stack([np.asarray(Image.fromarray(image).convert("L")) for image in x])
    grey = open_dataset((x, y), image_mode="L").features
    assert grey.shape == (12, 6, 5)
    assert np.abs(np.asarray(grey).astype(int) - by_pillow).max() <= 1
    first = open_dataset((np.moveaxis(x, 3, 1), y), image_mode="L").features
    np.testing.assert_array_equal(first, grey)
    np.testing.assert_allclose(open_dataset((x / 255, y), image_mode="L").features, (x / 255) @ [0.299, 0.587, 0.114])
    again = open_dataset((by_pillow, y), image_mode="RGB").features
    assert again.shape == (12, 6, 5, 3)
    assert (np.asarray(again) == by_pillow[..., None]).all()
    assert open_dataset((x, y), image_mode="RGB").features.shape == x.shape
    assert open_dataset((x[..., :1], y), image_mode="L", image_size=4).features.shape == (12, 4, 4)
    with_alpha = np.concatenate([x, x[..., :1]], axis=3)
    np.testing.assert_array_equal(open_dataset((with_alpha, y), image_mode="RGB").features, x)
    assert "image_mode is given but points" in refusal((x.reshape(12, -1), y), image_mode="L")


def test_grey_and_colour_can_be_compared(rng):
    x, y = colours(rng), np.arange(12) % 2
    grey = (x[..., 0], y)
    with pytest.raises(sotdd.SotddError, match="image_mode="):
        sotdd.distance((x, y), grey)
    assert sotdd.distance(open_dataset((x, y), image_mode="L"), grey, n_projections=8).value > 0


def test_bytes_beside_fractions_are_remarked_on(rng):
    x, y = rng.integers(256, size=(40, 8, 8)).astype(np.uint8), np.arange(40) % 2
    said = "values of 'a' go up to 255 and those of 'b' up to 1: divide the former by 255"
    for one in (x, x.astype(np.float32), x.reshape(40, -1)):
        for other in (x / 255, (x / 127.5 - 1).astype(np.float32)):
            found = sotdd.distance((one, y), (other.reshape(one.shape), y), n_projections=8)
            assert any(said in remark for remark in found.remarks), found
    assert "divide the former" in repr(sotdd.test((x, y), (x / 255, y), n_permutations=9))
    for one, other in ((x, x), (x / 255, x / 255), (rng.normal(size=(40, 64)), x / 255)):
        found = sotdd.distance((one, y), (other.reshape(one.shape), y), n_projections=8)
        assert not any("divide" in remark for remark in found.remarks)


def photos(folder, rng, *classes):
    for name in classes:
        place = folder / name
        place.mkdir(parents=True)
        for number in range(3):
            Image.fromarray(rng.integers(256, size=(4, 4)).astype(np.uint8)).save(place / f"{number}.png")


def test_a_folder_one_level_too_high_is_noticed(tmp_path, rng):
    photos(tmp_path, rng, "train/cat", "train/dog", "test/cat", "test/dog")
    said = refusal(tmp_path)
    assert "holds 'test', 'train', which look like splits of one dataset rather than classes" in said
    assert open_dataset(tmp_path / "train").classes == ("cat", "dog")
    assert open_dataset(f"{tmp_path}::split=test").n_points == 6
    assert open_dataset(tmp_path, label=None).n_points == 12  # all of it, without classes
    assert "has no sub-folder 'dev', only 'test', 'train'" in refusal(tmp_path, split="dev")


def test_classes_may_be_called_train_and_test(tmp_path, rng):
    photos(tmp_path, rng, "train", "test")  # pictures of trains, and of tests
    assert open_dataset(tmp_path).classes == ("test", "train")


def test_a_folder_of_tables_one_level_too_high(tmp_path):
    import pyarrow as pa
    from pyarrow import parquet

    for split in ("train", "validation"):
        (tmp_path / split).mkdir()
        parquet.write_table(pa.table({"x": [1.0, 2.0], "y": [0, 1]}), tmp_path / split / "0.parquet")
    assert "look like splits" in refusal(tmp_path)
    assert open_dataset(tmp_path, split="train").n_points == 2
