"""What makes a graph valid: SSA order, and avals that the ops' own result rules confirm.

Run between passes when `JITML_CHECK=1`, and always in tests.
"""

from __future__ import annotations

from jitml.errors import JitmlError, VerificationError
from jitml.ir.graph import Graph, Value


def verify(graph: Graph) -> Graph:
    """Return the graph if it is valid.

    Raises:
        VerificationError: a value is defined twice or used before its definition, or an aval is not what the op says.
    """
    defined: set[Value] = set()
    for value in graph.inputs:
        if value in defined:
            raise VerificationError(f"an input {value.aval} stands twice in the signature")
        defined.add(value)
    for node in graph.nodes:
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
