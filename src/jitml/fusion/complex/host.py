"""Calls out into Python, whose arrays are complex.

What is computed is packed for such a call: both parts in one array, along a last axis, which is the memory of a complex array.
So are results. A mutated input is handed over by parts, which take turns in the caller's memory already.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided

from jitml.fusion.complex.split import Complex, Part, splitting, unpacked
from jitml.ir import ops
from jitml.ir.graph import GraphBuilder, Node, Value
from jitml.ir.op import OPS, active_recorder
from jitml.ir.ops.complex import whole_dtype
from jitml.ir.ops.host import HostFunction, function_of
from jitml.ir.types import Aval, is_complex, part_dtype
from jitml.records import replace

Array = np.ndarray[Any, Any]
_Reader = Callable[[Sequence[Array]], Array]


@splitting.rule(ops.host_call, ops.draw)
def split_host_call(node: Node, *operands: Part) -> list[Part]:
    return call_by_parts(node, node.params["function"], operands)


@splitting.rule(*(op for op in OPS.values() if op.family in ("fft", "linalg")))
def split_routine(node: Node, *operands: Part) -> list[Part]:
    """What NumPy's own routine does best."""
    return call_by_parts(node, function_of(node), operands)


def call_by_parts(node: Node, function: HostFunction, operands: Sequence[Part]) -> list[Part]:
    """Call a function of complex arrays; its results."""
    given: list[Value] = []
    readers: list[_Reader] = []
    forms: list[str] = []
    for x in operands:
        values, form = _handed_over(x)
        readers.append(_at(slice(len(given), len(given) + len(values)), _READERS[form]))
        forms.append(form)
        given += values

    def call(*arrays: Array, out: tuple[Array, ...] | None = None) -> tuple[Array, ...]:
        operands = [read(arrays) for read in readers]
        if out is None:
            return tuple(map(_packed, function.call(*operands)))
        wholes = tuple(_whole((x,)) if is_complex(aval.dtype) else x for x, aval in zip(out, function.results))
        function.call(*operands, out=wholes)
        return out

    results = tuple(map(_packed_aval, function.results))
    by_parts = HostFunction(
        function.name,
        call,
        results,
        draws=function.draws,
        makes=function.makes,
        postpones=function.postpones,
        fills=function.fills,
        routine=function.routine and replace(function.routine, parts=tuple(forms)),
    )
    op = ops.draw if node.op is ops.draw else ops.host_call
    found = op(*given, function=by_parts)
    return [unpacked(x) if is_complex(aval.dtype) else x for x, aval in zip(found, function.results)]


def _handed_over(x: Part) -> tuple[list[Value], str]:
    """An operand as the values that hold it, and the form in which they do (`Routine.parts`)."""
    if isinstance(x, Value):
        return [x], "real"
    builder = active_recorder()
    assert isinstance(builder, GraphBuilder)
    if x.packed is None and builder.maker(x.re) is None and builder.maker(x.im) is None:
        return [x.re, x.im], "apart"
    return [_pack(x) if x.packed is None else x.packed], "packed"


def _at(where: slice, read: _Reader) -> _Reader:
    return lambda arrays: read(arrays[where])


def _as_it_is(arrays: Sequence[Array]) -> Array:
    return arrays[0]


def _whole(arrays: Sequence[Array]) -> Array:
    """A packed array as a complex one: the same memory."""
    (packed,) = arrays
    whole: Array = packed.view(whole_dtype(packed.dtype))[..., 0]
    return whole


def _joined(arrays: Sequence[Array]) -> Array:
    """Two parts as a complex array: the same memory, if they take turns in it."""
    re, im = arrays
    dtype = whole_dtype(re.dtype)
    apart = im.__array_interface__["data"][0] - re.__array_interface__["data"][0]
    if apart == re.itemsize and re.strides == im.strides and all(s % dtype.itemsize == 0 for s in re.strides) and re.size:
        return as_strided(re, (*re.shape, 2), (*re.strides, re.itemsize)).view(dtype)[..., 0]
    joined: Array = ops.complex.run((re, im), {})
    return joined


_READERS: dict[str, _Reader] = {"real": _as_it_is, "packed": _whole, "apart": _joined}


def _packed(x: Array) -> Array:
    if not np.iscomplexobj(x):
        return x
    return np.ascontiguousarray(x)[..., None].view(part_dtype(x.dtype)).reshape(*x.shape, 2)


def _packed_aval(aval: Aval) -> Aval:
    return Aval((*aval.shape, 2), part_dtype(aval.dtype)) if is_complex(aval.dtype) else aval


def _pack(x: Complex) -> Value:
    parts = [ops.reshape(part, shape=(*part.shape, 1)) for part in (x.re, x.im)]
    packed: Value = ops.concat(*parts, axis=x.ndim)
    return packed
