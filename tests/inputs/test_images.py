"""Images: in folders, arrays and datasets, of several sizes and modes."""

import numpy as np
import pyarrow as pa
import pytest
from PIL import Image
from pyarrow import parquet

import sotdd
from inputs.helpers import refusal
from inputs.items import Items
from sotdd import open_dataset


def test_a_folder_per_class(photos):
    for kind, shape in [("grey", (6, 5)), ("colour", (6, 5, 3))]:
        data = open_dataset(f"{kind}/")
        assert data.classes == ("cat", "dog")
        assert data.counts.tolist() == [4, 4]
        assert data.point_shape == shape
        assert data.features.dtype == np.uint8
        np.testing.assert_array_equal(data.features, photos[kind])
    sample = open_dataset("grey", max_points=3, seed=1).features
    assert [sum((image == other).all() for other in photos["grey"]) for image in sample] == [1, 1, 1]


def test_sizes_and_modes_are_made_uniform_on_request(photos, tmp_path):
    data = open_dataset("grey", image_size=(3, 4))
    expected = Image.fromarray(photos["grey"][0]).resize((4, 3), Image.Resampling.BILINEAR)
    np.testing.assert_array_equal(data.features[0], np.asarray(expected))
    assert open_dataset("grey::image_size=3x2").point_shape == (3, 2)
    assert open_dataset("colour", image_mode="L").point_shape == (6, 5)
    Image.fromarray(photos["grey"][0]).save(tmp_path / "colour" / "cat" / "grey.png")
    mixed = open_dataset("colour")
    np.testing.assert_array_equal(mixed.features[4], np.repeat(photos["grey"][0][:, :, None], 3, axis=2))
    Image.new("L", (9, 8)).save(tmp_path / "grey" / "dog" / "large.png")
    assert "6 × 5 and 8 × 9" in refusal("grey")
    assert open_dataset("grey", image_size=(6, 5)).n_points == 9


def test_images_that_cannot_be_compared():
    for one, other, said in (
        ((3, 28, 28), (3, 32, 32), "by image_size"),
        ((4, 3, 8, 8), (4, 8, 8, 3), "8 × 8 × 3"),
        ((4, 8, 8), (4, 8, 8, 3), "or image_mode"),
    ):
        with pytest.raises(sotdd.SotddError, match=said):
            sotdd.distance(np.zeros(one), np.zeros(other))


@pytest.mark.parametrize("kind", ["png", "tiff", "pgm"])
def test_deep_grey_keeps_its_upper_bits_by_one_rule_for_all_images(tmp_path, kind):
    """A dark image and a bright one: what is one value in both stays one value in both."""
    (tmp_path / "a").mkdir()
    dark, bright = np.array([[0, 255], [128, 255]], np.uint16), np.array([[0, 255], [256, 65535]], np.uint16)
    for name, pixels in (("dark", dark), ("bright", bright)):
        path = tmp_path / "a" / f"{name}.{kind}"
        if kind == "pgm":
            path.write_bytes(b"P5 2 2 65535\n" + pixels.astype(">u2").tobytes())
        else:
            Image.fromarray(pixels).save(path)
    images = [Image.open(tmp_path / "a" / f"{name}.{kind}") for name in ("bright", "dark")]
    for data in (
        open_dataset(tmp_path),
        open_dataset(tmp_path, image_size=2),
        open_dataset((images, ["a", "a"])),
        open_dataset(pictures([bright, dark])),
    ):
        assert data.features.tolist() == [[[0, 0], [1, 255]], [[0, 0], [0, 0]]]


def test_integers_of_an_unknown_range_are_refused(tmp_path):
    (tmp_path / "a").mkdir()
    for low, high in ((0, 65536), (-1, 5)):
        Image.fromarray(np.array([[low, high]], np.int32)).save(tmp_path / "a" / "x.tiff")
        assert f"from {low} to {high:,}" in refusal(tmp_path)


def test_bytes_beside_fractions_are_remarked_on(rng):
    x, y = rng.integers(256, size=(40, 8, 8)).astype(np.uint8), np.arange(40) % 2

    def remarks(one, other):
        found = sotdd.distance((one, y), (other.reshape(one.shape), y), n_projections=8)
        return [str(remark) for remark in found.remarks if "255" in str(remark)]

    for one, other in ((x, x / 255), (x.reshape(40, -1), (x / 127.5 - 1).astype(np.float32))):
        assert "'a'" in remarks(one, other)[0]
    for one, other in ((x, x), (x / 255, x / 255), (rng.normal(size=(40, 64)), x / 255)):
        assert not remarks(one, other)


def test_broken_images_are_named(photos, tmp_path):
    path = tmp_path / "grey" / "cat" / "2.png"
    for content in (path.read_bytes()[:-30], b"not an image", b""):
        path.write_bytes(content)
        assert "2.png" in refusal("grey")


def test_image_bombs_are_refused(photos, monkeypatch):
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 20)
    assert "30 pixels" in refusal("grey")


def test_folders_without_images(tmp_path):
    (tmp_path / "sub").mkdir()
    assert "no sub-folders with images" in refusal(tmp_path)
    Image.new("L", (2, 2)).save(tmp_path / "x.png")
    (tmp_path / "sub" / "a.doc").write_text("hello")
    assert "no sub-folders with images" in refusal(tmp_path)


def test_a_folder_one_level_too_high_is_noticed(tmp_path):
    for split in ("train", "test"):
        for animal in ("cat", "dog"):
            (tmp_path / "photos" / split / animal).mkdir(parents=True)
            Image.new("L", (4, 4)).save(tmp_path / "photos" / split / animal / "x.png")
        (tmp_path / "tables" / split).mkdir(parents=True)
        parquet.write_table(pa.table({"x": [1.0, 2.0], "y": [0, 1]}), tmp_path / "tables" / split / "0.parquet")
    for kind in ("photos", "tables"):
        assert "'test', 'train'" in refusal(tmp_path / kind)
        assert open_dataset(tmp_path / kind / "test").n_points == 2
    assert open_dataset(tmp_path / "photos" / "train").classes == ("cat", "dog")
    assert open_dataset(tmp_path / "photos", label=None).n_points == 4  # all of it, without classes
    (tmp_path / "photos" / "train").rename(tmp_path / "photos" / "locomotive")  # now these are names of classes
    assert open_dataset(tmp_path / "photos").classes == ("locomotive", "test")


def pictures(arrays):
    """As torchvision's datasets: images of Pillow's."""
    return Items((Image.fromarray(array), row % 2) for row, array in enumerate(arrays))


def test_datasets_and_lists_of_pictures(photos):
    whole, colour = photos["grey"], photos["colour"]
    np.testing.assert_array_equal(open_dataset(pictures(whole)).features, whole)
    assert open_dataset(pictures(whole), image_size=3).point_shape == (3, 3)
    assert "image_mode" in refusal(pictures([whole[0]] * 64 + [*colour]))
    assert open_dataset(pictures([*whole, *colour])).point_shape == (6, 5, 3)
    assert "6 × 5 and 2 × 2" in refusal(pictures([*whole, np.zeros((2, 2), np.uint8)]))
    images = [Image.fromarray(image) for image in colour]
    np.testing.assert_array_equal(open_dataset((images, range(8))).features, colour)
    hub = pytest.importorskip("datasets")
    features = hub.Features({"photo": hub.Image(), "label": hub.Value("int64")})
    data = hub.Dataset.from_dict({"photo": images, "label": list(range(8))}, features=features)
    np.testing.assert_array_equal(open_dataset(data).features, colour)
    assert open_dataset(data, image_size=2, image_mode="L").point_shape == (2, 2)
