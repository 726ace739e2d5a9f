"""A data folder for experiments and benchmarks: small, of what is in the repository and of what is made up here."""

import csv
import gzip
import io
import shutil
from pathlib import Path

import numpy as np

PICTURES = Path(__file__).parent / "fixtures" / "pictures"
_WORDS = np.array(
    ["good", "bad", "slow", "bright", "river", "team", "market", "film", "signal", "cheese", "road", "law"]
)


def write(folder: Path) -> None:
    """Every dataset but TaskWeb's. USPS is scikit-learn's digits; pictures in colour and texts are made up."""
    rng = np.random.default_rng(0)
    for path in PICTURES.glob("*.npz"):
        shutil.copy(path, folder)
    np.savez(folder / "usps.npz", **_digits())
    np.savez(folder / "cifar10.npz", **_colours(rng))
    np.savez(folder / "tiny_imagenet_subset.npz", **_tiny(rng))
    for file, classes, splits in (
        ("ag_news", 4, {"train": 200, "test": 100}),
        ("amazon_review_full", 5, {"train": 300, "test": 300}),
        ("yelp_review_full", 5, {"train": 400}),
        ("dbpedia14", 14, {"test": 280}),
        ("imdb_train2000", 2, {"train": 200}),
    ):
        _texts(folder / f"{file}.csv.gz", classes, splits, rng)


def _digits():
    """Digits of 8 × 8 pixels at twice their size, 1,200 and 597."""
    from sklearn.datasets import load_digits

    found = load_digits()
    x = np.repeat(np.repeat(found.images, 2, axis=1), 2, axis=2)
    x, y = np.minimum(16 * x, 255).astype(np.uint8), found.target
    return {"X_train": x[:1200], "y_train": y[:1200], "X_test": x[1200:], "y_test": y[1200:]}


def _shown(y, classes, side, rng):
    """Noise with a square whose place and colour say the class."""
    x = rng.integers(0, 120, size=(len(y), side, side, 3))
    for row, label in enumerate(y):
        corner = int((side - side // 4) * label / classes)
        x[row, corner : corner + side // 4, : side // 2, label % 3] += 130
    return x.astype(np.uint8)


def _colours(rng):
    parts = {}
    for part, count in (("train", 400), ("test", 120)):
        y = np.arange(count) % 10
        parts |= {f"X_{part}": _shown(y, 10, 32, rng), f"y_{part}": y}
    return parts


def _tiny(rng):
    """200 classes, four pictures of each and two to test on; the names of the classes in an order of their own."""
    from experiments.paper.families import FAMILIES
    from PIL import Image

    names = [name for family in FAMILIES.values() for name in family]
    arrays = {"class_names": rng.permutation(names)}
    for part, count in (("train", 4), ("test", 2)):
        y = np.repeat(np.arange(200), count)
        pictures = []
        for picture in _shown(y, 200, 64, rng):
            file = io.BytesIO()
            Image.fromarray(picture).save(file, "JPEG", quality=60)
            pictures.append(file.getvalue())
        arrays[f"jpeg_{part}"] = np.frombuffer(b"".join(pictures), np.uint8)
        arrays[f"offsets_{part}"] = np.cumsum([0, *map(len, pictures)])
        arrays[f"y_{part}"] = y
    return arrays


def _texts(path, classes, splits, rng):
    """Sentences in which some words are more frequent the higher the label is."""
    with gzip.open(path, "wt", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["split", "label", "label_name", "title", "text"])
        for split, count in splits.items():
            for number in range(count):
                label = number % classes
                weights = np.exp(label / classes * np.linspace(-1, 1, len(_WORDS)))
                words = rng.choice(_WORDS, 12, p=weights / weights.sum())
                writer.writerow([split, label, f"class {label}", "", f"{' '.join(words)} number {number} in {split}"])
