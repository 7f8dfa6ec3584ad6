"""What makes a graph valid: SSA order, and avals that the ops' own result rules confirm.

Run between passes when `JITML_CHECK=1`, and always in tests.
"""

from __future__ import annotations

from jitml.errors import JitmlError, VerificationError
from jitml.ir.dims import Sym
from jitml.ir.graph import Graph, Value


def verify(graph: Graph) -> Graph:
    """Return the graph if it is valid.

    Raises:
        VerificationError: a value is defined twice or used before its definition, a Sym bound twice or too late, or an
            aval is not what the op says.
    """
    defined: set[Value] = set()
    for value in graph.inputs:
        if value in defined:
            raise VerificationError(f"an input {value.aval} stands twice in the signature")
        defined.add(value)
    bound = {node.params["sym"] for node in graph.nodes if node.op.name == "bind" and node.inputs[0] in defined}
    binds: set[Sym] = set()
    for node in graph.nodes:
        for body in node.graphs.values():
            verify(body)
        if node.op.name == "bind":
            if node.params["sym"] in binds:
                raise VerificationError(f"{node.params['sym']} is bound a second time", source=node.source)
            binds.add(node.params["sym"])
            bound.add(node.params["sym"])
        elif not node.syms <= bound:
            unknown = ", ".join(sorted(map(str, node.syms - bound)))
            raise VerificationError(f"{node.op} depends on {unknown}, which nothing before it binds", source=node.source)
        for value in node.inputs:
            if value not in defined:
                raise VerificationError(f"{node.op} reads a value {value.aval} that is not defined before it", source=node.source)
        try:
            expected = node.op.aval(*(v.aval for v in node.inputs), **node.params)
        except JitmlError as error:
            raise VerificationError(f"{node.op}: {error}", source=node.source) from error
        expected = expected if isinstance(expected, tuple) else (expected,)
        got = tuple(v.aval for v in node.outputs)
        if got != expected:
            raise VerificationError(f"{node.op} yields {expected}, but the graph says {got}", source=node.source)
        for value in node.outputs:
            if value in defined:
                raise VerificationError(f"{node.op} defines a value {value.aval} a second time", source=node.source)
            defined.add(value)
    for value in graph.outputs:
        if value not in defined:
            raise VerificationError(f"the output {value.aval} is not defined in the graph")
    return graph
