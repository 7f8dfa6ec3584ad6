"""The text form of a graph, written: canonical names, one statement a line. `parser.py` reads it back.

graph(a: f32[4], b: f32[4]) {
  c: f32[4] = mul a b
  d: f32[4] = add c a
  return d
}
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from jitml.ir.types import dtype_name

if TYPE_CHECKING:
    from jitml.ir.graph import Graph, Value


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


def show_param(value: Any) -> str:
    if isinstance(value, np.dtype):
        return dtype_name(value)
    if isinstance(value, np.ndarray):
        return repr(value.tolist())
    if isinstance(value, np.generic):
        return repr(value.item())
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
    names = name_values(graph)
    head = ", ".join(f"{names[v]}: {v.aval}" for v in graph.inputs)
    lines = [f"graph({head}) {{"]
    for node in graph.nodes:
        left = ", ".join(f"{names[v]}: {v.aval}" for v in node.outputs)
        operands = "".join(f" {names[v]}" for v in node.inputs)
        comment = f"  # {node.source}" if sources and node.source else ""
        lines.append(f"  {left} = {node.op.name}{operands}{show_params(node.params)}{comment}")
    lines.append("  return" + "".join(f" {names[v]}" for v in graph.outputs))
    lines.append("}")
    return "\n".join(lines)
