"""What does the caller hand in and get back?  Strides and aliases by position, and which arrays are complex."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from jitml.fusion.loops import Buffer
from jitml.fusion.program import parted
from jitml.ir.graph import Graph, Value
from jitml.ir.types import is_complex


@dataclass(frozen=True)
class Signature:
    """Of a graph whose complex numbers are split: a complex array has two positions, its real part's and the next.

    aliases: output position -> position of the input whose memory that output must end up in.
    strides: input position -> element strides, of inputs that are not C-contiguous.
    joined_inputs, joined_outputs: positions of the real parts of complex arrays.
    """

    aliases: Mapping[int, int]
    strides: Mapping[int, tuple[int, ...]]
    joined_inputs: frozenset[int]
    joined_outputs: frozenset[int]

    @classmethod
    def of(cls, graph: Graph, aliases: Mapping[int, int], strides: Mapping[int, tuple[int, ...]]) -> Signature:
        """The signature of a graph as it will be split; `aliases` and `strides` speak of its positions now."""
        inputs, outputs = _places(graph.inputs), _places(graph.outputs)
        return cls(
            {o: i for k, n in aliases.items() for o, i in zip(outputs[k], inputs[n])},
            {
                i: _steps(v, strides.get(n))
                for n, v in enumerate(graph.inputs)
                if n in strides or is_complex(v.dtype)
                for i in inputs[n]
            },
            frozenset(places[0] for places in inputs if len(places) == 2),
            frozenset(places[0] for places in outputs if len(places) == 2),
        )

    def is_part(self, output: int) -> bool:
        """Whether an output is a part of a complex array."""
        return output in self.joined_outputs or output - 1 in self.joined_outputs


def _places(values: Sequence[Value]) -> list[range]:
    """The positions of each value's parts."""
    places: list[range] = []
    for v in values:
        start = places[-1].stop if places else 0
        places.append(range(start, start + (2 if is_complex(v.dtype) else 1)))
    return places


def _steps(v: Value, strides: tuple[int, ...] | None) -> tuple[int, ...]:
    steps = Buffer("", v.dtype, v.aval.bounds).element_strides if strides is None else strides
    return parted(steps) if is_complex(v.dtype) else steps
