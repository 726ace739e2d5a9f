"""Datasets of Hugging Face, in memory, saved and streamed."""

import numpy as np

from inputs.helpers import D, N, refusal, same
from sotdd import open_dataset


def test_huggingface(xy, folder, hub):
    x, y = xy
    names = ["cat", "dog", "emu"]
    schema = hub.Features({"v": hub.List(hub.Value("float64"), length=D), "animal": hub.ClassLabel(names=names)})
    data = hub.Dataset.from_dict({"v": x.tolist(), "animal": y.tolist()}, features=schema)
    same(open_dataset(data), xy)
    assert not isinstance(open_dataset(data).features, np.ndarray)
    order = np.random.default_rng(0).permutation(N)
    same(open_dataset(data.select(order)), (x[order], y[order]))
    data.save_to_disk("saved")
    same(open_dataset("saved"), xy)
    same(open_dataset("hf:saved"), xy)
    hub.DatasetDict({"train": data, "test": data.select(range(10))}).save_to_disk("splits")
    same(open_dataset("hf:splits::split=test"), (x[:10], y[:10]))
    same(open_dataset("hf:splits", split=hub.Split.TEST), (x[:10], y[:10]))
    for text in ("hf:splits", "hf:splits::split=dev"):
        assert "'train', 'test'" in refusal(text)
    same(open_dataset(data.to_iterable_dataset(), max_points=20), (x[:20], y[:20]))
    assert "max_points=" in refusal(data.to_iterable_dataset())
    doubled = data.with_transform(lambda rows: {"v": [np.array(v) * 2 for v in rows["v"]], "label": rows["animal"]})
    assert open_dataset(doubled).rows(slice(0, 1))[0].tolist() == (2 * x[0]).tolist()


def test_huggingface_columns(xy, hub):
    x, y = xy
    data = hub.Dataset.from_dict({"a": x[:, 0], "b": x[:, 1], "kind": y.tolist()})
    same(open_dataset(data, label="kind"), (x[:, :2], y))
    same(open_dataset(data, label="kind", features=["b"]), (x[:, 1:2], y))
    same(open_dataset(data.to_iterable_dataset(), label="kind", max_points=N), (x[:, :2], y))
    grid = hub.Dataset.from_dict(
        {"m": x.reshape(N, 2, 2), "label": y.tolist()},
        features=hub.Features({"m": hub.Array2D((2, 2), "float64"), "label": hub.Value("string")}),
    )
    opened = open_dataset(grid)
    same(opened, xy)
    assert opened.point_shape == (2, 2)


def test_unknown_class_labels_are_missing(hub):
    schema = hub.Features({"x": hub.Value("float32"), "label": hub.ClassLabel(names=["a", "b"])})
    data = hub.Dataset.from_dict({"x": [1, 2, 3, 4], "label": [0, -1, 1, None]}, features=schema)
    for source, more in [(data, {}), (data.to_iterable_dataset(), {"max_points": 4})]:
        assert "2 labels" in refusal(source, **more)
        assert open_dataset(source, drop_missing=True, **more).rows(slice(None))[:, 0].tolist() == [1, 3]


def test_saved_folders_that_are_damaged(folder, hub):
    hub.Dataset.from_dict({"x": [1.0, 2.0], "label": [0, 1]}).save_to_disk("saved")
    for path in (folder / "saved").glob("*.arrow"):
        path.write_bytes(path.read_bytes()[:50])
    assert "cannot read saved" in refusal("hf:saved")
    empty = hub.Dataset.from_dict({"x": [], "label": []})
    assert "no rows" in refusal(empty)
