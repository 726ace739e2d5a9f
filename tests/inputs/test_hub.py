"""Datasets of the Hub by name: samples that fetch little, catalogs of them, and one line for what cannot be had."""

import io
import json
import multiprocessing
from concurrent.futures import ProcessPoolExecutor

import numpy as np
import pyarrow as pa
import pytest
from PIL import Image
from pyarrow import parquet

from inputs.helpers import refusal
from inputs.local_hub import command, local_hub, opened

pytest.importorskip("datasets")

ROWS, GROUP, FEATURES = 60_000, 1000, 5


def columns(rows, seed, *, shift=0.0):
    """Rows in the order of their labels, as many a dataset has them."""
    rng = np.random.default_rng(seed)
    labels = np.sort(rng.integers(3, size=rows))
    named = {f"x{k}": rng.normal(shift, 1, size=rows) + labels for k in range(FEATURES)}
    return {**named, "label": np.array(["ant", "bee", "cat"])[labels], "note": ["-" * 40] * rows}


def as_parquet(content, group=GROUP):
    file = io.BytesIO()
    parquet.write_table(pa.table(content), file, row_group_size=group)
    return file.getvalue()


def images():
    """Images the way the Hub keeps them: files in bytes, with a word in the schema on what they are."""
    import datasets

    pixels, content = np.random.default_rng(0).integers(256, size=(120, 6, 6)).astype(np.uint8), io.BytesIO()
    schema = datasets.Features({"image": datasets.Image(), "label": datasets.ClassLabel(names=["cat", "dog"])})
    columns = {"image": list(map(Image.fromarray, pixels)), "label": np.arange(120) % 2}
    datasets.Dataset.from_dict(columns, features=schema).to_parquet(content, batch_size=20)
    return content.getvalue()


@pytest.fixture(scope="module")
def hub():
    configs = "".join(f"- config_name: {name}\n  data_files: {name}/*.parquet\n" for name in "ab")
    small = as_parquet(columns(400, 5), 100)
    lines = "\n".join(json.dumps({"x": n / 7, "y": n % 2}) for n in range(300))
    train = "data/train-00000-of-00001.parquet"
    datasets = {
        "org/large": {
            "data/train-00000-of-00002.parquet": as_parquet(columns(ROWS // 2, 0)),
            "data/train-00001-of-00002.parquet": as_parquet(columns(ROWS // 2, 1)),
            "data/test-00000-of-00001.parquet": small,
        },
        "org/near": {train: as_parquet(columns(3000, 7))},
        "org/far": {train: as_parquet(columns(3000, 8, shift=4))},
        "org/configs": {
            "README.md": f"---\nconfigs:\n{configs}---\n".encode(),
            "a/x.parquet": small,
            "b/x.parquet": small,
        },
        "org/images": {train: images()},
        "org/lines": {"train.jsonl": lines.encode()},
        "org/bare": {train: as_parquet({"x": np.arange(50) / 3.0})},
    }
    with_cards = {name: {"README.md": b"# a dataset\n", **files} for name, files in datasets.items()}
    with local_hub({**with_cards, "org/gated": None}) as one:
        yield one


@pytest.fixture(scope="module")
def process(hub, tmp_path_factory):
    """A process of its own that knows this Hub only: its address is read when the library is imported."""
    home = str(tmp_path_factory.mktemp("home"))
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=context) as pool, pytest.MonkeyPatch.context() as patch:
        for name, value in {"HF_ENDPOINT": hub.url, "HF_HOME": home, "HF_HUB_DOWNLOAD_TIMEOUT": "5"}.items():
            patch.setenv(name, value)
        pool.submit(int).result()  # starts it
        yield pool


@pytest.fixture
def asked(process):
    return lambda source, **settings: process.submit(opened, source, settings).result(timeout=200)


@pytest.fixture
def run(process):
    return lambda *arguments: process.submit(command, list(map(str, arguments))).result(timeout=200)


def test_a_sample_fetches_little_and_is_not_the_beginning(hub, asked):
    hub.served = 0
    classes, counts, shape, names, _ = asked("hub:org/large", max_points=6000)
    assert (shape, sum(counts)) == ((6000, FEATURES), 6000)
    assert classes == ("ant", "bee", "cat")  # the first 6,000 rows are all ants
    assert min(counts) > 500
    assert names == tuple(f"x{k}" for k in range(FEATURES))
    # A tenth of the rows, and the footers of two files.
    assert hub.served < 0.2 * sum(map(len, hub.datasets["org/large"].values()))


def test_named_columns_alone_are_fetched_and_the_seed_decides_which_rows(hub, asked):
    hub.served = 0
    one, again, other = (asked("hub:org/large", max_points=500, seed=seed) for seed in (1, 1, 2))
    np.testing.assert_array_equal(one[-1], again[-1])
    assert (one[-1] != other[-1]).any()
    footers = 2 * 65_536
    whole = hub.served / 3 - footers
    hub.served = 0
    _, _, shape, names, _ = asked("hub:org/large::features=x1,label=label,max_points=500")
    assert (shape, names) == ((500, 1), ("x1",))
    assert hub.served - footers < 0.5 * whole


@pytest.mark.slow
def test_splits_configurations_images_and_other_files(asked):
    assert sum(asked("hub:org/large::split=test,max_points=1000")[1]) == 400
    assert sum(asked("hub:org/configs:b", max_points=1000)[1]) == 400
    classes, counts, shape, *_ = asked("hub:org/images", max_points=100, image_size=(4, 4))
    assert (classes, sum(counts), shape) == (("cat", "dog"), 100, (100, 4, 4))
    classes, counts, shape, *_ = asked("hub:org/lines", max_points=50)
    assert (classes, counts, shape) == ((0, 1), [25, 25], (50, 1))


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("hub:org/none::max_points=9", "'org/none'"),
        ("hub:org/gated::max_points=9", "Gated"),
        ("hub:org/large", "max_points="),
        ("hub:org/large::max_points=9,split=dev", "'train', 'test'"),
        ("hub:org/configs::max_points=9", "'a', 'b'"),
        ("hub:what is this::max_points=9", "what is this"),
        ("hub:org/large::max_points=9,label=kind", "kind"),
    ],
)
def test_what_cannot_be_had_is_one_line(asked, source, said):
    told = asked(source)
    assert isinstance(told, str)
    assert (said in told, "\n" in told) == (True, False)


def test_a_folder_of_the_same_name_is_not_taken_for_it(folder):
    (folder / "mnist").mkdir()
    assert "'mnist'" in refusal("hub:mnist", max_points=5)


def test_a_connection_that_breaks_is_one_line_and_leaves_nothing(hub, run, tmp_path, monkeypatch):
    monkeypatch.setattr(hub, "breaks", True)
    code, _, errors = run("catalog", "add", tmp_path / "catalog", "large", "hub:org/large::max_points=50")
    assert (code, len(errors.splitlines())) == (2, 1), errors
    assert "'org/large'" in errors
    assert not (tmp_path / "catalog").exists()
