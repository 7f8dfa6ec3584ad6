"""Repeatable calls: which compiled programs may be followed by the plain function on the same state, and which have effects that
nobody can undo?

What a program prints, logs or writes happens once. Random numbers are drawn again from generators that are put back.
"""

from __future__ import annotations

import builtins
from collections.abc import Iterable

import numpy as np

from jitml.ir import ops
from jitml.ir.graph import Graph, Node

# Libraries, and classes of theirs, whose functions compute.
_COMPUTING = {"np", "numpy", "scipy", "math", "cmath", "ndarray", "generic", "operator", "statistics", *vars(builtins)}
_COMPUTING -= {"print", "input", "open", "exec", "eval", "breakpoint", "compile", "__import__"}
_WRITERS = {"save", "savetxt", "savez", "savez_compressed", "tofile", "dump", "savemat", "write", "mmwrite", "save_npz"}


def why_not(nodes: Iterable[Node]) -> str:
    """What a program with these host nodes does that cannot be done twice; empty if there is nothing."""
    for node in nodes:
        if node.op is not ops.host_call:
            continue
        function = node.params["function"]
        if function.postpones:
            return f"it calls {function.name}, which others see"
        if function.name.rpartition(".")[2] in _WRITERS:
            return f"it calls {function.name}, which writes a file"
        is_draw = function.makes or function.draws
        if not is_draw and function.name.partition(".")[0].partition("(")[0] not in _COMPUTING:
            return f"it calls {function.name}, which may do something that happens once"
    if {"call", "log"} & {*np.geterr().values()}:
        return "np.errstate tells a function of the user's about floating-point errors"
    return ""


def host_nodes(graph: Graph) -> tuple[Node, ...]:
    """What a program calls, and draws from generators that NumPy holds."""
    return tuple(node for node in graph.walk() if node.op.family == "host")


def writes_by_itself(nodes: Iterable[Node]) -> bool:
    """Whether a program with these host nodes writes nothing but its outputs: what it calls might."""
    return all(node.op is not ops.host_call for node in nodes)
