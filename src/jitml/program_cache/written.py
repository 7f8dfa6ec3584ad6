"""Variants as bytes: the guard program of a function and its graph, as another process can use them; or that none can.

Nobody can list all that a trace depends on. So what is kept is what is known to depend on nothing but its code, its guards, and a
few libraries: code without sets, imports and classes, which loads names, attributes and builtins of a list, and guards
that compare with values and with functions like it.
"""

from __future__ import annotations

import builtins
import copyreg
import dis
import io
import pickle
from collections.abc import Callable, Iterator
from types import CellType, CodeType, FunctionType, ModuleType
from typing import Any

import numpy as np

from jitml.diagnostics.code_owners import is_users
from jitml.ir.graph import Graph
from jitml.ir.op import Op
from jitml.program_cache.guards import PARTS, KeptGuards, KeptStep
from jitml.program_cache.identities import (
    Identity,
    NotKept,
    found,
    is_librarys,
    is_plain,
    not_kept,
    of_code,
    of_function,
    of_library,
    op_named,
)
from jitml.trace.record.guards import Compute, GuardCheck, Host, HostConst
from jitml.trace.traced import Traced

_IS_SAME = "{0} is {k}"
_HOMES = ("builtins", "_operator", "math", "cmath", "numpy", "jitml")
_BUILTINS = frozenset({
    "abs", "all", "any", "bool", "complex", "divmod", "enumerate", "filter", "float", "int", "isinstance", "len", "list", "map",
    "max", "min", "pow", "range", "reversed", "round", "slice", "sorted", "sum", "tuple", "zip", "ArithmeticError",
    "AssertionError", "IndexError", "OverflowError", "RuntimeError", "TypeError", "ValueError", "ZeroDivisionError",
})  # fmt: skip
# What is traced, and what gives the same in any process. Sets have an order of their own.
_PLAIN_TYPES = (np.ndarray, np.generic, int, float, complex, str, list, tuple, dict, np.finfo, np.iinfo, np.dtype, np.ufunc)
_OF_PROCESS = {"base", "ctypes", "data", "dump", "dumps", "tofile", "keys"}
_OF_LIMITS = {"eps", "max", "min", "tiny"}
_ATTRIBUTES = frozenset(
    name for kind in _PLAIN_TYPES for name in {*dir(kind), *_OF_LIMITS} - _OF_PROCESS if not name.startswith("_")
)
_LOADS_NAME = frozenset({"LOAD_GLOBAL", "LOAD_NAME"})
_OF_ATTRIBUTES = frozenset({"LOAD_ATTR", "LOAD_METHOD"})
_NOT_KNOWN = (  # beginnings of names of instructions
    *(
        "BUILD_SET",
        "SET_ADD",
        "SET_UPDATE",
        "IMPORT_",
        "LOAD_BUILD_CLASS",
        "LOAD_SUPER_ATTR",
        "LOAD_CLASSDEREF",
        "LOAD_FROM_DICT",
    ),
    *("STORE_GLOBAL", "DELETE_GLOBAL", "STORE_ATTR", "DELETE_ATTR", "STORE_NAME", "BEFORE_WITH", "SETUP_WITH", "LOAD_SPECIAL"),
    *("SETUP_FINALLY", "PUSH_EXC_INFO", "YIELD_VALUE", "RETURN_GENERATOR", "MATCH_", "GET_AWAITABLE", "DELETE_DEREF"),
)


def guards_of(function: FunctionType, host: Host) -> KeptGuards:
    """The guard program of a function, for other processes.

    Raises:
        NotKept: it depends on something of this one.
    """
    writer = _GuardWriter(function)
    steps = tuple(writer.compute(step) if isinstance(step, Compute) else writer.check(step) for step in host.steps)
    return KeptGuards(dict(host.arguments), tuple(host.names), frozenset(host.given), steps, writer.contents())


class _GuardWriter:
    def __init__(self, function: FunctionType) -> None:
        self._functions = [function]  # of the user's, whose code the program relies on
        self._guarded: set[CodeType] = set()
        self._libraries: dict[str, ModuleType] = {}
        self._loaded: set[str] = set()  # attributes that the guard program loads

    def compute(self, step: Compute) -> KeptStep:
        operands = tuple(self._constant(o.value) if isinstance(o, HostConst) else o for o in step.operands)
        if step.function is getattr and isinstance(step.operands[1], HostConst):
            self._loaded.add(step.operands[1].value)
        return KeptStep((step.slot,), _named(step.function), operands)

    def check(self, check: GuardCheck) -> KeptStep:
        x = check.constant
        if check.code == _IS_SAME and type(x) is CodeType:
            self._guarded.add(x)
            constant: Identity = ("code", of_code(x))
        elif check.code == _IS_SAME and self._is_new(x):
            self._functions.append(x)
            constant = ("new function", of_function(x))
        else:
            constant = self._constant(x)
        return KeptStep(check.slots, operands=(constant,), code=check.code, text=check.text, source=check.source)

    def _is_new(self, x: Any) -> bool:
        return type(x) is FunctionType and is_users(x.__code__.co_filename) and not any(x is f for f in self._functions)

    def _constant(self, x: Any) -> Identity:
        for n, function in enumerate(self._functions):
            if x is function:
                return "function", n
            if x is function.__globals__:
                return "globals", n
            for m, cell in enumerate(function.__closure__ or ()) if type(x) is CellType else ():
                if x is cell:
                    return "cell", n, m
        if is_plain(x):
            return "plain", x
        if type(x) is ModuleType:
            return "module", self._module(x)
        return ("type" if isinstance(x, type) else "library"), *_named(x), of_library(x)

    def _module(self, module: ModuleType) -> str:
        if is_librarys(module.__name__):
            self._libraries[module.__name__] = module
        elif not is_users(getattr(module, "__file__", None) or "<frozen"):  # what is read of the user's is guarded
            raise NotKept(module.__name__)
        return module.__name__

    def contents(self) -> tuple[tuple[str, str, Identity], ...]:
        """What the code takes for granted of libraries."""
        if {f.__code__ for f in self._functions} != self._guarded:
            raise NotKept("a function of the user's that is called by other code")
        needed: dict[tuple[str, str], Any] = {}
        attributes: set[str] = set()
        for function in self._functions:
            for code in _codes_in(function.__code__):
                for is_global, name in _names_in(code):
                    if not is_global:
                        attributes.add(name)
                    elif name not in function.__globals__:
                        if name not in _BUILTINS:
                            raise NotKept(f"{name} of Python's own")
                        needed["builtins", name] = getattr(builtins, name)
        waiting, known = [*self._libraries.values()], set(self._loaded)
        while waiting:
            module = waiting.pop()
            for name in attributes & vars(module).keys():
                x = vars(module)[name]
                known.add(name)
                if (module.__name__, name) not in needed:
                    needed[module.__name__, name] = x
                    waiting += [x] if type(x) is ModuleType else []
        if unknown := attributes - known - _ATTRIBUTES:
            raise NotKept(f"attributes {', '.join(sorted(unknown))}")
        return tuple((home, name, of_library(x)) for (home, name), x in needed.items())


def _named(x: Any) -> tuple[str, str]:
    """A function or a class by the name by which Python, NumPy or jitml has it.

    Raises:
        NotKept: it has none there.
    """
    home, name = getattr(x, "__module__", None), getattr(x, "__qualname__", getattr(x, "__name__", None))
    if type(x) is np.ufunc:
        home, name = "numpy", x.__name__
    if isinstance(home, str) and home.partition(".")[0] in _HOMES and isinstance(name, str):
        if found(home, name) is x:
            return home, name
    raise not_kept(x)


def _codes_in(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _codes_in(constant)
        elif isinstance(constant, frozenset):
            raise NotKept("a set")


def _names_in(code: CodeType) -> Iterator[tuple[bool, str]]:
    """The names that code loads, and whether each is a global one, and no attribute."""
    for step in dis.get_instructions(code):
        if step.opname.startswith(_NOT_KNOWN):
            raise NotKept(step.opname)
        if step.opname in _LOADS_NAME or step.opname in _OF_ATTRIBUTES:
            yield step.opname in _LOADS_NAME, step.argval


_REDUCED: dict[type, Callable[[Any], Any]] = {
    Op: lambda op: (op_named, (op.name,)),
    Graph: lambda graph: (Graph, (graph.inputs, graph.nodes, graph.outputs, graph.names)),  # without what it has been asked for
    **{type(np.dtype(code)): lambda dtype: (np.dtype, (dtype.str,)) for code in "?bBhHiIlLqQefdgFDG"},  # NumPy's own, read again
}


class _Careful(pickle.Pickler):
    """One that writes nothing of the user's."""

    def reducer_override(self, x: Any) -> Any:
        if (reduced := _REDUCED.get(type(x))) is not None:
            return reduced(x)
        if isinstance(x, np.ndarray) and x.dtype.hasobject:
            raise not_kept(x)
        if isinstance(x, type) or callable(x):
            home = getattr(x, "__module__", "") or ""
            if home.partition(".")[0] not in ("builtins", "numpy", "jitml", "optree", "_operator"):
                raise NotKept(f"{home}.{getattr(x, '__qualname__', '')}")
        return NotImplemented


def as_bytes(x: Any, *, is_known: bool = False) -> bytes:
    """
    Args:
        is_known: whether nothing of the user's is in it, which need not be looked for.

    Raises:
        NotKept, pickle.PicklingError: there is something of the user's in it, or something that has no bytes.
    """
    file = io.BytesIO()
    pickler = (pickle.Pickler if is_known else _Careful)(file, protocol=5)
    pickler.dispatch_table = {**copyreg.dispatch_table, **_REDUCED}
    pickler.dump(x)
    return file.getvalue()


def body_of(traced: Traced, program: str) -> bytes:
    """What a variant is, guards apart; `program` is where its program is kept: nothing of the user's is in its graph, then.

    Raises:
        NotKept: it changes more than arrays, or takes something for granted of the way that calls go.
    """
    if traced.changes or traced.device is not None or traced.key.path.assumptions or traced.key.opened:
        raise NotKept("more than arrays and numbers in, and out")
    as_bytes((traced.out_specs, traced.results))
    return as_bytes((program, *(getattr(traced, part) for part in PARTS)), is_known=True)


__all__ = ["as_bytes", "body_of", "guards_of"]
