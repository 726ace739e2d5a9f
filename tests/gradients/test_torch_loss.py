"""The differentiable loss: its values against the CPU engine and a brute force, its gradients, its refusals."""

import warnings

import numpy as np
import pytest
import torch
from torch.autograd import gradcheck, gradgradcheck

import reference
import sotdd
from laws import Circles, Medians
from sotdd.gradients.loss import sotdd_loss

ORDERS = [1, 1.5, 2, 3]
SIZES = [(24, 24), (24, 15)]


def datasets(rng, n, m, d=3):
    a = rng.normal(3, 2, size=(n, d)), np.arange(n) % 3
    return a, (rng.normal(2, 1, size=(m, d)), np.arange(m) % 2)


def tensors(data, dtype=torch.float64):
    return torch.tensor(data[0], dtype=dtype), torch.tensor(data[1])


# ------------------------------------------------------------------ values


@pytest.mark.parametrize("p", ORDERS)
@pytest.mark.parametrize(("n", "m", "far"), [(200, 200, 0.0), (200, 133, 12345.678), (7, 1, 0.0)])
def test_agrees_with_the_distance_in_float32(rng, n, m, p, far):
    """Also where features are far from zero and single precision has few digits left."""
    a, b = ((np.float32(x + far), y) for x, y in datasets(rng, n, m))
    projections = sotdd.Projections.fit([a, b], n_projections=300)
    loss = sotdd_loss(*tensors(a, torch.float32), *tensors(b, torch.float32), projections, p=p)
    assert loss.dtype == torch.float32
    assert loss.shape == ()
    assert loss.item() == pytest.approx(
        sotdd.distance(a, b, projections=projections, p=p, estimator="plain").value ** p, rel=1e-4
    )


@pytest.mark.parametrize("p", ORDERS)
@pytest.mark.parametrize(("n", "m"), SIZES)
def test_agrees_with_the_brute_force_in_float64(rng, n, m, p):
    a, b = datasets(rng, n, m)
    drawn = {**reference.draw(rng, 70, 3, own=n != m), "clamp": 2.5}
    loss = sotdd_loss(*tensors(a), *tensors(b), sotdd.Projections.from_arrays(**drawn), p=p)
    assert loss.item() == pytest.approx(reference.per_projection(a, b, p=p, **drawn).mean(), rel=1e-6)


@pytest.mark.parametrize(("dtype", "within"), [(torch.float16, 3e-3), (torch.bfloat16, 2e-2)])
def test_half_precision_is_kept_and_computed_in_single(rng, dtype, within):
    a, b = datasets(rng, 60, 50)
    projections = sotdd.Projections.fit([a, b], n_projections=128)
    x, y = tensors(a, dtype)
    x.requires_grad_()
    loss = sotdd_loss(x, y, *tensors(b, dtype), projections)
    loss.backward()
    assert loss.dtype == x.grad.dtype == dtype
    assert loss.item() == pytest.approx(
        sotdd.distance(a, b, projections=projections, estimator="plain").value ** 2, rel=within
    )


def test_points_of_any_shape_and_layout_and_labels_of_any_kind(rng):
    images, more = torch.randn(20, 4, 4), torch.randn(16, 4, 4).transpose(1, 2)  # the second is not contiguous
    law = sotdd.projections.Convolution((4, 4), clamp=1.0)
    projections = sotdd.Projections.fit([images, more], n_projections=64, directions=law)
    words = ["cat", "dog"] * 10
    found = [
        sotdd_loss(images, labels, more, np.zeros(16), projections).item()
        for labels in (words, np.array(words), torch.arange(20) % 2, torch.arange(20) % 2 + 0.5, [1, "a"] * 10)
    ]
    expected = (
        sotdd.distance((images, words), (more, np.zeros(16)), projections=projections, estimator="plain").value ** 2
    )
    np.testing.assert_allclose(found, expected, rtol=1e-4)


# ------------------------------------------------------------------ soft labels


def test_soft_labels_that_are_certain_are_hard_labels(rng):
    (x, y), (x2, y2) = map(tensors, datasets(rng, 24, 15))
    projections = sotdd.Projections.fit([x, x2], n_projections=64)
    sure = torch.nn.functional.one_hot(y, 5).double()  # two of the classes are empty
    soft = sotdd_loss(x, sure.requires_grad_(), x2, y2, projections)
    soft.backward()
    assert soft.item() == pytest.approx(sotdd_loss(x, y, x2, y2, projections).item(), rel=1e-12)
    assert sure.grad.isfinite().all()


def test_soft_labels_by_their_definition(rng):
    """Powers and loops: a class's term is a weighted mean, a point's shift an expectation of it."""
    a, b = datasets(rng, 12, 12)
    drawn = reference.draw(rng, 10, 3)
    probabilities = rng.dirichlet([1, 1, 1], size=12)
    expected = []
    for theta, psi, orders in zip(drawn["theta"], drawn["psi"], drawn["orders"], strict=True):
        t = a[0] @ theta
        label = sum(w * t**k / np.prod(np.arange(1.0, k + 1)) for w, k in zip(psi[1:], orders, strict=True))
        terms = [np.average(label, weights=probabilities[:, c]) for c in range(3)]
        mine = [psi[0] * t[i] + sum(probabilities[i, c] * terms[c] for c in range(3)) for i in range(12)]
        theirs = reference.data_point_projections(*b, theta, psi, orders)
        expected.append(reference.wasserstein(mine, theirs, 2))
    loss = sotdd_loss(
        torch.tensor(a[0]), torch.tensor(probabilities), *tensors(b), sotdd.Projections.from_arrays(**drawn)
    )
    assert loss.item() == pytest.approx(np.mean(expected), rel=1e-10)


# ------------------------------------------------------------------ gradients


@pytest.mark.parametrize(
    ("n", "m", "soft", "p"), [(7, 7, False, 1.5), (7, 4, False, 2), (7, 7, True, 2), (7, 4, True, 3), (7, 4, True, 1.5)]
)
def test_gradients_are_those_of_finite_differences(rng, n, m, soft, p):
    a, b = datasets(rng, n, m)
    projections = sotdd.Projections.fit([a, b], n_projections=10)
    (x, y), (x2, y2) = map(tensors, (a, b))
    x.requires_grad_()
    x2.requires_grad_()
    if not soft:
        assert gradcheck(lambda left, right: sotdd_loss(left, y, right, y2, projections, p), (x, x2))
        return
    logits, logits2 = torch.randn(n, 3).double().requires_grad_(), torch.randn(m, 2).double().requires_grad_()

    def of_logits(left, labels, right, labels2):
        return sotdd_loss(left, labels.softmax(1), right, labels2.softmax(1), projections, p)

    assert gradcheck(of_logits, (x, logits, x2, logits2))


def test_gradients_have_gradients(rng):
    a, b = datasets(rng, 5, 4, d=2)
    projections = sotdd.Projections.fit([a, b], n_projections=10)
    x, y = tensors(a)
    x2, y2 = tensors(b)
    assert gradgradcheck(lambda left: sotdd_loss(left, y, x2, y2, projections), x.requires_grad_())


@pytest.mark.parametrize("p", ORDERS)
def test_the_gradient_of_no_distance_is_zero(rng, p):
    (x, y), _ = map(tensors, datasets(rng, 10, 10))
    projections = sotdd.Projections.fit([x], n_projections=64)
    leaf = x.clone().requires_grad_()
    loss = sotdd_loss(leaf, y, x, y, projections, p)
    loss.backward()
    assert loss.item() == 0
    assert not leaf.grad.any()


def test_chunks_change_nothing(rng, monkeypatch):
    (x, y), (x2, y2) = map(tensors, datasets(rng, 24, 15))
    projections = sotdd.Projections.fit([x, x2], n_projections=200)
    found = []
    for size in (1 << 20, 1, 128 * 39):
        monkeypatch.setattr("sotdd.gradients.loss._CHUNK_VALUES", size)
        leaf = x.clone().requires_grad_()
        loss = sotdd_loss(leaf, y, x2, y2, projections)
        loss.backward()
        found.append((loss.item(), leaf.grad))
    for value, slope in found[1:]:
        assert value == pytest.approx(found[0][0], rel=1e-12)
        torch.testing.assert_close(slope, found[0][1])


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_on_a_gpu(rng):
    (x, y), (x2, y2) = map(tensors, datasets(rng, 24, 15))
    projections = sotdd.Projections.fit([x, x2], n_projections=200)
    there = sotdd_loss(x.cuda(), y.cuda(), x2.cuda(), y2, projections)
    assert there.device.type == "cuda"
    assert there.item() == pytest.approx(sotdd_loss(x, y, x2, y2, projections).item(), rel=1e-10)
    with pytest.raises(sotdd.SotddError, match=r"on cuda:0 but x2 is .* on cpu"):
        sotdd_loss(x.cuda(), y, x2, y2, projections)


# ------------------------------------------------------------------ refusals

ONES = torch.ones(4, 3)
HALVES = torch.full((4, 2), 0.5)

REFUSED = [
    ({"x": np.ones((4, 3))}, "x is a ndarray: expected a torch tensor"),
    ({"x2": torch.ones(4, 3, dtype=torch.int64)}, "x2 has dtype torch.int64 .*: expected floating point"),
    ({"x": torch.ones(4, 3, dtype=torch.complex64)}, "x has dtype torch.complex64 .*: expected floating point"),
    ({"x": torch.tensor(1.0)}, r"x has .* shape \(\): expected .* \(n, \.\.\.\)"),
    ({"x": torch.ones(0, 3)}, r"x has .* shape \(0, 3\): expected"),
    ({"x": torch.ones(4, 2)}, "x has 2 features but the projections are for 3"),
    ({"x": ONES * torch.tensor([1, float("nan"), 1])}, "x has 4 of 12 values NaN or infinite"),
    ({"x2": ONES.double()}, "x is torch.float32 on cpu but x2 is torch.float64"),
    ({"y": [0, 1]}, "labels of dataset 'x' have 2 entries but features have 4 rows"),
    ({"y2": torch.zeros(4, 2, dtype=torch.int64)}, r"labels of dataset 'x2' have shape \(4, 2\)"),
    ({"y": None}, "labels of dataset 'x' are None"),
    ({"y": torch.full((3, 2), 0.5)}, r"y has shape \(3, 2\) but there are 4 points"),
    ({"y": HALVES.double()}, "x is torch.float32 on cpu but y is torch.float64"),
    ({"y": HALVES - torch.tensor([1.0, -1.0])}, "y holds values from -0.5"),
    ({"y2": HALVES * float("nan")}, "y2 holds values from nan"),
    ({"y2": HALVES * 1.1}, "y2 .* its rows sum to one only to within 0.1"),
    ({"projections": 100}, r"projections is 100: expected Projections\.fit"),
    ({"p": 0.5}, "p is 0.5: expected a finite number of at least 1"),
    ({"x": ONES * 1e30}, "the loss is not finite at p=2"),
]


MADE = [
    lambda x: x.to_sparse(),
    lambda x: x.to("meta"),
    lambda x: torch.quantize_per_tensor(x, 0.1, 0, torch.quint8),
    lambda x: torch.nested.nested_tensor(list(x)),
]
with warnings.catch_warnings(action="ignore"):  # torch calls its own tensors experimental, or obsolete
    REFUSED += [({"x2": make(ONES)}, "x2 is sparse, nested, quantized or meta") for make in MADE]
    REFUSED += [({"y": make(HALVES)}, "y is sparse, nested, quantized or meta") for make in MADE]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("wrong", "message"), REFUSED, ids=[message[:40] for _, message in REFUSED])
def test_bad_input_is_refused_in_one_line(wrong, message):
    good = {"x": ONES, "y": [0, 0, 1, 1], "x2": ONES + 1, "y2": torch.zeros(4, dtype=torch.int64)}
    good["projections"] = sotdd.Projections.fit([ONES], n_projections=64)
    with pytest.raises(sotdd.SotddError, match=message):
        sotdd_loss(**{**good, **wrong})


@pytest.mark.parametrize(
    ("laws", "message"),
    [
        ({"label_law": Medians()}, "Summaries"),
        ({"label_law": "quantiles"}, "label_law='moments'"),
        ({"directions": Circles()}, "point maps"),
    ],
)
def test_laws_without_a_gradient_are_refused(laws, message):
    projections = sotdd.Projections.fit([ONES], n_projections=64, **laws)
    with pytest.raises(sotdd.SotddError, match=message):
        sotdd_loss(ONES, [0] * 4, ONES, [0] * 4, projections)


def test_autocast_does_not_reach_the_loss():
    x, x2 = torch.randn(60, 4, generator=torch.Generator().manual_seed(0)), torch.zeros(50, 4)
    projections = sotdd.Projections.fit([x, x2 + 1], n_projections=128)
    labels = torch.zeros(60, dtype=torch.int64), torch.zeros(50, dtype=torch.int64)
    plain = sotdd.gradients.sotdd_loss(x, labels[0], x2, labels[1], projections)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert torch.equal(sotdd.gradients.sotdd_loss(x, labels[0], x2, labels[1], projections), plain)
