"""Objects among results: what the function has made itself and returns, or keeps outside, is made anew at the end of each call.

It is made of its parts, as they are then: an instance of its attributes, an inner function of its plain code and what is in its
cells, a bound method of its object. Two that share a part, or a cell, share it again. A `Made` stands for one until
then.
"""

from __future__ import annotations

import copy
import functools
import inspect
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from types import BuiltinFunctionType, CellType, FunctionType, MappingProxyType, MethodType, SimpleNamespace
from typing import Any

import numpy as np
import optree

from jitml.trace.effects.queues import QUEUES
from jitml.trace.effects.side_effects import members
from jitml.trace.environment.loads import behind
from jitml.trace.environment.understood import is_bound, is_view
from jitml.trace.host_calls.callbacks import Space, binds, original_form, plain_code
from jitml.trace.host_calls.generators import is_generator
from jitml.trace.record.escape_analysis import require_untraced
from jitml.trace.record.object_state import parts_of
from jitml.trace.record.parts import CallPart
from jitml.trace.record.pytree import NAMESPACE, is_record
from jitml.trace.record.recording import Trace, home_of, is_users_class, unsupported
from jitml.trace.speculation.modes import decisions
from jitml.trace.values.boxing import LiftedArrays, is_traced
from jitml.trace.values.reachable import namespace_of
from jitml.trace.values.unbound import bound

Settle = Callable[[Any], Any]
_DATA = (bool, int, float, complex, str, bytes, type(None), np.ndarray, np.generic)
_WHAT = "the function returns, or keeps,"
_REMEDY = "Return arrays, numbers, strings, and tuples, lists, dicts and dataclasses of them."


class Made:
    """An object that is built of its parts at the end of a call.

    Args:
        build: makes it of the parts.
    """

    __slots__ = ("build", "parts")

    def __init__(self, build: Build, parts: Sequence[Any]) -> None:
        self.build = build
        self.parts = tuple(parts)


class Build(ABC):
    """How an object is made of its parts; `fixed` is what is the same at every call."""

    __slots__ = ("fixed",)

    def __init__(self, *fixed: Any) -> None:
        self.fixed = fixed

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and isinstance(other, Build) and self.fixed == other.fixed

    def __hash__(self) -> int:
        return hash(type(self))

    @abstractmethod
    def __call__(self, parts: Sequence[Any]) -> Any: ...


class _Instance(Build):
    """`fixed`: the class, and the names of attributes."""

    def __call__(self, parts: Sequence[Any]) -> Any:
        kind, names = self.fixed
        made: Any = kind() if kind is SimpleNamespace else object.__new__(kind)
        for name, value in zip(names, parts):
            object.__setattr__(made, name, value)
        return made


class _MadeCell(Build):
    def __call__(self, parts: Sequence[Any]) -> Any:
        return CellType(*parts)


class _MadeFunction(Build):
    """`fixed`: code, globals, names and texts, and whether each cell is one of the parts, or has the function itself.

    Behind the cells come defaults, those of keywords, and attributes.
    """

    def __call__(self, parts: Sequence[Any]) -> Any:
        code, space, texts, are_others = self.fixed
        *others, defaults, named_defaults, attributes = parts
        waiting = iter(others)
        cells = tuple(next(waiting) if is_other else CellType() for is_other in are_others)
        made = FunctionType(code, space.names, texts["__name__"], defaults, cells)
        for cell, is_other in zip(cells, are_others):
            if not is_other:
                cell.cell_contents = made
        for name, text in texts.items():
            setattr(made, name, text)
        made.__kwdefaults__ = named_defaults
        made.__dict__.update(attributes)
        return made


class _MadeMethod(Build):
    """`fixed`: a function of the object's class, or the name of a method that is written in C."""

    def __call__(self, parts: Sequence[Any]) -> Any:
        (found,) = self.fixed
        return getattr(parts[0], found) if isinstance(found, str) else MethodType(found, parts[0])


class _BoundTo(Build):
    def __call__(self, parts: Sequence[Any]) -> Any:
        return MethodType(parts[0], parts[1])


class _Partial(Build):
    def __call__(self, parts: Sequence[Any]) -> Any:
        function, args, kwargs = parts
        return functools.partial(function, *args, **kwargs)


class _MadeView(Build):
    """`fixed`: which view of a dict it is; an empty name is a `MappingProxyType`."""

    def __call__(self, parts: Sequence[Any]) -> Any:
        (kind,) = self.fixed
        return getattr(parts[0], kind)() if kind else MappingProxyType(parts[0])


class _MadeCopy(Build):
    """`fixed`: an object of a library's, as it is at the end of a call, and what copies of it share."""

    def __eq__(self, other: object) -> bool:
        return self is other

    def __hash__(self) -> int:
        return id(self)

    def __call__(self, parts: Sequence[Any]) -> Any:
        made, shared = self.fixed
        return copy.deepcopy(made, {id(x): x for x in shared})


class _Queue(Build):
    """`fixed`: the class, how much there is room for, and how many tasks are not done."""

    def __call__(self, parts: Sequence[Any]) -> Any:
        kind, room, unfinished = self.fixed
        made = kind(room)
        made.queue, made.unfinished_tasks = parts[0], unfinished
        return made


class _Copied(list[object], CallPart):
    """Objects of libraries that the function returns, of which each call gets a copy."""


def made_of(trace: Trace, x: Any, settle: Settle) -> Any:
    """A `Made` of what the function has made itself; all else as it is.

    Args:
        settle: what a part becomes.
    """
    if is_traced(x) or isinstance(x, _DATA) or any(x is known for known in trace.outside.objects.values()):
        return x
    match x:
        case CellType():
            return Made(_MadeCell(), [settle(content) for content in _contents(x)])
        case FunctionType():
            return _made_function(trace, x, settle)
        case MethodType():
            return _made_method(x, settle)
        case functools.partial() if type(x) is functools.partial:
            return Made(_Partial(), [settle(part) for part in (x.func, x.args, dict(x.keywords))])
        case BuiltinFunctionType() if is_bound(x) and isinstance(x.__self__, (list, dict, set, deque)):
            return Made(_MadeMethod(x.__name__), [settle(x.__self__)])
        case MappingProxyType():
            return Made(_MadeView(""), [settle(behind(x))])
    if is_view(x):
        return Made(_MadeView(type(x).__name__.rpartition("_")[2]), [settle(behind(x))])
    if _is_copied(trace, x):
        generators = [part for part in parts_of([x]) if is_generator(part)]
        return Made(_MadeCopy(copy.deepcopy(x, {id(part): part for part in generators}), generators), [])
    if type(x) in QUEUES and id(x) not in trace.outside.places:
        return Made(_Queue(type(x), x.maxsize, x.unfinished_tasks), [settle(x.queue)])
    if is_made_instance(trace, x):
        if (withheld := trace.copies.withheld.get(id(x))) is not None:
            for refuse in withheld.values():
                refuse()
        named = dict(attributes_of(x))
        return Made(_Instance(type(x), tuple(named)), [settle(value) for value in named.values()])
    return x


def is_made_instance(trace: Trace, x: Any) -> bool:
    """Whether this is an object of the function's own that is nothing but its attributes."""
    kind: Any = type(x)
    if id(x) not in trace.outside.own or id(x) in trace.outside.places or isinstance(x, (type, BaseException)) or is_record(x):
        return False
    is_known = is_users_class(kind) or kind is SimpleNamespace
    return is_known and not any(id(cls) in trace.outside.own for cls in kind.__mro__) and _is_built_on_object(kind)


def _is_copied(trace: Trace, x: Any) -> bool:
    """Whether this is an object of a library's that the function has made of constants, and nothing else shows what it holds."""
    is_librarys = home_of(type(x)).startswith("scipy.") and not isinstance(x, type)
    if id(x) not in trace.outside.own or not is_librarys:
        return False
    parts = parts_of([x])
    if any(_is_known(trace, part) for part in parts):
        return False
    others = [part for other in trace.call[_Copied] if other is not x for part in parts_of([other])]
    trace.call[_Copied].append(x)
    arrays, known = ([part for part in some if isinstance(part, np.ndarray)] for some in (parts, others))
    return not any(np.may_share_memory(a, b) for a in arrays for b in known)


def _is_known(trace: Trace, x: Any) -> bool:
    """Whether somebody else may know what an object of a library's holds."""
    kind: Any = type(x)
    return is_traced(x) or id(x) in trace.outside.places or id(x) in trace.call[LiftedArrays].known or is_users_class(kind)


def parts_of_made(trace: Trace, x: Any) -> list[Any]:
    """What such an object holds; nothing of others."""
    return [value for _, value in attributes_of(x)] if is_made_instance(trace, x) else []


def attributes_of(x: Any) -> Iterator[tuple[str, Any]]:
    """What stands in an object's namespace and slots."""
    yield from list(namespace_of(x).items())
    kind: Any = type(x)
    for member in members(kind):
        try:
            yield member.__name__, member.__get__(x)
        except AttributeError:
            continue


def _is_built_on_object(kind: Any) -> bool:
    return all(cls in (object, SimpleNamespace) or bool(cls.__flags__ & (1 << 9)) for cls in kind.__mro__)


def _contents(cell: CellType) -> list[Any]:
    try:
        return [cell.cell_contents]
    except ValueError:
        return []


def _made_function(trace: Trace, x: FunctionType, settle: Settle) -> Any:
    """An inner function as it is written; of one from outside, that itself."""
    if (original := original_form(x)) is not None:
        return original
    code = plain_code(x)
    if code is None:
        return x
    cells = dict(zip(x.__code__.co_freevars, x.__closure__ or ()))
    if any(name not in cells for name in code.co_freevars):
        unsupported(f"{_WHAT} {x.__name__}, of which nothing tells what it closes over", _REMEDY)
    own = [cells[name] for name in code.co_freevars]
    for name, cell in zip(code.co_freevars, own):
        if not (contents := _contents(cell)):  # a loop may have let it go, since no code reads it after the loop
            decisions().reconsider_names(trace, NameError(f"'{name}'"))
        for content in contents:
            cell.cell_contents = bound(content)  # what only the compiled program knows to be there, it checks here
    are_others = tuple(not any(content is x for content in _contents(cell)) for cell in own)
    if not all(are_others) and binds(code, [name for name, is_other in zip(code.co_freevars, are_others) if not is_other]):
        unsupported(f"{_WHAT} {x.__name__}, which binds its own name anew", _REMEDY)
    texts = {name: getattr(x, name) for name in ("__name__", "__qualname__", "__doc__", "__module__")}
    if x.__qualname__ == x.__code__.co_qualname:
        texts["__qualname__"] = code.co_qualname
    if getattr(x, "__annotations__", None):
        texts["__annotations__"] = x.__annotations__
    require_untraced(tuple(texts.values()), _WHAT)
    others = [settle(cell) for cell, is_other in zip(own, are_others) if is_other]
    rest = [settle(part) for part in (x.__defaults__, x.__kwdefaults__, dict(vars(x)))]
    return Made(_MadeFunction(code, Space(x.__globals__), texts, are_others), [*others, *rest])


def _made_method(x: MethodType, settle: Settle) -> Any:
    owner, function = x.__self__, x.__func__
    kind: Any = owner if isinstance(owner, type) else type(owner)
    found = inspect.getattr_static(kind, getattr(function, "__name__", ""), None)
    if function is found or function is getattr(found, "__func__", None):
        return Made(_MadeMethod(function), [settle(owner)])
    return Made(_BoundTo(), [settle(function), settle(owner)])


def _parts_and_build(made: Made) -> tuple[tuple[Any, ...], Build]:
    return made.parts, made.build


def _built(build: Build, parts: Any) -> Any:
    return build(parts)


_register: Any = optree.register_pytree_node  # whose stubs ask for a collection
_register(Made, _parts_and_build, _built, namespace=NAMESPACE)

__all__ = ["Made", "attributes_of", "is_made_instance", "made_of", "parts_of_made"]
