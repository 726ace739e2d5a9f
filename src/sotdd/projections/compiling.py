"""How a loop is compiled, the arrays that loops take, and instructions that the compiler does not find by itself.

The instructions are on eight float32 values at once. A *line* is eight neighbouring values of a flat array, named
by where it begins. Every operation is that of its values one by one: nothing is reordered, and products and sums are
rounded each.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar, cast

import numba
import numpy as np
from llvmlite import ir
from numba import types
from numba.core import event
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import CompilerBase, DefaultPassBuilder
from numba.core.typed_passes import NopythonRewrites
from numba.core.untyped_passes import DeadBranchPrune, InlineClosureLikes
from numba.extending import intrinsic
from numpy.typing import NDArray

from sotdd.projections.compile_cache import LoopCache

Floats = NDArray[np.float32]
Doubles = NDArray[np.float64]
Integers = NDArray[np.integer]

_F = TypeVar("_F", bound=Callable[..., object])

# Sums may be reordered into vector lanes and products fused; NaN and infinity keep their
# meaning, since the engine looks for them to report overflow.
_FAST_SUMS = {"contract", "reassoc", "nsz"}


# For functions within functions, arguments that are None, and expressions of whole arrays: kernels have none.
_NEEDLESS = (InlineClosureLikes, DeadBranchPrune, NopythonRewrites)


class _LoopLibrary(JITCodeLibrary):
    """Code that is optimised once; Numba does so three times, for the sake of references, which loops do not count."""

    def _optimize_functions(self, ll_module: Any) -> None:  # noqa: ANN401  # as Numba calls it
        ll_module.data_layout = self._codegen._data_layout

    def _optimize_final_module(self) -> None:
        passes, builder = self._codegen._module_pass_manager()  # type: ignore[no-untyped-call]
        passes.run(self._final_module, builder)


class _LoopCompiler(CompilerBase):
    """Numba's compiler without the passes that plain loops do not need."""

    def define_pipelines(self) -> list[Any]:
        """All others, in their order."""
        state = self.state
        if not state.flags.nrt:
            library: Any = _LoopLibrary  # typed by nobody
            state.library = library(state.targetctx.codegen(), state.func_id.func_qualname)
            state.library.enable_object_caching()
        builder: Any = DefaultPassBuilder
        manager: Any = builder.define_untyped_pipeline(state, "loops")
        for part in (builder.define_typed_pipeline, builder.define_nopython_lowering_pipeline):
            manager.passes += part(state).passes
        manager.passes = [found for found in manager.passes if found[0] not in _NEEDLESS]
        manager.finalize()
        return [manager]


_compiled = partial(numba.njit, nogil=True, error_model="numpy", no_cfunc_wrapper=True, pipeline_class=_LoopCompiler)


def kernel(function: _F) -> _F:
    """Compile a loop on first use, without the GIL, cached on disk where that is possible.

    It cannot make arrays: what it needs meanwhile it is given, since to count references takes long to compile.
    """
    return _compile_cached(function, fastmath=_FAST_SUMS, _nrt=False)


def exact_kernel(function: _F) -> _F:
    """As `kernel`, for loops whose sums are formed in the order in which they are written."""
    return _compile_cached(function, _nrt=False)


def allocating_kernel(function: _F) -> _F:
    """As `kernel`, for loops that make arrays, off the path of a first call."""
    return _compile_cached(function, fastmath=_FAST_SUMS)


def step(function: _F) -> _F:
    """Make a part of kernels, written out in each of them before it is compiled: its sums are as the kernel's.

    A part that is called has two versions, its own and one beside the kernel's, which sum in another order. Which
    of them runs depends on whether the kernel was compiled in this process or comes from the cache; so the first
    run would differ from later ones in the last bits. To compile a part once more for itself takes as long again.
    """
    return cast("_F", _compiled(inline="always")(function))


def _compile_cached(function: _F, **options: Any) -> _F:  # noqa: ANN401  # of Numba
    dispatcher: Any = _compiled(**options)(function)
    dispatcher._cache = LoopCache(function, allocates=options.get("_nrt", True))
    return cast("_F", dispatcher)


class _Compiling(event.Listener):
    """Says once why the first call of an installation takes seconds, and keeps the garbage collector out of the way.

    The compiler makes objects by the million and keeps most of them to the end: looking through them again and again
    takes an eighth of its time.
    """

    said = False

    def on_start(self, event: Any) -> None:  # noqa: ANN401  # Numba's
        """Speak up for a loop of this package, where somebody is watching; others may compile their own."""
        ours = event.data["dispatcher"].py_func.__module__.startswith("sotdd.")
        event.data["collects"] = ours and gc.isenabled()
        if event.data["collects"]:
            gc.disable()
        if ours and not self.said and (sys.stderr.isatty() or "ipykernel" in sys.modules):
            self.said = True
            sys.stderr.write("sotdd: compiling loops, once for this installation; this takes some seconds …\n")

    def on_end(self, event: Any) -> None:  # noqa: ANN401
        """Let garbage be collected again, if it was before."""
        if event.data["collects"]:
            gc.enable()


event.register("numba:compile", _Compiling())  # type: ignore[no-untyped-call]


# --------------------------------------------------------------------------- instructions on lines

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
