"""Signatures: what does the caller hand in and get back?  Strides and aliases by position, and which arrays are complex."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from jitml.fusion.complex import Form, holds_complex, split_apart
from jitml.ir.graph import Graph, Value
from jitml.kernels.ir import Buffer
from jitml.kernels.program import parted
from jitml.records import dataclass


@dataclass(frozen=True)
class Signature:
    """Of a graph over real numbers, in which a complex array may have two positions, its real part's and the next.

    aliases: output position -> position of the input whose memory that output must end up in.
    strides: input position -> element strides, of inputs that are not C-contiguous.
    joined_inputs, joined_outputs: positions of the real parts of complex arrays.
    packed_inputs, packed_outputs: positions of complex arrays with both parts along a last axis.
    """

    aliases: Mapping[int, int]
    strides: Mapping[int, tuple[int, ...]]
    joined_inputs: frozenset[int] = frozenset()
    joined_outputs: frozenset[int] = frozenset()
    packed_inputs: frozenset[int] = frozenset()
    packed_outputs: frozenset[int] = frozenset()

    def is_part(self, output: int) -> bool:
        """Whether an output is a part of a complex array."""
        return output in self.joined_outputs or output - 1 in self.joined_outputs


def over_real_numbers(
    graph: Graph, aliases: Mapping[int, int], strides: Mapping[int, tuple[int, ...]]
) -> tuple[Graph, Signature]:
    """The graph without complex numbers, and its signature; `aliases` and `strides` speak of positions in the graph given."""
    if not holds_complex(graph):
        return graph, Signature(aliases, strides)
    made = split_apart(graph, frozenset(aliases.values()), frozenset(aliases))
    inputs, outputs = _places(made.inputs), _places(made.outputs)
    steps: dict[int, tuple[int, ...]] = {}
    for n, (v, form) in enumerate(zip(graph.inputs, made.inputs)):
        if n in strides or form != "real":
            steps.update((i, _steps(v, strides.get(n), form)) for i in inputs[n])

    def of_form(form: Form, forms: Sequence[Form], places: Sequence[range]) -> frozenset[int]:
        return frozenset(place[0] for place, own in zip(places, forms) if own == form)

    return made.graph, Signature(
        {o: i for k, n in aliases.items() for o, i in zip(outputs[k], inputs[n])},
        steps,
        of_form("parts", made.inputs, inputs),
        of_form("parts", made.outputs, outputs),
        of_form("packed", made.inputs, inputs),
        of_form("packed", made.outputs, outputs),
    )


def _places(forms: Sequence[Form]) -> list[range]:
    """The positions of each array's parts."""
    places: list[range] = []
    for form in forms:
        start = places[-1].stop if places else 0
        places.append(range(start, start + (2 if form == "parts" else 1)))
    return places


def _steps(v: Value, strides: tuple[int, ...] | None, form: Form) -> tuple[int, ...]:
    steps = Buffer("", v.dtype, v.aval.bounds).element_strides if strides is None else strides
    return steps if form == "real" else parted(steps) if form == "parts" else (*parted(steps), 1)
