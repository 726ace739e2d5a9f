"""Datasets of torch and of Hugging Face, their loaders and streams."""

import io
import itertools

import numpy as np
import pytest
import torch
from PIL import Image

import sotdd
from inputs.helpers import D, N, refusal, same
from inputs.items import Items, pairs
from sotdd import open_dataset


class Stream(torch.utils.data.IterableDataset):
    """Without an end."""

    def __iter__(self):
        return ((torch.tensor([float(number), 1.0]), number % 3) for number in itertools.count())


def fields(x, y):
    return Items({"pixels": point, "label": label} for point, label in zip(x, y, strict=True))


def test_torch_datasets(xy):
    x, y = xy
    codes = np.unique(y, return_inverse=True)[1]
    same(open_dataset(pairs(x, y)), xy)
    same(open_dataset(fields(x, y)), xy)
    same(open_dataset(torch.utils.data.Subset(pairs(x, y), range(50, 90))), (x[50:90], y[50:90]))
    same(open_dataset(torch.utils.data.ConcatDataset([pairs(x, y), pairs(x, y)])), (np.tile(x, (2, 1)), np.tile(y, 2)))
    both = torch.utils.data.TensorDataset(torch.tensor(x), torch.tensor(codes))
    same(open_dataset(both), (x, codes))
    assert np.shares_memory(open_dataset(both).features, both.tensors[0].numpy())
    part, _ = torch.utils.data.random_split(both, [200, 100], torch.Generator().manual_seed(0))
    same(open_dataset(part), (x[part.indices], codes[part.indices]))
    three = torch.utils.data.TensorDataset(torch.tensor(x), torch.zeros(N), torch.tensor(codes))
    same(open_dataset(three, features=0, label=2), (x, codes))
    assert open_dataset(Items([torch.zeros(2)]), label=None).counts.tolist() == [1]  # points alone


@pytest.mark.parametrize("how", [{"batch_size": 64}, {"batch_size": 7, "num_workers": 2}, {"batch_size": None}])
def test_torch_loaders(xy, how):
    same(open_dataset(torch.utils.data.DataLoader(pairs(*xy), **how)), xy)
    same(open_dataset(torch.utils.data.DataLoader(fields(*xy), **how)), xy)


def test_streams_are_sketched(hub, rng):
    endless = torch.utils.data.DataLoader(Stream(), batch_size=8)
    for source in (Stream(), endless, hub.Dataset.from_dict({"x": [1.0], "label": [0]}).to_iterable_dataset()):
        assert "is a stream: give its batches to sotdd.sketch_stream" in refusal(source, max_points=3)
    projections = sotdd.Projections.fit([rng.normal(size=(50, 2))], n_projections=16)
    assert sotdd.sketch_stream(itertools.islice(endless, 5), projections).counts.tolist() == [14, 13, 13]
    columns = {"a": rng.normal(size=50), "b": rng.normal(size=50), "label": np.arange(50) % 2}
    batches = hub.Dataset.from_dict(columns).to_iterable_dataset().with_format("arrow").iter(20)
    assert sotdd.sketch_stream(batches, projections).counts.tolist() == [25, 25]


@pytest.mark.parametrize(
    ("items", "said"),
    [
        ([], "no points"),
        ([(torch.zeros(2), 0), (torch.zeros(3), 1)], "point 1 of dataset 'data' has shape (3,)"),
        ([(torch.zeros(2, 2), 0), (torch.zeros(3, 2), 1)], "by image_size"),
        ([(torch.zeros(2), 0, 1)], "3 parts"),
        ([torch.zeros(2)], "label=None"),
        ([(None, 0)], "None"),
        ([{"a": 1.0, "b": 2.0}], "by label"),
        ([{"a": 1.0, "b": 2.0, "label": 0}], "by features"),
        ([(torch.tensor([float("nan")]), 0)], "NaN"),
        ([("a text", 0)], "encoder="),
        ([(torch.zeros(2), None)], "no rows with a label"),
        ([(torch.zeros(2), [1, 2])], "list"),
    ],
)
def test_torch_items_that_are_no_points(items, said):
    assert said in refusal(Items(items))


def test_huggingface(xy, folder, hub):
    x, y = xy
    names = ["cat", "dog", "emu"]
    schema = hub.Features({"v": hub.List(hub.Value("float64"), length=D), "animal": hub.ClassLabel(names=names)})
    data = hub.Dataset.from_dict({"v": x.tolist(), "animal": y.tolist()}, features=schema)
    same(open_dataset(data), xy)
    order = np.random.default_rng(0).permutation(N)
    same(open_dataset(data.select(order)), (x[order], y[order]))
    splits = hub.DatasetDict({"train": data, "test": data.select(range(10))})
    assert "'train', 'test': name one by split" in refusal(splits)
    assert "name one by split" in refusal(splits, split="val")
    same(open_dataset(splits, split="train"), xy)
    same(open_dataset(hub.DatasetDict({"train": data})), xy)
    splits.save_to_disk("saved")
    for source in ("saved/train", "saved::split=train"):
        same(open_dataset(source), xy)
    assert "by split" in refusal("saved")
    assert "'test', 'train'" in refusal("saved::split=val")
    assert "no splits" in refusal(data, split="train")
    hub.Dataset.from_dict({"x": [{"bytes": picture(k), "path": None} for k in (0, 9)], "kind": ["a", "b"]}).cast_column(
        "x", hub.Image()
    ).save_to_disk("pictures")
    assert open_dataset("pictures", label="kind").features[:, 0, 0].tolist() == [0, 9]
    doubled = data.with_transform(lambda rows: {"v": [np.array(v) * 2 for v in rows["v"]], "label": rows["animal"]})
    assert open_dataset(doubled).rows(slice(0, 1))[0].tolist() == (2 * x[0]).tolist()


def picture(grey):
    """The bytes of a file."""
    file = io.BytesIO()
    Image.new("L", (3, 2), grey).save(file, "PNG")
    return file.getvalue()


def test_huggingface_columns(xy, hub):
    x, y = xy
    data = hub.Dataset.from_dict({"a": x[:, 0], "b": x[:, 1], "kind": y.tolist()})
    same(open_dataset(data, label="kind"), (x[:, :2], y))
    same(open_dataset(data, label="kind", features=["b"]), (x[:, 1:2], y))
    schema = hub.Features({"m": hub.Array2D((2, 2), "float64"), "label": hub.Value("string")})
    grid = hub.Dataset.from_dict({"m": x.reshape(N, 2, 2), "label": y.tolist()}, features=schema)
    opened = open_dataset(grid)
    same(opened, xy)
    assert opened.point_shape == (2, 2)


def test_unknown_class_labels_are_missing(hub):
    schema = hub.Features({"x": hub.Value("float32"), "label": hub.ClassLabel(names=["a", "b"])})
    data = hub.Dataset.from_dict({"x": [1, 2, 3, 4], "label": [0, -1, 1, None]}, features=schema)
    assert "2 labels" in refusal(data, missing="error")
    assert open_dataset(data).rows(slice(None))[:, 0].tolist() == [1, 3]


def test_empty_datasets(hub):
    assert "no rows" in refusal(hub.Dataset.from_dict({"x": [], "label": []}))
