"""The text form of a graph, written: canonical names, one statement a line. `text/parser.py` reads it back.

graph(a: f32[4], b: i64[]) {
  c: f32[4] = mul a a
  d: f32[4] = loop b c {carried=1} body(a: i64[], b: f32[4]) {
    c: f32[4] = exp b
    return c
  }
  return d
}

A body names its values from the start, since it sees nothing of what is around it. Sizes that are values are named n0, n1, ...
as they appear, and `bind` states their limits: `bind b {sym=n0[0:9]}`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from math import copysign
from typing import TYPE_CHECKING, Any

import numpy as np

from jitml.ir.dims import Sym, as_size, resolve, syms_in
from jitml.ir.types import dtype_name

if TYPE_CHECKING:
    from jitml.ir.graph import Graph, Node, Value


def short_name(n: int) -> str:
    """The n-th canonical name: a..z, aa, ab, ...

    >>> [short_name(n) for n in (0, 25, 26)]
    ['a', 'z', 'aa']
    """
    letters = ""
    n += 1
    while n:
        n, digit = divmod(n - 1, 26)
        letters = chr(ord("a") + digit) + letters
    return letters


def name_values(graph: Graph) -> dict[Value, str]:
    """Canonical names in order of definition; the other layers' reports use them too."""
    names: dict[Value, str] = {}
    for value in graph.inputs:
        names[value] = short_name(len(names))
    for node in graph.nodes:
        for value in node.outputs:
            names[value] = short_name(len(names))
    return names


def show_number(value: complex) -> str:
    """Another text for each number: with the signs of zeros, and of nan, which `copysign` sees."""
    if isinstance(value, complex):  # Python's own text loses signs of zeros
        return f"complex({show_number(value.real)}, {show_number(value.imag)})"
    return "-nan" if value != value and copysign(1.0, value) < 0 else repr(value)


def show_param(value: Any) -> str:
    if isinstance(value, np.dtype):
        return dtype_name(value)
    if isinstance(value, (np.ndarray, np.generic)):
        return show_param(value.tolist())
    if isinstance(value, list):
        return f"[{', '.join(map(show_param, value))}]"
    if isinstance(value, (float, complex)):
        return show_number(value)
    if isinstance(value, Sym):
        return f"{value}[{value.low}:{value.high}]"
    return repr(value)


def show_params(params: Mapping[str, Any]) -> str:
    """`{axes=(0, 1), dtype=f32}` with keys in sorted order; empty for none."""
    if not params:
        return ""
    return " {" + ", ".join(f"{key}={show_param(params[key])}" for key in sorted(params)) + "}"


def show(graph: Graph, *, sources: bool = False) -> str:
    """The canonical text of a graph.

    Args:
        sources: add each node's place in the user's code as a comment.
    """
    syms: dict[Sym, Sym] = {}
    for sym in _syms_in(graph):
        if sym not in syms:
            syms[sym] = Sym(f"n{len(syms)}", sym.low, sym.high)
    return "\n".join(_Printer(syms, sources).graph("graph", graph, ""))


class _Printer:
    def __init__(self, syms: Mapping[Sym, Sym], sources: bool) -> None:
        self.syms, self.sizes, self.sources = syms, {old: as_size(new) for old, new in syms.items()}, sources

    def graph(self, word: str, graph: Graph, indent: str) -> Iterator[str]:
        names = name_values(graph)
        yield f"{word}({self.definitions(graph.inputs, names)}) {{"
        for node in graph.nodes:
            yield from self.node(node, names, indent + "  ")
        yield f"{indent}  return" + "".join(f" {names[v]}" for v in graph.outputs)
        yield indent + "}"

    def node(self, node: Node, names: Mapping[Value, str], indent: str) -> Iterator[str]:
        left = self.definitions(node.outputs, names) + " = " if node.outputs else ""
        operands = "".join(f" {names[v]}" for v in node.inputs)
        params = {name: self.param(x) for name, x in node.params.items() if name not in node.graphs}
        line = f"{indent}{left}{node.op.name}{operands}{show_params(params)}"
        comment = f"  # {node.source}" if self.sources and node.source else ""
        for name, body in node.graphs.items():
            first, *middle, last = self.graph(name, body, indent)
            yield f"{line} {first}{comment}"
            yield from middle
            line, comment = last, ""
        yield line + comment

    def definitions(self, values: Iterable[Value], names: Mapping[Value, str]) -> str:
        return ", ".join(f"{names[v]}: {v.aval.with_shape(self.param(v.shape))}" for v in values)

    def param(self, x: Any) -> Any:
        return self.syms[x] if isinstance(x, Sym) else resolve(x, self.sizes)


def _syms_in(graph: Graph) -> Iterator[Sym]:
    """Every Sym of a graph and its bodies, as they are written, with repetitions."""
    for v in graph.inputs:
        yield from syms_in(v.shape)
    for node in graph.nodes:
        yield from syms_in(tuple(v.shape for v in node.outputs))
        yield from syms_in(tuple(node.params[name] for name in sorted(node.params)))
        for body in node.graphs.values():
            yield from _syms_in(body)
