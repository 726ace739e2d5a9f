"""Torch datasets, loaders and streams."""

import logging

import numpy as np
import pytest
import torch

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


@pytest.mark.parametrize("how", [{"batch_size": 64}, {"batch_size": 7, "num_workers": 2}, {"batch_size": None}])
def test_torch_loaders(xy, how):
    same(open_dataset(torch.utils.data.DataLoader(Pairs(*xy), **how)), xy)
    same(open_dataset(torch.utils.data.DataLoader(Fields(*xy), **how)), xy)


def test_streams_need_an_end(caplog):
    for source in (Stream(), torch.utils.data.DataLoader(Stream(), batch_size=8)):
        assert "max_points=" in refusal(source)
        with caplog.at_level(logging.INFO, "sotdd.inputs"):
            opened = open_dataset(source, max_points=11)
        assert opened.rows(slice(None))[:, 0].tolist() == list(range(11))
        assert "the first 11 rows" in caplog.text


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
        ([], "no points"),
        ([(torch.zeros(2), 0), (torch.zeros(3), 1)], "point 1 of dataset 'data' has shape (3,)"),
        ([(torch.zeros(2, 2), 0), (torch.zeros(3, 2), 1)], "image_size="),
        ([(torch.zeros(2), 0, 1)], "3 parts"),
        ([torch.zeros(2)], "label=None"),
        ([({}, 0)], "dict"),
        ([(None, 0)], "None"),
        ([{"a": 1.0, "b": 2.0}], "label="),
        ([{"a": 1.0, "b": 2.0, "label": 0}], "features="),
        ([(torch.tensor([float("nan")]), 0)], "NaN"),
        ([("a text", 0)], "encoder="),
        ([(torch.zeros(2), None)], "1 label"),
        ([(torch.zeros(2), [1, 2])], "list"),
    ],
)
def test_torch_items_that_are_no_points(items, said):
    assert said in refusal(Items(*items))
    if len(items) == 1 and not isinstance(items[0], (tuple, dict)):
        assert open_dataset(Items(*items), label=None).counts.tolist() == [1]  # points alone
