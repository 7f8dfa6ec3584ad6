"""Code objects of frames and sections: compiled from their nodes, at the user's lines, with the function's own cells and globals.

A section's code stands in no file: `give` tells `trace/rewrite/source.py` what it was compiled from.
"""

from __future__ import annotations

import ast
import copy
import pickle
from collections.abc import Mapping, Sequence
from types import CellType, CodeType, FunctionType
from typing import Any

from jitml.process import silent_syntax
from jitml.trace.rewrite.function import mangle, named
from jitml.trace.rewrite.source import Found, give
from jitml.trace.rewrite.syntax import placed

_FUTURE = 0x1FF0000  # the __future__ bits of co_flags


def own_node(found: Found) -> Any:
    """A copy of a function's node to be cut, its private names written as Python has them."""
    node = pickle.loads(pickle.dumps(found.node))
    mangle(node, found.class_name)
    return node


def build(node: Any, code: CodeType, extra: Sequence[str] = ()) -> CodeType:
    """The code of a function whose free variables are those of `code`, as far as used, and `extra`."""
    inner = copy.copy(node)
    inner.name = "__jm_made"  # the function's own name is to mean what it meant
    inner.decorator_list, inner.returns, inner.type_params = [], None, []
    inner.lineno = code.co_firstlineno
    factory: Any = ast.parse("def __jm_factory(): pass").body[0]
    factory.args.args = [ast.arg(name) for name in (*extra, *code.co_freevars)]
    factory.body = [inner]
    module = placed(ast.Module([factory], []))
    with silent_syntax():
        made = compile(module, code.co_filename, "exec", flags=code.co_flags & _FUTURE, dont_inherit=True)
    for name in ("__jm_factory", "__jm_made"):
        made = next(c for c in made.co_consts if isinstance(c, CodeType) and c.co_name == name)
    return named(made, made.co_qualname, code.co_qualname, code.co_name)


def function_of(code: CodeType, original: FunctionType, cells: Mapping[str, CellType]) -> FunctionType:
    """A function of this code with the cells and globals of another, and `cells` of ours."""
    known = dict(zip(original.__code__.co_freevars, original.__closure__ or ())) | dict(cells)
    made = FunctionType(code, original.__globals__, original.__name__, None, tuple(known[name] for name in code.co_freevars))
    made.__qualname__, made.__module__ = original.__qualname__, original.__module__
    return made


def section_code(node: ast.FunctionDef, code: CodeType, file: str, text: str) -> CodeType:
    """The code of a section, whose source tracing will find.

    Args:
        code: that of the user's function.
        file, text: where messages say that it stands.
    """
    made = build(copy.deepcopy(node), code)
    give(made, Found(node, "", file, text))
    return made


__all__ = ["build", "function_of", "own_node", "section_code"]
