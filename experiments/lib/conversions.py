"""Official files of datasets made into what the experiments read.

Pictures become `.npz` files with X_train, y_train, X_test and y_test: uint8, upright, labels from 0. Texts become
`.csv.gz` files with the columns split, label, title and text.
"""

from __future__ import annotations

import bz2
import csv
import gzip
import io
import tarfile
import zipfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path, PurePosixPath
from typing import IO, TypeAlias

import numpy as np
from numpy.typing import NDArray

Bytes: TypeAlias = NDArray[np.uint8]
Pictures: TypeAlias = tuple[Bytes, Bytes]  # and their labels
Text: TypeAlias = tuple[int, str, str]  # label, title, text

_MOST = {"train": 5000, "test": 7600}  # rows of a set of texts that are kept, as many as the experiments use
_MOST_FILMS = 2000


# --------------------------------------------------------------------------- pictures


def idx_files(official: Sequence[Path], kept: Path) -> None:
    """MNIST and those that are packed like it: images and labels to train on, images and labels to test on."""
    train_x, train_y, test_x, test_y = (_idx(gzip.decompress(path.read_bytes())) for path in official)
    _save(kept, (train_x, train_y), (test_x, test_y))


def emnist_letters(official: Sequence[Path], kept: Path) -> None:
    """The letters of EMNIST, which lie on their side in the archive and are numbered from 1."""
    parts = []
    with zipfile.ZipFile(official[0]) as archive:
        for part in ("train", "test"):
            x, y = (
                _idx(gzip.decompress(archive.read(f"gzip/emnist-letters-{part}-{what}-ubyte.gz")))
                for what in ("images-idx3", "labels-idx1")
            )
            parts.append((x.transpose(0, 2, 1), y - np.uint8(1)))
    _save(kept, *parts)


def usps(official: Sequence[Path], kept: Path) -> None:
    """USPS as LIBSVM keeps it: a line for each picture, label from 1, then 256 values from -1 to 1."""
    parts = []
    for path in official:
        with bz2.open(path, "rt", encoding="ascii") as file:
            rows = [line.split() for line in file]
        values = np.array([[float(cell.partition(":")[2]) for cell in row[1:]] for row in rows])
        labels = np.array([int(row[0]) - 1 for row in rows], np.uint8)
        parts.append(((255 * (values + 1) / 2).astype(np.uint8).reshape(-1, 16, 16), labels))
    _save(kept, *parts)


def cifar10(official: Sequence[Path], kept: Path) -> None:
    """CIFAR-10 in its binary form: a label and 3 × 32 × 32 values after another."""
    with tarfile.open(official[0]) as archive:
        train = [_cifar_batch(archive, f"data_batch_{number}") for number in range(1, 6)]
        test = _cifar_batch(archive, "test_batch")
    _save(kept, (np.concatenate([x for x, _ in train]), np.concatenate([y for _, y in train])), test)


def _cifar_batch(archive: tarfile.TarFile, name: str) -> Pictures:
    rows = np.frombuffer(_member(archive, f"cifar-10-batches-bin/{name}.bin").read(), np.uint8).reshape(-1, 3073)
    return rows[:, 1:].reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1), rows[:, 0]


def tiny_imagenet(official: Sequence[Path], kept: Path) -> None:
    """Tiny-ImageNet, its pictures as the JPEG files that they are; its test part has no labels, so `val` is taken."""
    with zipfile.ZipFile(official[0]) as archive:
        root = "tiny-imagenet-200"
        wnids = archive.read(f"{root}/wnids.txt").decode().split()
        words = dict(line.split("\t", 1) for line in archive.read(f"{root}/words.txt").decode().splitlines())
        label = {wnid: number for number, wnid in enumerate(wnids)}
        named = [name for name in archive.namelist() if name.startswith(f"{root}/train/") and name.endswith(".JPEG")]
        train = sorted((label[PurePosixPath(name).parts[2]], _number(name), name) for name in named)
        told = [line.split("\t") for line in archive.read(f"{root}/val/val_annotations.txt").decode().splitlines()]
        test = sorted((label[row[1]], _number(row[0]), f"{root}/val/images/{row[0]}") for row in told)
        arrays: dict[str, NDArray[np.generic]] = {}
        for part, rows in (("train", train), ("test", test)):
            pictures = [archive.read(name) for _, _, name in rows]
            arrays[f"jpeg_{part}"] = np.frombuffer(b"".join(pictures), np.uint8)
            arrays[f"offsets_{part}"] = np.cumsum([0, *map(len, pictures)])
            arrays[f"y_{part}"] = np.array([label for label, _, _ in rows], np.uint8)
    names = np.array([words[wnid].split(",")[0] for wnid in wnids])
    np.savez(kept, wnids=np.array(wnids), class_names=names, **arrays)  # type: ignore[arg-type]


def _number(name: str) -> int:
    """Of a picture within its class: `n01443537_12.JPEG`, `val_12.JPEG`."""
    return int(PurePosixPath(name).stem.rpartition("_")[2])


def _idx(content: bytes) -> Bytes:
    """An array as LeCun packs it: two bytes of zeros, its type, the number of its sides, the sides, the values."""
    sides = np.frombuffer(content, ">u4", content[3], 4)
    return np.frombuffer(content, np.uint8, offset=4 + 4 * content[3]).reshape(sides)


def _save(kept: Path, train: Pictures, test: Pictures) -> None:
    (x, y), (test_x, test_y) = train, test
    np.savez_compressed(kept, X_train=x, y_train=y, X_test=test_x, y_test=test_y)


# --------------------------------------------------------------------------- texts


def zhang_texts(official: Sequence[Path], kept: Path) -> None:
    """A set of Zhang, Zhao and LeCun (2015): `train.csv` and `test.csv`, by themselves or in one archive."""
    found: dict[str, list[Text]] = {}
    if len(official) == 2:
        for part, path in zip(_MOST, official, strict=True):
            with path.open("rb") as file:
                found[part] = _sample(_zhang_rows(file), _MOST[part])
    else:
        with tarfile.open(official[0]) as archive:
            folder = PurePosixPath(next(name for name in archive.getnames() if name.endswith("/train.csv"))).parent
            for part, most in _MOST.items():
                found[part] = _sample(_zhang_rows(_member(archive, f"{folder}/{part}.csv")), most)
    _write(kept, found)


def _zhang_rows(file: IO[bytes]) -> Iterator[Text]:
    """Label from 1, then the text, or title and text; a line's end within a text is written as backslash and n."""
    with io.TextIOWrapper(file, encoding="utf-8", newline="") as lines:
        for label, *texts in csv.reader(lines):
            title, text = texts if len(texts) == 2 else ("", texts[0])
            yield int(label) - 1, title, text.replace("\\n", "\n")


def imdb(official: Sequence[Path], kept: Path) -> None:
    """Reviews of films: a file for each, in a folder that says what it thinks of the film."""
    folders = {"aclImdb/train/neg": 0, "aclImdb/train/pos": 1}
    with tarfile.open(official[0]) as archive:
        rows = (
            (folders[str(path.parent)], "", _member(archive, member).read().decode())
            for member in archive
            if str((path := PurePosixPath(member.name)).parent) in folders and path.suffix == ".txt"
        )
        _write(kept, {"train": _sample(rows, _MOST_FILMS)})


def _sample(rows: Iterable[Text], most: int) -> list[Text]:
    """So many rows at random, the same ones every time, in one pass over them and in the order they come in."""
    rng = np.random.default_rng(0)
    kept: list[tuple[int, Text]] = []
    for place, row in enumerate(rows):
        if place < most:
            kept.append((place, row))
        elif (chosen := int(rng.integers(place + 1))) < most:
            kept[chosen] = place, row
    return [row for _, row in sorted(kept, key=lambda one: one[0])]


def _write(kept: Path, parts: dict[str, list[Text]]) -> None:
    with gzip.open(kept, "wt", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["split", "label", "title", "text"])
        writer.writerows([part, *row] for part, rows in parts.items() for row in rows)


def _member(archive: tarfile.TarFile, member: str | tarfile.TarInfo) -> IO[bytes]:
    """A file of an archive; what is no file there is as good as missing."""
    content = archive.extractfile(member)
    if content is None:
        raise KeyError(f"{member} is no file")
    return content
