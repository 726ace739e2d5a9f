"""The torch engine against the CPU engine; on the processor here, on a GPU where there is one."""

import math
import subprocess
import sys
from itertools import pairwise

import numpy as np
import pytest
import torch

import sotdd
from laws import Circles, Medians
from sotdd import LabelledData
from sotdd.compute import cpu_engine as cpu_loaded
from sotdd.compute import engine as protocol
from sotdd.compute.comparison import compare
from sotdd.compute.cpu_engine import CpuEngine
from sotdd.compute.numpy_engine import NumpyEngine
from sotdd.compute.slices import slice_datasets
from sotdd.compute.torch import fused, loaded
from sotdd.compute.torch import rows as torch_verbs
from sotdd.compute.torch.engine import TorchEngine
from sotdd.inputs import data as opened_data
from sotdd.projections import Moments

needs_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device, and none is here")
DEVICES = ["cpu", pytest.param("cuda", marks=needs_gpu)]


@pytest.fixture
def pair(rng):
    a = rng.normal(size=(1300, 20)) + np.arange(1300)[:, None] % 4, np.arange(1300) % 4
    b = rng.normal(0.5, 1.5, size=(900, 20)), rng.choice(["cat", "dog", "emu"], size=900)
    return [LabelledData.of(a, "a"), LabelledData.of(b, "b")]


def both(datasets, device, p=2, chunk=None, **settings):
    """The same comparison by the engine for processors and by torch; that in plain NumPy says the same."""
    projections = sotdd.Projections.fit(datasets, n_projections=200, **settings)
    pairs = [(0, 1)]
    defined, ours, theirs = (
        compare(datasets, pairs, projections, p, engine=engine)[0, 1].per_projection
        for engine in (NumpyEngine(), CpuEngine(), TorchEngine(device, chunk=chunk))
    )
    np.testing.assert_allclose(ours, defined, rtol=1e-4)
    return ours, theirs


SETTINGS = {
    "default": {},
    "p = 1": {"p": 1},
    "p = 3.5": {"p": 3.5},
    "raw": {"scale": None, "moments": sotdd.projections.UniformOrders(3)},
    "orthogonal": {"directions": sotdd.projections.Orthogonal()},
    "convolution": {"directions": sotdd.projections.Convolution((4, 5), clamp=0.7)},
    "not linear": {"directions": Circles()},
    "label law": {"label_law": Medians()},
    "quantiles": {"label_law": "quantiles"},
    "few quantiles": {"label_law": sotdd.projections.ClassQuantiles(5)},
    "own label directions": {"label_directions": "own"},
    "own label directions, quantiles": {"label_law": "quantiles", "label_directions": "own"},
    "small chunk": {"chunk": 64},
}


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("settings", SETTINGS.values(), ids=SETTINGS)
def test_it_agrees_with_the_cpu_engine(pair, device, settings):
    ours, theirs = both(pair, device, **settings)
    np.testing.assert_allclose(theirs, ours, rtol=1e-4)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("d", [130, 256, 5000])
@pytest.mark.parametrize(
    "settings", [{}, {"tilt": True, "label_directions": "own"}, {"chunk": 128}, {"label_law": "quantiles"}]
)
def test_it_agrees_for_structured_directions(rng, device, d, settings):
    datasets = [LabelledData.of((rng.normal(size=(n, d)), rng.integers(0, 4, size=n)), str(n)) for n in (70, 45)]
    ours, theirs = both(datasets, device, directions=sotdd.projections.Hadamard(), **settings)
    np.testing.assert_allclose(theirs, ours, rtol=1e-4)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("p", [1, 2, 3.5])
def test_matrices_agree_with_their_controls_and_halves(rng, device, p):
    sizes = (70, 45, 45, 120)
    datasets = [LabelledData.of((rng.normal(size=(n, 130)), rng.integers(0, 4, size=n)), str(n)) for n in sizes]
    pairs = [(0, 1), (1, 2), (2, 0), (0, 3), (3, 1)]
    projections = sotdd.Projections.fit(datasets, n_projections=300, tilt=True)
    ours, theirs = (
        compare(datasets, pairs, projections, p, engine=engine, estimator="controlled", halves=True, n_splits=2)
        for engine in (CpuEngine(), TorchEngine(device))
    )
    for pair in pairs:
        np.testing.assert_allclose(theirs[pair].per_projection, ours[pair].per_projection, rtol=1e-4)
        assert theirs[pair].value == pytest.approx(ours[pair].value, rel=1e-4)
        np.testing.assert_allclose(theirs[pair].sampling.distances, ours[pair].sampling.distances, rtol=1e-4)
        np.testing.assert_allclose(theirs[pair].noise.distances, ours[pair].noise.distances, rtol=1e-4)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(
    "law",
    ["paper", "quantiles", Moments(), Moments(3, sotdd.projections.UniformOrders(30))],
    ids=["paper", "quantiles", "moments", "orders beyond what is controlled"],
)
def test_sketches_agree_with_their_controls(rng, device, law):
    datasets = [(rng.normal(size=(n, 130)) + n / 200, rng.integers(0, 4, size=n)) for n in (70, 45)]
    projections = sotdd.Projections.fit(datasets, n_projections=300, label_law=law)
    ours, theirs = (
        [sotdd.sketch(data, projections, name=str(k), device=where) for k, data in enumerate(datasets)]
        for where in ("cpu", device)
    )
    for mine, other in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(other.quantiles, mine.quantiles, rtol=1e-4, atol=1e-5)
    expected, found = sotdd.distance(*ours), sotdd.distance(*theirs)
    assert found.value == pytest.approx(expected.value, rel=1e-4)
    assert found.estimator == expected.estimator


@pytest.mark.parametrize(
    ("device", "n"),
    [("cpu", 100), ("cpu", 5000)]
    # Each of these lengths is sorted in a way of its own there.
    + [pytest.param("cuda", n, marks=needs_gpu) for n in (100, 1025, 5000, 13_001, 40_000, 60_001, 130_000)],
)
def test_rows_are_sorted_whatever_they_hold(device, n):
    random = torch.Generator().manual_seed(0)
    normal = torch.randn((16, n), generator=random)
    lumps = torch.randint(0, 5, (16, n), generator=random) * 1e3 + 1e-3 * normal
    ties = torch.randint(0, 3, (16, n), generator=random).float()
    zeros = torch.where(normal > 0.5, normal, torch.zeros(()))
    hidden = 1e-3 * torch.rand((4, n), generator=random)  # values that a sample at even steps does not see
    for size in (256, 512, 1024):
        hidden[:, torch.arange(size) * n // size] = 100 * torch.randn((4, size), generator=random)
    odd = normal.clone()
    odd[0, 3], odd[1, :5], odd[2, ::2], odd[3] = math.nan, -math.inf, math.inf, math.nan
    rows = torch.cat([normal, lumps, ties, zeros, torch.exp(9 * normal), torch.full((4, n), 2.5), hidden, odd])
    rows = rows.to(device)
    expected = torch.sort(rows, dim=1).values
    found = torch_verbs.sort(rows.clone())
    assert bool(((found == expected) | (found.isnan() & expected.isnan())).all())


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("label", ["moments", "quantiles"])
def test_it_agrees_for_equal_sizes_and_many_classes(rng, device, label):
    datasets = [LabelledData.of((rng.normal(size=(700, 5)), rng.integers(0, 300, size=700)), n) for n in "ab"]
    ours, theirs = both(datasets, device, label_law=label)
    np.testing.assert_allclose(theirs, ours, rtol=1e-4)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", ["uint8", "int64", "float16", "bfloat16", "float32", "float64"])
def test_tensors_of_any_dtype(device, dtype):
    x = torch.randint(0, 9, (40, 6), generator=torch.Generator().manual_seed(0)).to(getattr(torch, dtype))
    y = torch.arange(40) % 3
    plain = x.double().numpy(), y.numpy()
    other = plain[0] + np.arange(6), plain[1]
    expected = sotdd.distance(plain, other, n_projections=64)
    found = sotdd.distance((x.to(device), y.to(device)), other, n_projections=64)
    assert found.value == pytest.approx(expected.value, rel=1e-4)


@pytest.mark.parametrize("at_a_time", [1, 7, 20])
@pytest.mark.parametrize("scale", [None, "pooled", "features", "arcsinh"])
def test_means_over_points_agree(pair, scale, at_a_time, monkeypatch):
    monkeypatch.setattr(opened_data, "_CLASS_BYTES", 8 * 4 * at_a_time)  # features of the first dataset
    monkeypatch.setattr(cpu_loaded, "_SHARE_BYTES", 8 * 4 * 20 * at_a_time)  # shares of both
    recipe = sotdd.Projections.fit(pair, scale=scale, n_projections=64)
    scaler, found = recipe.scaler, []
    for engine in (CpuEngine(), TorchEngine("cpu"), NumpyEngine()):
        with engine:
            slices = next(slice_datasets(pair, recipe, engine, class_moments=True))
            found.append([engine.collect([norms]) for norms in slices.point_norms])
    for number, data in enumerate(pair):
        points = data.rows(slice(None)) if scaler is None else scaler.apply(data.rows(slice(None)))
        squares = np.sum(points**2, axis=1)
        classes = [points[data.codes == code] for code in range(len(data.classes))]
        between = sum(len(members) * np.sum(members.mean(axis=0) ** 2) for members in classes) / len(points)
        for means in (engine[number] for engine in found):
            np.testing.assert_allclose(means[:3], [np.mean(squares**k) for k in (1, 2, 3)], rtol=1e-5)
            np.testing.assert_allclose(means[4:], points.mean(axis=0), rtol=1e-5, atol=1e-5)
            assert means[3] == pytest.approx(between, rel=1e-5)


@pytest.mark.parametrize("label_law", ["moments", "quantiles"])
def test_rows_by_class_agree(pair, label_law):
    projections = sotdd.Projections.fit(pair, n_projections=200, label_law=label_law, label_directions="own")
    by_engine = {}
    for engine in (CpuEngine(chunk=64), TorchEngine("cpu", chunk=64), NumpyEngine()):
        with engine as active:
            chunks = [
                [np.asarray(rows).copy() for rows in slices.rows]
                for slices in slice_datasets(pair, projections, active, by_class=(0, 1))
            ]
        by_engine[type(engine)] = [np.concatenate(parts) for parts in zip(*chunks, strict=True)]
    for data, ours, *others in zip(pair, *by_engine.values(), strict=True):
        assert ours.shape == (200, data.n_points)
        for theirs in others:
            np.testing.assert_allclose(theirs, ours, rtol=1e-4, atol=1e-3)
        edges = data.offsets
        for first, last in pairwise(edges):
            assert (np.diff(ours[:, first:last], axis=1) >= 0).all(), "each class is sorted on its own"


# ------------------------------------------------------------------ memory


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("verb", ["sort", "transport_rows"])
def test_running_out_of_memory_halves_the_chunk(pair, device, verb, monkeypatch):
    """The sort, or the transport, fails for more than ten rows at a time; the result is the same."""
    ours, _ = both(pair, device)
    whole, tried = getattr(torch_verbs, verb), []

    def limited(rows, *others):
        tried.append(len(rows))
        if len(rows) > 10:
            raise torch.OutOfMemoryError("no memory")
        return whole(rows, *others)

    monkeypatch.setattr(torch_verbs, verb, limited)
    _, theirs = both(pair, device, chunk=128)
    np.testing.assert_allclose(theirs, ours, rtol=1e-4)
    assert tried[:5] == [128, 64, 32, 16, 8]


def test_a_single_projection_that_does_not_fit_is_an_error(pair, monkeypatch):
    def never(rows):
        raise torch.OutOfMemoryError("no memory")

    monkeypatch.setattr(torch_verbs, "sort", never)
    with pytest.raises(torch.OutOfMemoryError):
        both(pair, "cpu")


@pytest.mark.parametrize("device", DEVICES)
def test_data_stream_through_where_they_do_not_fit(pair, device, monkeypatch):
    monkeypatch.setattr(loaded, "_RESIDENT_SHARE", 0.0)
    monkeypatch.setattr(torch_verbs, "cut_rows", lambda data: [slice(i, i + 100) for i in range(0, data.n_points, 100)])
    ours, theirs = both(pair, device)
    np.testing.assert_allclose(theirs, ours, rtol=1e-4)


# ------------------------------------------------------------------ errors, in the same words as on the CPU


@pytest.mark.parametrize("device", DEVICES)
def test_overflow_is_told(device):
    x = np.array([[0.0], [1e9]])
    data = [LabelledData.of(x, "a"), LabelledData.of(x, "b")]
    projections = sotdd.Projections.fit(data, scale=None)
    said = []
    for engine in (CpuEngine(), TorchEngine(device), NumpyEngine()):
        with pytest.raises(sotdd.SotddError, match="class moments of dataset 'a' overflow") as caught:
            compare(data, [(0, 1)], projections, 2, engine=engine)
        said.append(str(caught.value))
    assert said == said[:1] * 3
    huge = [LabelledData.of(x * 1e290, "a")] * 2
    for engine in (CpuEngine(), TorchEngine(device), NumpyEngine()):
        with pytest.raises(sotdd.SotddError, match="too large for float32"):
            compare(huge, [(0, 1)], sotdd.Projections.fit(huge, scale=None), 2, engine=engine)


def test_devices_are_checked(pair):
    for bad in ("tpu", "cuda:x", "meta", "gpu"):
        with pytest.raises(sotdd.SotddError, match=f"device is '{bad}'"):
            sotdd.distance(*pair, device=bad)
    with pytest.raises(sotdd.SotddError, match=r"cuda:.* finds \d GPU"):
        sotdd.distance(*pair, device=f"cuda:{torch.cuda.device_count()}")


def test_without_torch_it_says_what_to_install(pair, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(sotdd.SotddError, match=r"pip install 'sotdd\[torch\]'"):
        sotdd.distance(*pair, device="cuda")


# ------------------------------------------------------------------ the choice of an engine


def test_auto_takes_a_gpu_for_much_work(pair, monkeypatch):
    monkeypatch.setattr(protocol, "_has_gpu", lambda: True)
    assert protocol._choose_device(pair, 10**8) == "cuda"
    assert isinstance(protocol.choose_engine("auto", pair, 100), CpuEngine)


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU here")
def test_torch_is_not_loaded_where_there_is_no_gpu():
    code = """if True:
        import sys, numpy as np
        from sotdd import LabelledData
        from sotdd.compute.engine import choose_engine
        choose_engine("auto", [LabelledData.of(np.zeros((9, 9)))], 10**15)
        print("torch" in sys.modules)
    """
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


@needs_gpu
def test_tensors_on_a_device_stay_there(pair):
    x = torch.randn(50, 20, device="cuda")
    data = LabelledData.of(x)
    assert data.features.tensor.data_ptr() == x.data_ptr()
    assert isinstance(protocol.choose_engine("auto", [data], 1), TorchEngine)
    assert sotdd.distance(x, x.cpu().numpy()).value < 1e-6
    assert sotdd.distance(x, x, device="cpu").value == 0
    x[3, 4] = float("nan")
    with pytest.raises(sotdd.SotddError, match="row 3, feature 4"):
        sotdd.distance(x, x)


@needs_gpu
def test_fused_loops_agree_with_plain_torch(rng, monkeypatch, pair):
    assert fused.available(torch.empty(1, device="cuda"))
    _, with_triton = both(pair, "cuda")
    monkeypatch.setattr(fused, "available", lambda rows: False)
    _, without = both(pair, "cuda")
    np.testing.assert_allclose(with_triton, without, rtol=1e-6)


def test_torch_settings_are_left_as_found(pair):
    for before in ("highest", "high"):
        torch.set_float32_matmul_precision(before)
        with TorchEngine("cpu"):
            assert torch.get_float32_matmul_precision() == "highest"
        assert torch.get_float32_matmul_precision() == before
    torch.set_float32_matmul_precision("highest")
