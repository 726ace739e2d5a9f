"""Torch datasets, loaders and streams."""

import logging

import numpy as np
import pytest
import torch

import sotdd
from inputs.helpers import Fields, N, Pairs, refusal, same
from sotdd import open_dataset


class Stream(torch.utils.data.IterableDataset):
    """Without an end."""

    def __iter__(self):
        number = 0
        while True:
            yield torch.tensor([float(number), 1.0]), number % 3
            number += 1


def test_torch_datasets(xy):
    x, y = xy
    codes = np.unique(y, return_inverse=True)[1]
    same(open_dataset(Pairs(x, y)), xy)
    same(open_dataset(Fields(x, y)), xy)
    same(open_dataset(torch.utils.data.Subset(Pairs(x, y), range(50, 90))), (x[50:90], y[50:90]))
    same(open_dataset(torch.utils.data.ConcatDataset([Pairs(x, y), Pairs(x, y)])), (np.tile(x, (2, 1)), np.tile(y, 2)))
    same(open_dataset(Pairs(x, y, lambda point: 2 * point)), (2 * x, y))
    both = torch.utils.data.TensorDataset(torch.tensor(x), torch.tensor(codes))
    same(open_dataset(both), (x, codes))
    assert np.shares_memory(open_dataset(both).features, both.tensors[0].numpy())
    part, _ = torch.utils.data.random_split(both, [200, 100], torch.Generator().manual_seed(0))
    same(open_dataset(part), (x[part.indices], codes[part.indices]))
    three = torch.utils.data.TensorDataset(torch.tensor(x), torch.zeros(N), torch.tensor(codes))
    same(open_dataset(three, features=0, label=2), (x, codes))
    assert sotdd.distance(Pairs(x, y), (x, y), n_projections=64).value == 0


@pytest.mark.parametrize("workers", [0, 2])
def test_torch_loaders(xy, workers):
    x, y = xy
    same(open_dataset(torch.utils.data.DataLoader(Pairs(x, y), batch_size=64, num_workers=workers)), xy)
    same(open_dataset(torch.utils.data.DataLoader(Fields(x, y), batch_size=7, num_workers=workers)), xy)


def test_loaders_that_do_not_batch(xy):
    same(open_dataset(torch.utils.data.DataLoader(Pairs(*xy), batch_size=None)), xy)


def test_streams_need_an_end(caplog):
    for source in (Stream(), torch.utils.data.DataLoader(Stream(), batch_size=8)):
        with pytest.raises(sotdd.SotddError, match="a stream whose end cannot be seen: pass max_points="):
            open_dataset(source)
        with caplog.at_level(logging.INFO, "sotdd.inputs"):
            opened = open_dataset(source, max_points=11)
        assert opened.rows(slice(None))[:, 0].tolist() == list(range(11))
        assert "the first 11 rows of the stream are taken" in caplog.text


def test_points_alone_are_one_class_when_asked_for():
    class Points(Pairs):
        def __getitem__(self, row):
            return torch.tensor(self.x[row])

    with pytest.raises(sotdd.SotddError, match="pass label=None for one class"):
        open_dataset(Points(np.eye(3), [0, 1, 2]))
    assert open_dataset(Points(np.eye(3), [0, 1, 2]), label=None).counts.tolist() == [3]


class Items(torch.utils.data.Dataset):
    """Whatever items it is given."""

    def __init__(self, *items):
        self.items = items

    def __len__(self):
        return len(self.items)

    def __getitem__(self, row):
        return self.items[row]


@pytest.mark.parametrize(
    ("items", "said"),
    [
        ([], "has no points"),
        ([(torch.zeros(2), 0), (torch.zeros(3), 1)], "point 1 of dataset 'data' has shape (3,) but others (2,)"),
        ([(torch.zeros(2, 2), 0), (torch.zeros(3, 2), 1)], "image_size="),
        ([(torch.zeros(2), 0, 1)], "have 3 parts: expected (point, label)"),
        ([torch.zeros(2)], "are a Tensor: expected (point, label)"),
        ([({}, 0)], "expected numbers"),
        ([(None, 0)], "expected numbers"),
        ([{"a": 1.0, "b": 2.0}], "name the labels with label="),
        ([{"a": 1.0, "b": 2.0, "label": 0}], "name one with features="),
        ([(torch.tensor([float("nan")]), 0)], "NaN or infinite"),
        ([("a text", 0)], "encoder="),
        ([(torch.zeros(2), None)], "1 label that is missing"),
        ([(torch.zeros(2), [1, 2])], "hold a list"),
    ],
)
def test_torch_items_that_are_no_points(items, said):
    assert said in refusal(Items(*items))
