"""One drawn call after another: which one, what it is given, and what must come out.

The rule: a call returns a plausible result or raises `SotddError` with one line of text. It warns of nothing but an old
name, takes at most 10 s and 1 GiB, and leaves the states of random generators and NumPy's error settings as they were.
A TypeError counts only where an argument was left out or invented on purpose, and then only if Python itself raised it.
"""

# ruff: noqa: PT018  # conditions that belong together are one line

from __future__ import annotations

import json
import os
import random
import re
import resource
import signal
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from inspect import Parameter
from typing import Any

import numpy as np
import torch
from matplotlib import pyplot

import sotdd
from fuzz import values
from fuzz.pools import ODD, POOLS
from fuzz.surface import RECEIVERS, Target, targets

SECONDS = 10
BYTES = 1 << 30

# A third of all calls get nothing odd, so that results are judged too; the others one odd argument in about four.
_TAME, _ODD_SHARE = 0.35, 0.12
# Arguments left out or invented.
_BROKEN = 0.02


class Hung(BaseException):
    """A call took too long; no handler of errors catches this."""


@dataclass(frozen=True)
class Call:
    """A call as text: what is called, and its arguments as expressions."""

    callee: str
    attribute: str | None
    positional: tuple[str, ...]
    named: tuple[tuple[str, str], ...]
    is_property: bool = False
    broken: bool = False

    def __str__(self) -> str:
        """The line that makes the call."""
        head = self.callee if self.attribute is None else f"{self.callee}.{self.attribute}"
        if self.is_property:
            return head
        return f"{head}({', '.join([*self.positional, *(f'{name}={value}' for name, value in self.named)])})"


def draw(number: int) -> Call:
    """The call of this number, the same on every machine."""
    rng = random.Random(number)
    target = rng.choices(_TARGETS, _WEIGHTS)[0]
    if target.whole is not None:
        return Call(target.whole, None, (), (), is_property=True)
    receiver = rng.choice(target.receivers)
    if target.is_property:
        return Call(receiver, target.attribute, (), (), is_property=True)
    tame, broken = rng.random() < _TAME, rng.random() < _BROKEN
    optional = [part for part in target.parameters if part.default is not Parameter.empty]
    chosen = set(rng.sample([part.name for part in optional], min(len(optional), rng.choice((0, 1, 1, 2, 2, 3)))))
    positional, named = [], []
    for part in target.parameters:
        if part.kind is Parameter.VAR_KEYWORD:
            continue
        if part.default is not Parameter.empty and part.name not in chosen:
            continue
        if broken and rng.random() < 0.3:
            continue
        value = _value(rng, target, part.name, tame)
        in_order = part.kind is Parameter.POSITIONAL_ONLY or (part.kind is not Parameter.KEYWORD_ONLY and not named)
        if in_order and (part.kind is Parameter.POSITIONAL_ONLY or rng.random() < 0.7):
            positional.append(value)
        else:
            named.append((part.name, value))
    if broken and rng.random() < 0.5:
        named.append(("nonsense", "1"))
    named += _cheap(target, {name for name, _ in named})
    return Call(receiver, target.attribute, tuple(positional), tuple(named), broken=broken)


def _value(rng: random.Random, target: Target, name: str, tame: bool) -> str:
    pool = pool_of(target.name, name)
    if not tame and rng.random() < _ODD_SHARE:
        pool = ODD
    text = rng.choice(pool[: max(1, len(pool) // 3)] if tame else pool)
    return text.replace("SEED", str(rng.randrange(10**6)))


# What makes a call cheap where its arguments do not say otherwise.
_FEW = {"n_projections": "8", "n_permutations": "9", "n_splits": "19", "steps": "2", "max_projections": "128"}


def _cheap(target: Target, given: set[str]) -> list[tuple[str, str]]:
    takes = {part.name for part in target.parameters if part.default is not Parameter.empty}
    few = {name: value for name, value in _FEW.items() if name in takes - given}
    if {"projections", "method"} & given or any("sotdd'" in name for name in given):
        few.pop("n_projections", None)
    return list(few.items())


def pool_of(target: str, name: str) -> tuple[str, ...]:
    """What a parameter is given: by method, by class, or by its name alone."""
    owner, _, call = target.rpartition(".")
    for key in (f"{target}.{name}", f"{call}.{name}", f"{owner}.{name}" if owner else f"{target}.{name}", name):
        if key in POOLS:
            return POOLS[key]
    raise KeyError(f"no pool for {name!r} of {target}: add one to tests/fuzz/pools.py")


_TARGETS = targets()
_WEIGHTS = [target.weight for target in _TARGETS]


# ------------------------------------------------------------------ running


def run(call: Call) -> str | None:
    """Make a call; what is wrong with its outcome, or None."""
    with warnings.catch_warnings(action="ignore"):
        names = vars(values)
        positional = [eval(text, names) for text in call.positional]
        named = {name: eval(text, names) for name, text in call.named}
        receiver = None if call.is_property and call.attribute is None else eval(call.callee, names)
    return _guarded(lambda: _made(call, receiver, positional, named), broken=call.broken)


def warm_up() -> None:
    """Use every receiver once, so that no call pays for imports and for loops that are compiled on their first use."""
    with warnings.catch_warnings(action="ignore"):
        for line in [*_WARM, *(line for lines in RECEIVERS.values() for line in lines)]:
            eval(line, vars(values))


_WARM = (
    "built().merge(built(seed=1))", "built().finish()", "counted().merge(counted(seed=1))", "a_matrix().plot()",
    "sotdd.report(a_matrix(), 'page')", "a_distance(device='cpu', label_law='quantiles', shared_directions=False)",
    "a_distance(p=1.5)", "sotdd.distance(torch.zeros(3, 2), torch.ones(3, 2), n_projections=4)",
    "a_catalog().nearest(in_sketch())", "a_test(statistic='balanced')",
)  # fmt: skip


def run_line(line: str) -> str | None:
    """The same for a whole line of text."""
    return _guarded(lambda: eval(line, vars(values)), broken=False)


def _made(call: Call, receiver: Any, positional: list[Any], named: dict[str, Any]) -> Any:
    if call.is_property:
        return eval(call.callee, vars(values)) if call.attribute is None else getattr(receiver, call.attribute)
    return (receiver if call.attribute is None else getattr(receiver, call.attribute))(*positional, **named)


def _guarded(make: Callable[[], Any], *, broken: bool) -> str | None:
    states, memory = _states(), _peak()
    try:
        with _alarm(), warnings.catch_warnings():
            warnings.simplefilter("error")
            # The one warning that sotdd gives: a setting has a new name.
            warnings.filterwarnings("ignore", r".* is now called ", FutureWarning)
            _judge(make())
    except sotdd.SotddError as error:
        text = str(error)
        if not text.strip() or "\n" in text or len(text) > 2000:
            return f"refused, but not in one line: {text[:300]!r}"
    except Hung:
        return f"took more than {SECONDS} s:\n{traceback.format_exc(limit=-6)}"
    except TypeError as error:
        if not (broken and _by_python(error)):
            return traceback.format_exc(limit=-6)
    except BaseException as error:  # everything else is what is looked for
        if isinstance(error, KeyboardInterrupt):
            raise
        return traceback.format_exc(limit=-6)
    finally:
        pyplot.close("all")  # figures are the caller's to close
    if _peak() - memory > BYTES:
        return f"took {(_peak() - memory) / 2**30:.1f} GiB"
    changed = [name for name, state in _states().items() if state != states[name]]
    return f"changed {', '.join(changed)}" if changed else None


def _by_python(error: TypeError) -> bool:
    """Whether the arguments did not bind, as Python itself says it."""
    return (
        re.search(r"missing \d+ required|unexpected keyword|takes .* positional|multiple values", str(error))
        is not None
    )


@contextmanager
def _alarm() -> Iterator[None]:
    def ring(*_: object) -> None:
        raise Hung

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def _peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def _states() -> dict[str, object]:
    """What no call may change."""
    kind, keys, *rest = np.random.get_state()  # noqa: NPY002  # the state that old code shares
    return {
        "random's state": random.getstate(),
        "np.random's state": (kind, keys.tobytes(), *rest),
        "torch's random state": torch.get_rng_state().numpy().tobytes(),
        "NumPy's error settings": tuple(np.geterr().items()),
        "torch's settings": (torch.is_grad_enabled(), torch.get_default_dtype(), torch.get_num_threads()),
        "the current folder": os.getcwd(),
    }


# ------------------------------------------------------------------ judging


def _judge(result: Any) -> None:
    """Refuse an outcome that cannot be right."""
    repr(result)
    str(result)
    if hasattr(result, "to_dict") and type(result).__module__.startswith("sotdd"):
        json.dumps(result.to_dict(), allow_nan=False)
    for kind, check in _CHECKS.items():
        if isinstance(result, kind):
            check(result)


def _distance(r: sotdd.Distance) -> None:
    assert np.isfinite(r.value) and r.value >= 0, f"value {r.value}"
    assert not r.stderr < 0, f"stderr {r.stderr}"
    assert r.stderr != np.inf
    low, high = r.interval()
    assert not low > r.value and not high < r.value, f"{low} to {high} does not hold {r.value}"
    for numbers in (r.per_projection, r.contributions, r.weights):
        assert numbers is None or np.isfinite(numbers).all()
    assert r.per_projection is None or (r.per_projection >= 0).all()
    if r.noise is not None:
        _noise(r.noise)


def _noise(floor: sotdd.NoiseFloor) -> None:
    assert np.isfinite(floor.distances).all() and (floor.distances >= 0).all()
    assert 0 < floor.p_value <= 1
    assert np.isfinite(floor.value)


def _test(result: sotdd.TwoSampleTest) -> None:
    assert 0 < result.p_value <= 1
    assert np.isfinite(result.distance) and result.distance >= 0
    assert np.isfinite(result.null_distances).all() and np.isfinite(result.null).all()


def _matrix(matrix: sotdd.DistanceMatrix) -> None:
    for distance in matrix.distances.values():
        _distance(distance)
    assert (matrix.values == matrix.values.T).all()
    matrix.to_csv()


def _ranking(ranking: sotdd.Ranking) -> None:
    assert next(iter(ranking)).rank == 1
    for line in ranking:
        _distance(line.distance)


def _explanation(why: sotdd.Explanation) -> None:
    _distance(why.distance)
    for shares in why.shares:
        assert np.isfinite(shares).all() and (shares >= 0).all() and shares.sum() < 1 + 1e-6


def _flow(flow: sotdd.Flow) -> None:
    assert np.isfinite(flow.distances).all() and (flow.distances >= 0).all()
    assert np.isfinite(flow.features.astype(float)).all()


def _data(data: sotdd.LabelledData) -> None:
    assert sum(len(data.rows(block)) for block in data.blocks()) == data.n_points == len(data.codes)


def _loss(loss: torch.Tensor) -> None:
    if loss.ndim == 0 and loss.is_floating_point():
        assert bool(loss.isfinite()) and float(loss.detach()) >= 0
        if loss.requires_grad:
            loss.backward()


def _sketch(sketch: sotdd.Sketch) -> None:
    assert (
        np.isfinite(sketch.quantiles.astype(float)).all()
        and (np.diff(sketch.quantiles.astype(float), axis=-1) >= 0).all()
    )


_CHECKS: dict[type, Callable[[Any], None]] = {
    sotdd.Distance: _distance, sotdd.NoiseFloor: _noise, sotdd.TwoSampleTest: _test, sotdd.DistanceMatrix: _matrix,
    sotdd.Ranking: _ranking, sotdd.Explanation: _explanation, sotdd.Flow: _flow, sotdd.LabelledData: _data,
    torch.Tensor: _loss, sotdd.Sketch: _sketch,
}  # fmt: skip
