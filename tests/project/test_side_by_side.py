"""Networks trained side by side are those that plain torch trains alone; what the trainings of the paper stand on."""

import dataclasses

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="the experiments train networks: needs torch")

from experiments import (  # noqa: E402
    augmentation_training,
    data,
    families,
    jitter,
    networks,
    nist_training,
    options,
    side_by_side,
    tiny_training,
)


def _plain(weights, place, classes):
    """Network number ``place`` as an ordinary module: channels first, where the stack has them last."""
    model = networks.LeNet5(classes)
    parts = [(weight[place], bias[place, 0]) for weight, bias in weights]
    linear = [layer for layer in model.head if isinstance(layer, torch.nn.Linear)]
    first, second = (layer for layer in model.convolutions if isinstance(layer, torch.nn.Conv2d))
    with torch.no_grad():
        for layer, channels, (weight, bias) in zip((first, second), (1, 6), parts, strict=False):
            layer.weight.copy_(weight.reshape(5, 5, channels, -1).permute(3, 2, 0, 1))
            layer.bias.copy_(bias)
        for layer, (weight, bias) in zip(linear, parts[2:], strict=True):
            layer.weight.copy_(weight.T[: layer.out_features])
            layer.bias.copy_(bias[: layer.out_features])
        flat = linear[0].weight.unflatten(1, (4, 4, 16)).permute(0, 3, 1, 2).flatten(1)
        linear[0].weight.copy_(flat)
    return model


@pytest.mark.slow
def test_networks_trained_side_by_side_are_those_trained_alone(rng):
    classes, sizes, batch, epochs = (10, 4), (40, 26), 16, 4
    layers = side_by_side.lenet(10)
    sets = [
        (torch.tensor(rng.normal(size=(n, 28, 28, 1)), dtype=torch.float32), torch.tensor(rng.integers(0, c, size=n)))
        for n, c in zip(sizes, classes, strict=True)
    ]
    x = torch.nn.utils.rnn.pad_sequence([part for part, _ in sets], batch_first=True)
    y = torch.nn.utils.rnn.pad_sequence([part for _, part in sets], batch_first=True)
    weights = side_by_side.drawn(layers, [0, 1], "cpu")
    alone = [_plain(weights, place, count) for place, count in enumerate(classes)]
    optimisers = [torch.optim.Adam(model.parameters(), lr=1e-3, weight_decay=1e-6) for model in alone]
    stream = side_by_side.batches(sizes, batch, torch.Generator().manual_seed(0), "cpu")
    ends = [epochs * 3, epochs * 2]
    which = torch.arange(2)[:, None]

    def loss_of(step):
        local = next(stream)
        rows = local.clamp(min=0)
        for place, model in enumerate(alone):
            if step < ends[place]:
                mine = local[place][local[place] >= 0]
                found = model(sets[place][0][mine].permute(0, 3, 1, 2))
                optimisers[place].zero_grad()
                torch.nn.functional.cross_entropy(found, sets[place][1][mine]).backward()
                optimisers[place].step()
        logits = side_by_side.outputs(layers, weights, x[which, rows])
        return side_by_side.loss(side_by_side.masked(logits, torch.tensor(classes)), y[which, rows], local >= 0)

    start = side_by_side.chosen(weights, slice(None))
    trained = side_by_side.fit(weights, loss_of, ends, rate=1e-3, decay=1e-6)
    assert (trained[0][0] - start[0][0]).abs().max() > 1e-3
    for place, model in enumerate(alone):
        found = _plain(trained, place, classes[place])
        for (name, mine), (_, theirs) in zip(found.named_parameters(), model.named_parameters(), strict=True):
            torch.testing.assert_close(mine, theirs, atol=1e-4, rtol=0, msg=lambda text, name=name: f"{name}: {text}")
        shown = side_by_side.over_all(layers, side_by_side.chosen(trained, [place]), sets[place][0], lambda x: x)
        with torch.no_grad():
            theirs = model(sets[place][0].permute(0, 3, 1, 2))
        torch.testing.assert_close(shown[0, :, : classes[place]], theirs, atol=1e-4, rtol=0)


def test_padded_convolutions_and_their_gradients_are_those_of_torch(rng):
    layer = side_by_side.Conv(3, 8, 3, 1)
    x = torch.tensor(rng.normal(size=(2, 5, 8, 8, 3)), dtype=torch.float64, requires_grad=True)
    weights = [(w.double().requires_grad_(), b.double().requires_grad_()) for w, b in
               side_by_side.drawn([layer], [0, 1], "cpu", gain=2.0)]  # fmt: skip
    found = side_by_side.outputs([layer], weights, x)
    found.pow(2).sum().backward()
    given = [part.grad.clone() for part in (x, *weights[0])]
    for part in (x, *weights[0]):
        part.grad = None
    whole = 0
    for place in range(2):
        kernel = weights[0][0][place].reshape(3, 3, 3, 8).permute(3, 2, 0, 1)
        shown = torch.nn.functional.conv2d(x[place].permute(0, 3, 1, 2), kernel, weights[0][1][place, 0], padding=1)
        pooled = torch.nn.functional.max_pool2d(shown.relu(), 2).permute(0, 2, 3, 1)
        torch.testing.assert_close(found[place], pooled)
        whole = whole + pooled.pow(2).sum()
    whole.backward()
    for mine, part in zip(given, (x, *weights[0]), strict=True):
        torch.testing.assert_close(mine, part.grad)


def test_every_epoch_sees_every_point_once_and_sizes_that_are_apart_are_refused():
    stream = side_by_side.batches([7, 7, 4], 3, torch.Generator().manual_seed(0), "cpu")
    first = torch.cat([next(stream) for _ in range(6)], dim=1)
    for epoch in (first[:2, :9], first[:2, 9:]):
        assert all(sorted(row) == [-1, -1, *range(7)] for row in epoch.tolist())
    assert sorted(first[2, :6].tolist()) == [-1, -1, 0, 1, 2, 3]
    assert first[0].tolist() != first[1].tolist()
    with pytest.raises(ValueError, match="beside each other"):
        next(side_by_side.batches([4, 7, 4], 3, torch.Generator(), "cpu"))


def test_dropout_leaves_the_mean_and_the_last_layer_alone():
    layers = (side_by_side.Linear(1, 4000), side_by_side.Linear(4000, 4000, last=True))
    weights = [
        (torch.ones(1, 1, 4000), torch.zeros(1, 1, 4000)),
        (torch.eye(4000)[None], torch.zeros(1, 1, 4000)),
    ]
    generator = torch.Generator().manual_seed(0)
    found = side_by_side.outputs(layers, weights, torch.ones(1, 1, 1), 0.5, generator)
    assert set(found.unique().tolist()) == {0.0, 2.0}
    assert float(found.mean()) == pytest.approx(1, abs=0.1)


# --------------------------------------------------------------------------- *NIST


def test_nist_networks_resume_from_the_cache_and_leave_the_sources_alone(tmp_path, data_folder):
    sizes = dataclasses.replace(nist_training.SIZES["smallest"], sets=("mnist", "usps"))
    given = options.Options(data_folder, tmp_path, size="smallest", cache=tmp_path / "cache")
    bench = nist_training.Bench(given, sizes)
    before = side_by_side.chosen(bench.alone(few=False)["usps"], slice(None))
    rows = bench.transfers({"points": "all", "target": "mnist"})
    assert {(row["source"], row["seed"]) for row in rows} == {(s, n) for s in ("mnist", "usps") for n in (0, 1)}
    for old, new in zip(before, bench.alone(few=False)["usps"], strict=True):
        assert all(torch.equal(a, b) for a, b in zip(old, new, strict=True))
    again = nist_training.Bench(given, sizes)
    assert torch.equal(again.alone(few=False)["mnist"][0][0], bench.alone(few=False)["mnist"][0][0])
    assert again.transfers({"points": "all", "target": "mnist"}) == rows


def test_letters_lie_on_their_side_as_the_authors_load_them(data_folder):
    given, sizes = options.Options(data_folder), nist_training.SIZES["smallest"]
    upright, lying = (
        data.images("emnist_letters", given.data)[1],
        nist_training.pictures("emnist_letters", given, sizes),
    )
    np.testing.assert_array_equal(lying[1].x, upright.sample(sizes.points).x.transpose(0, 2, 1))
    scaled = nist_training.scaled(torch.tensor([0, 255]))
    torch.testing.assert_close(scaled, torch.tensor([-0.1307, 1 - 0.1307]) / 0.3081)


# --------------------------------------------------------------------------- Tiny-ImageNet


def test_families_hold_every_class_once(data_folder):
    names = [name for family in families.FAMILIES.values() for name in family]
    assert sorted(names) == sorted(data.tiny_classes(data_folder))
    assert {len(family) for family in families.FAMILIES.values()} == {20}
    sizes = tiny_training.SIZES["gpu"]
    for kind in tiny_training.KINDS:
        tasks = tiny_training.classes_of(kind, data_folder, sizes)
        assert sorted(label for task in tasks for label in task) == list(range(200))


def test_batch_norm_is_estimated_anew(rng):
    body = networks.ResNet18(3, small=True, width=4).body
    batches = [torch.tensor(rng.normal(3, 2, size=(6, 3, 8, 8)), dtype=torch.float32) for _ in range(3)]
    before = [part.weight.clone() for part in body.modules() if isinstance(part, torch.nn.Conv2d)]
    for _ in range(2):  # a second time forgets the first
        tiny_training.estimate_again(body, batches)
    first = body[1]
    shown = [body[0](batch) for batch in batches]
    mean = torch.stack([part.mean(dim=(0, 2, 3)) for part in shown]).mean(dim=0)
    spread = torch.stack([part.var(dim=(0, 2, 3)) for part in shown]).mean(dim=0)
    torch.testing.assert_close(first.running_mean, mean, atol=1e-4, rtol=1e-4)
    torch.testing.assert_close(first.running_var, spread, atol=1e-4, rtol=1e-4)
    assert not body.training
    after = [part.weight for part in body.modules() if isinstance(part, torch.nn.Conv2d)]
    assert all(torch.equal(a, b) for a, b in zip(before, after, strict=True))


# --------------------------------------------------------------------------- augmentation


@pytest.mark.parametrize("count", [9, 49])
def test_the_strengths_of_augmentations_are_uncorrelated(count):
    table = np.array([design.strengths for design in augmentation_training.strengths(count)])
    assert table.shape == (count, 4)
    np.testing.assert_allclose(np.corrcoef(table.T), np.eye(4), atol=1e-12)
    np.testing.assert_allclose(table.min(axis=0), [0.1, 0.1, 0.1, 0.0])
    np.testing.assert_allclose(table.max(axis=0), [0.9, 0.9, 0.9, 0.5])


def test_a_cut_is_a_part_of_the_picture(rng):
    x = torch.tensor(rng.uniform(size=(200, 64, 64, 3)), dtype=torch.float32)
    halves = x.unflatten(1, (32, 2)).unflatten(3, (32, 2)).mean(dim=(2, 4))
    torch.testing.assert_close(jitter.whole(x, 32), halves, atol=1e-5, rtol=0)
    drawn = torch.tensor(rng.uniform(size=(200, 5)), dtype=torch.float32)
    ramp = torch.linspace(0, 1, 64).expand(64, 64)
    across = torch.stack([ramp, ramp.T, ramp], dim=2).expand(200, -1, -1, -1)
    shown = jitter.cut(across, 32, drawn)
    slope = shown[:, 16, 16:, 0].diff(dim=1).mean(dim=1)
    assert torch.equal(slope > 0, drawn[:, 4] >= 0.5)  # mirrored or not
    rising = shown[:, 16:, 16, 1].diff(dim=1).mean(dim=1)
    area = (slope.abs() * rising) * 63**2 / 4  # one step of a whole picture is two of its 63
    assert (rising > 0).all()
    assert float(area.min()) > 0.05
    assert float(area.max()) < 1.01
    full = jitter.cut(across, 32, torch.tensor([[1.0, 0.5, 0.3, 0.9, 0.7]]).expand(200, -1))
    torch.testing.assert_close(full, jitter.whole(across, 32), atol=1e-5, rtol=0)


def test_every_picture_is_changed_anew_by_its_own_strength():
    x = torch.full((400, 64, 64, 3), 100, dtype=torch.uint8)
    strengths = torch.tensor([[0.0, 0, 0, 0], [0.5, 0, 0, 0]]).repeat_interleave(200, dim=0)
    generator = torch.Generator().manual_seed(0)
    first, second = (augmentation_training.varied(x, strengths, generator) for _ in range(2))
    torch.testing.assert_close(first[:200], torch.full_like(first[:200], 100 / 255))
    level = first[200:, 0, 0, 0] * 255 / 100
    assert 0.5 <= float(level.min()) < 0.55
    assert 1.45 < float(level.max()) <= 1.5
    assert not torch.equal(first[200:], second[200:])
