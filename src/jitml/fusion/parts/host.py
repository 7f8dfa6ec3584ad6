"""Calls out into Python: they get and give complex arrays, put together from their parts on the way in and taken apart after."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from jitml.fusion.parts.split import Complex, Part, parts_of, splitting
from jitml.ir import ops
from jitml.ir.graph import Node
from jitml.ir.ops.host import HostFunction
from jitml.ir.types import Aval, is_complex, part_dtype

Array = np.ndarray[Any, Any]


def by_parts(function: HostFunction, operands: Sequence[bool]) -> HostFunction:
    """The same function of real arrays.

    Args:
        operands: for each of its operands, whether it is complex.
    """

    def call(*arrays: Array) -> tuple[Array, ...]:
        given = iter(arrays)
        whole = [ops.complex.run((next(given), next(given)), {}) if is_whole else next(given) for is_whole in operands]
        return tuple(part for x in function.call(*whole) for part in _parts(x))

    results = tuple(part for aval in function.results for part in _part_avals(aval))
    return HostFunction(function.name, call, results, function.draws)


def _parts(x: Array) -> tuple[Array, ...]:
    return (x.real, x.imag) if np.iscomplexobj(x) else (x,)


def _part_avals(aval: Aval) -> Iterator[Aval]:
    yield from [aval.with_dtype(part_dtype(aval.dtype))] * (2 if is_complex(aval.dtype) else 1)


@splitting.rule(ops.host_call, ops.draw)
def split_host_call(node: Node, *operands: Part) -> list[Part]:
    function = by_parts(node.params["function"], [isinstance(x, Complex) for x in operands])
    results = iter(node.op(*(part for x in operands for part in parts_of(x)), function=function))
    return [Complex(next(results), next(results)) if is_complex(v.dtype) else next(results) for v in node.outputs]
