"""Instructions on eight float32 values at once, which the compiler does not find by itself.

A *line* is eight neighbouring values of a flat array, named by where it begins. Every operation is that of its values
one by one: nothing is reordered, and products and sums are rounded each.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

# As many float32 as most registers hold. The values of a transform of 1,024 lines then stay in the first cache.
LANES = 8

_LINE = ir.VectorType(ir.FloatType(), LANES)


def _instruction(function: Callable[..., Any]) -> Callable[..., None]:
    """What compiled loops may call; ``function`` says how it is built."""
    return cast("Callable[..., None]", intrinsic(function))


def butterflies(radix: int) -> Callable[..., None]:
    """An instruction ``(z, at, step)``: the Hadamard transform of ``radix`` lines, ``step`` values apart, in place."""

    def transform(_context: Any, z: Any, at: Any, step: Any) -> Any:  # noqa: ANN401  # what Numba passes
        def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:  # noqa: ANN401
            array, at, step = args
            places = []
            for _ in range(radix):
                places.append(_place(context, builder, signature.args[0], array, at))
                at = builder.add(at, step)
            lines = [builder.load(place, align=4) for place in places]
            half = radix // 2
            while half:
                for first in range(0, radix, 2 * half):
                    for i in range(first, first + half):
                        a, b = lines[i], lines[i + half]
                        lines[i], lines[i + half] = builder.fadd(a, b), builder.fsub(a, b)
                half //= 2
            for line, place in zip(lines, places, strict=True):
                builder.store(line, place, align=4)
            return context.get_dummy_value()

        return types.void(z, types.intp, types.intp), build

    return _instruction(transform)


def _write_multiple(_context: Any, z: Any, at: Any, factor: Any, other: Any, other_at: Any) -> Any:  # noqa: ANN401
    """``(z, at, factor, other, other_at)``: write a multiple of another line, or of this one."""

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:  # noqa: ANN401
        array, at, factor, other, other_at = args
        line = builder.load(_place(context, builder, signature.args[3], other, other_at), align=4)
        product = builder.fmul(line, _spread(builder, factor))
        builder.store(product, _place(context, builder, signature.args[0], array, at), align=4)
        return context.get_dummy_value()

    return types.void(z, types.intp, types.float32, other, types.intp), build


def _add_multiple(_context: Any, z: Any, at: Any, factor: Any, other: Any, other_at: Any) -> Any:  # noqa: ANN401
    """``(z, at, factor, other, other_at)``: add a multiple of another line, in place."""

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:  # noqa: ANN401
        array, at, factor, other, other_at = args
        place = _place(context, builder, signature.args[0], array, at)
        addend = builder.load(_place(context, builder, signature.args[3], other, other_at), align=4)
        product = builder.fmul(_spread(builder, factor), addend)
        builder.store(builder.fadd(builder.load(place, align=4), product), place, align=4)
        return context.get_dummy_value()

    return types.void(z, types.intp, types.float32, other, types.intp), build


def _transpose(_context: Any, z: Any, at: Any, flat: Any, flat_at: Any, step: Any) -> Any:  # noqa: ANN401
    """``(z, at, flat, flat_at, step)``: read eight lines ``step`` apart, write their columns as lines."""

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:  # noqa: ANN401
        array, at, flat, flat_at, step = args
        lines = []
        for _ in range(LANES):
            lines.append(builder.load(_place(context, builder, signature.args[2], flat, flat_at), align=4))
            flat_at = builder.add(flat_at, step)
        half = LANES // 2
        while half:  # squares of this size beside the diagonal change places
            upper = [c if not c & half else LANES + c - half for c in range(LANES)]
            lower = [c + half if not c & half else LANES + c for c in range(LANES)]
            for i in (i for i in range(LANES) if not i & half):
                a, b = lines[i], lines[i + half]
                lines[i], lines[i + half] = (_shuffle(builder, a, b, mask) for mask in (upper, lower))
            half //= 2
        for number, line in enumerate(lines):
            here = builder.add(at, ir.Constant(at.type, LANES * number))
            builder.store(line, _place(context, builder, signature.args[0], array, here), align=4)
        return context.get_dummy_value()

    return types.void(z, types.intp, flat, types.intp, types.intp), build


def _place(context: Any, builder: Any, kind: Any, array: Any, at: Any) -> Any:  # noqa: ANN401
    """The address of a line."""
    data = context.make_array(kind)(context, builder, array).data
    return builder.bitcast(builder.gep(data, [at]), _LINE.as_pointer())


def _spread(builder: Any, value: Any) -> Any:  # noqa: ANN401
    """A line that holds one value everywhere."""
    nothing = ir.Constant(_LINE, ir.Undefined)
    single = builder.insert_element(nothing, value, ir.Constant(ir.IntType(32), 0))
    return _shuffle(builder, single, nothing, [0] * LANES)


def _shuffle(builder: Any, a: Any, b: Any, mask: list[int]) -> Any:  # noqa: ANN401
    """A line of values of a, counted from 0, and of b, counted from LANES."""
    return builder.shuffle_vector(a, b, ir.Constant(ir.VectorType(ir.IntType(32), LANES), mask))


write_multiple: Callable[..., None] = _instruction(_write_multiple)
add_multiple: Callable[..., None] = _instruction(_add_multiple)
transpose: Callable[..., None] = _instruction(_transpose)
