"""What makes a graph valid: SSA order, and avals that the ops' own result rules confirm.

Run between passes when `JITML_CHECK=1`, and always in tests.
"""

from __future__ import annotations

from typing import Any

from jitml.errors import JitmlError, VerificationError, bare_message
from jitml.ir.analysis.limits import dtype_limits
from jitml.ir.dims import Sym, limits
from jitml.ir.graph import Graph, Node, Value
from jitml.ir.types import DType, is_complex, is_inexact


def verify(graph: Graph, known: dict[Node, frozenset[Sym]] | None = None) -> Graph:
    """Return the graph if it is valid.

    Args:
        known: nodes that earlier calls have found to be what their ops say, and the Syms that each mentions; this call's are
            added. Passes leave most nodes as they are: what is not asked again is nine tenths of the work.

    Raises:
        VerificationError: a value is defined twice or used before its definition, a Sym bound twice or too late, an aval is
            not what the op says, or a size is negative.
    """
    known = {} if known is None else known
    defined: set[Value] = set()
    for value in graph.inputs:
        if value in defined:
            raise VerificationError(f"an input {value.aval} stands twice in the signature")
        defined.add(value)
    bound = {node.params.get("sym") for node in graph.nodes if node.op.name == "bind" and defined.issuperset(node.inputs)}
    for value in graph.inputs:
        if not value.aval.syms <= bound:
            raise VerificationError(f"the size of the input {value.aval} is not that of another input")
    binds: set[Sym] = set()
    for node in graph.nodes:
        for value in node.inputs:
            if value not in defined:
                raise VerificationError(f"{node.op} reads a value {value.aval} that is not defined before it", source=node.source)
        if node not in known:
            _confirm(node, known)
            known[node] = node.syms
        if node.op.name == "bind":
            if node.params["sym"] in binds:
                raise VerificationError(f"{node.params['sym']} is bound a second time", source=node.source)
            binds.add(node.params["sym"])
            bound.add(node.params["sym"])
        elif not known[node] <= bound:
            unknown = ", ".join(sorted(map(str, known[node] - bound)))
            raise VerificationError(f"{node.op} depends on {unknown}, which nothing before it binds", source=node.source)
        for value in node.outputs:
            if value in defined:
                raise VerificationError(f"{node.op} defines a value {value.aval} a second time", source=node.source)
            defined.add(value)
    for value in graph.outputs:
        if value not in defined:
            raise VerificationError(f"the output {value.aval} is not defined in the graph")
    return graph


def _confirm(node: Node, known: dict[Node, frozenset[Sym]]) -> None:
    """Hold a node against what its op says of such operands, wherever it stands; its bodies, too."""
    for body in node.graphs.values():
        verify(body, known)
    try:
        expected = node.op.aval(*(v.aval for v in node.inputs), **node.params)
    except (JitmlError, TypeError) as error:  # TypeError: parameters or operands that the op does not take
        raise VerificationError(f"{node.op}: {bare_message(error)}", source=node.source) from error
    expected = expected if isinstance(expected, tuple) else (expected,)
    got = tuple(v.aval for v in node.outputs)
    if got != expected:
        raise VerificationError(f"{node.op} yields {expected}, but the graph says {got}", source=node.source)
    if node.op.name == "full" and not _has(node.output.dtype, node.params["value"]):
        raise VerificationError(f"full: {node.output.dtype} has no {node.params['value']!r}", source=node.source)
    if any(limits(n)[1] < 0 for aval in got for n in aval.shape):
        raise VerificationError(f"{node.op} yields {got}, whose size is negative", source=node.source)


def _has(dtype: DType, value: Any) -> bool:
    """Whether a number is one of a dtype's, but for rounding."""
    if is_inexact(dtype):
        return isinstance(value, (bool, int, float)) or (isinstance(value, complex) and is_complex(dtype))
    least, most = dtype_limits(dtype)
    return isinstance(value, int) and least <= value <= most
