"""Images: in folders, in datasets, of several sizes and modes."""

import logging

import numpy as np
import pytest
import torch
from PIL import Image

import sotdd
from inputs.helpers import pixels_of
from sotdd import open_dataset


def test_a_folder_per_class(photos):
    for kind, shape in [("grey", (6, 5)), ("colour", (6, 5, 3))]:
        data = open_dataset(f"{kind}/")
        assert data.classes == ("cat", "dog")
        assert data.counts.tolist() == [4, 4]
        assert data.point_shape == shape
        assert data.features.dtype == np.uint8
        np.testing.assert_array_equal(data.features, pixels_of(photos, kind))
    assert sotdd.distance("grey", "grey", n_projections=64).value == 0
    assert open_dataset("grey", label=None).classes == ("all",)


def test_grey_and_colour_are_made_uniform(photos, tmp_path):
    Image.fromarray(photos["grey", "cat", 0]).save(tmp_path / "colour" / "cat" / "grey.png")
    data = open_dataset("colour")
    assert data.point_shape == (6, 5, 3)
    np.testing.assert_array_equal(data.features[4], np.repeat(photos["grey", "cat", 0][:, :, None], 3, axis=2))
    assert open_dataset("colour", image_mode="L").point_shape == (6, 5)
    with pytest.raises(sotdd.SotddError, match=r"6 × 5 × 3.*image_size=\.\.\., image_mode="):
        sotdd.distance("grey", "colour")


def test_deep_grey_keeps_its_upper_bits(tmp_path):
    (tmp_path / "deep" / "a").mkdir(parents=True)
    Image.fromarray(np.array([[0, 256], [65535, 32768]], np.uint16)).save(tmp_path / "deep" / "a" / "x.png")
    assert open_dataset(tmp_path / "deep").features[0].tolist() == [[0, 1], [255, 128]]


@pytest.mark.parametrize("kind", ["png", "tiff", "pgm"])
def test_deep_grey_has_one_rule_for_all_images(tmp_path, kind):
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
    torch_like = Pictures([bright, dark])
    for data in (
        open_dataset(tmp_path),
        open_dataset(tmp_path, image_size=2),
        open_dataset(tmp_path, transform=lambda batch: batch),
        open_dataset((images, ["a", "a"])),
        open_dataset(torch_like),
    ):
        assert data.features.tolist() == [[[0, 0], [1, 255]], [[0, 0], [0, 0]]]
    sized = open_dataset(tmp_path, image_mode="RGB")
    assert sized.features[0, 1].tolist() == [[1, 1, 1], [255, 255, 255]]


@pytest.mark.parametrize("pixels", [[[0, 65536]], [[-1, 5]], [[0, 2**31 - 1]]])
def test_integers_of_an_unknown_range_are_refused(tmp_path, pixels):
    (tmp_path / "a").mkdir()
    Image.fromarray(np.array(pixels, np.int32)).save(tmp_path / "a" / "x.tiff")
    with pytest.raises(sotdd.SotddError, match=r"holds integers from .* whose range is not known"):
        open_dataset(tmp_path)


def test_images_are_resized(photos):
    data = open_dataset("grey", image_size=(3, 4))
    assert data.point_shape == (3, 4)
    expected = Image.fromarray(photos["grey", "cat", 0]).resize((4, 3), Image.Resampling.BILINEAR)
    np.testing.assert_array_equal(data.features[0], np.asarray(expected))
    assert open_dataset("grey::image_size=3").point_shape == (3, 3)
    assert open_dataset("grey::image_size=3x2").point_shape == (3, 2)


def test_other_sizes_are_refused_with_advice(photos, tmp_path):
    Image.new("L", (9, 8)).save(tmp_path / "grey" / "dog" / "large.png")
    with pytest.raises(sotdd.SotddError, match=r"6 × 5 and 8 × 9 pixels: pass image_size=\(6, 5\)"):
        open_dataset("grey")
    assert open_dataset("grey", image_size=(6, 5)).n_points == 9
    a, b = np.zeros((3, 28, 28)), np.zeros((3, 32, 32))
    with pytest.raises(sotdd.SotddError, match=r"images of dataset 'b' are 32 × 32 .* 28 × 28.*image_size="):
        sotdd.distance(a, b)
    opened = open_dataset(b, image_size=(28, 28))
    assert sotdd.distance(a, opened, n_projections=64).value == 0


def test_other_orders_of_axes_are_refused():
    with pytest.raises(sotdd.SotddError, match="order of axes"):
        sotdd.distance(np.zeros((4, 3, 8, 8)), np.zeros((4, 8, 8, 3)))


def test_arrays_of_images_are_resized_in_their_layout(rng):
    x = rng.integers(256, size=(5, 6, 8, 3)).astype(np.uint8)
    last = open_dataset(x, image_size=(3, 4)).features
    first = open_dataset(np.moveaxis(x, 3, 1), image_size=(3, 4)).features
    expected = np.asarray(Image.fromarray(x[2]).resize((4, 3), Image.Resampling.BILINEAR))
    np.testing.assert_array_equal(last[2], expected)
    np.testing.assert_array_equal(np.moveaxis(first, 1, 3), last)
    floats = open_dataset(x[..., 0] / 255.0, image_size=(3, 4)).features
    np.testing.assert_allclose(floats, last[..., 0] / 255, atol=0.01)
    with pytest.raises(sotdd.SotddError, match="expected images of shape"):
        open_dataset(np.zeros((5, 4)), image_size=3)


def test_a_sample_of_a_folder(photos):
    data = open_dataset("grey", max_points=3, seed=1)
    assert data.n_points == 3
    whole = pixels_of(photos, "grey")
    assert all(any((image == other).all() for other in whole) for image in data.features)


@pytest.mark.parametrize("damage", ["cut", "text", "empty"])
def test_broken_images_are_named_or_skipped(photos, tmp_path, caplog, damage):
    path = tmp_path / "grey" / "cat" / "2.png"
    Image.fromarray(np.random.default_rng(0).integers(256, size=(6, 5)).astype(np.uint8)).save(path)
    content = path.read_bytes()
    path.write_bytes({"cut": content[: len(content) - 30], "text": b"not an image", "empty": b""}[damage])
    with pytest.raises(sotdd.SotddError, match=r"2\.png is broken .*pass broken='skip'") as caught:
        open_dataset("grey")
    assert "\n" not in str(caught.value)
    with caplog.at_level(logging.INFO, "sotdd.inputs"):
        data = open_dataset("grey", broken="skip")
    assert data.counts.tolist() == [3, 4]
    np.testing.assert_array_equal(data.features, np.delete(pixels_of(photos, "grey"), 2, axis=0))
    assert "1 broken image is skipped" in caplog.text
    assert open_dataset("grey::broken=skip").n_points == 7


def test_image_bombs_are_refused(photos, tmp_path, monkeypatch):
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 20)
    with pytest.raises(sotdd.SotddError, match=r"0\.png is broken \(Image size \(30 pixels\) exceeds limit"):
        open_dataset("grey")


@pytest.mark.parametrize("kind", ["nothing", "flat", "notes"])
def test_folders_without_images(tmp_path, kind):
    place = tmp_path / kind
    (place / "sub").mkdir(parents=True)
    if kind == "flat":
        Image.new("L", (2, 2)).save(place / "x.png")
    if kind == "notes":
        (place / "sub" / "a.txt").write_text("hello")
    with pytest.raises(sotdd.SotddError, match="has no sub-folders with images"):
        open_dataset(place)


def test_folders_where_all_is_broken(tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "x.jpg").write_text("no")
    with pytest.raises(sotdd.SotddError, match="has 1 image and none can be read"):
        open_dataset(tmp_path, broken="skip")


class Pictures(torch.utils.data.Dataset):
    """As torchvision's: images of Pillow's, with a transform or without."""

    def __init__(self, images, transform=None):
        self.images, self.transform = images, transform

    def __len__(self):
        return len(self.images)

    def __getitem__(self, row):
        image = Image.fromarray(self.images[row])
        return (image if self.transform is None else self.transform(image)), row % 2


def test_torch_datasets_of_pictures(photos):
    whole = pixels_of(photos, "grey")
    np.testing.assert_array_equal(open_dataset(Pictures(whole)).features, whole)
    assert open_dataset(Pictures(whole), image_size=3).point_shape == (3, 3)
    tensors = Pictures(whole, lambda image: torch.tensor(np.asarray(image) / 255.0))
    np.testing.assert_allclose(open_dataset(tensors).features, whole / 255)
    mixed = [*whole, *pixels_of(photos, "colour")]
    with pytest.raises(sotdd.SotddError, match="image_mode"):
        open_dataset(Pictures([whole[0]] * 64 + mixed))
    assert open_dataset(Pictures(mixed)).point_shape == (6, 5, 3)
    with pytest.raises(sotdd.SotddError, match=r"6 × 5 and 2 × 2 pixels: pass image_size="):
        open_dataset(Pictures([*whole, np.zeros((2, 2), np.uint8)]))


def test_huggingface_images_are_decoded(photos):
    hub = pytest.importorskip("datasets")
    whole = pixels_of(photos, "colour")
    data = hub.Dataset.from_dict(
        {"photo": [Image.fromarray(image) for image in whole], "label": list(range(8))},
        features=hub.Features({"photo": hub.Image(), "label": hub.Value("int64")}),
    )
    np.testing.assert_array_equal(open_dataset(data).features, whole)
    assert open_dataset(data, image_size=2, image_mode="L").point_shape == (2, 2)
    streamed = open_dataset(data.to_iterable_dataset(), max_points=5)
    np.testing.assert_array_equal(streamed.features, whole[:5])


def test_lists_of_images(photos):
    images = [Image.fromarray(image) for image in pixels_of(photos, "colour")]
    np.testing.assert_array_equal(open_dataset((images, range(8))).features, pixels_of(photos, "colour"))
