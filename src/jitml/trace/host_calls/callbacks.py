"""Callbacks: how does a library call a function that is made inside the jitted one?

As written, with what it closes over: a `Closure`.

Converted code works while it is traced only. A host call is given the plain code instead, and the arrays and numbers in its cells
and defaults are operands of the call, like its arguments.
"""

from __future__ import annotations

import functools
import pickle
import random
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from dis import get_instructions
from operator import is_
from types import BuiltinFunctionType, CellType, CodeType, FunctionType, MemberDescriptorType, MethodType, ModuleType
from typing import Any

import numpy as np
import optree

from jitml.errors import Cause, FailedCheck, Source, UnsupportedError
from jitml.records import dataclass, field
from jitml.trace.record.parts import CallPart
from jitml.trace.record.pytree import NAMESPACE, flatten, unflatten
from jitml.trace.record.recording import Trace, active_trace, home_of, is_converted, refuse, unsupported, user_source
from jitml.trace.record.user_code import Call, caller
from jitml.trace.rewrite.code_names import codes_inside, names_in_code
from jitml.trace.rewrite.protocol import HOOKS
from jitml.trace.values.boxing import LiftedArrays, is_traced

_BINDS = ("STORE_GLOBAL", "DELETE_GLOBAL", "STORE_DEREF", "DELETE_DEREF")
_DATA = (bool, int, float, complex, str, bytes)
_SEEN_BY_OTHERS = ("print", "input", "open")
_GENERATORS = (np.random.Generator, np.random.RandomState, random.Random)
_plain: dict[int, CodeType] = {}  # code of converted functions that functions make -> as it is written
_built: set[int] = set()  # ids of the latter
_inner: set[int] = set()  # ids of all code of functions that converted ones make


def pair(converted: CodeType, plain: CodeType) -> None:
    """Note of which code inside a function, or in a comprehension of it, the code inside its converted form is the like."""
    found = defaultdict[Any, list[CodeType]](list)
    for code in codes_inside(plain):
        found[_place(code)].append(code)
    for code in codes_inside(converted):
        _inner.add(id(code))
        if len(originals := found[_place(code)]) == 1:
            _plain[id(code)] = originals[0]
            _built.add(id(originals[0]))


def _place(code: CodeType) -> tuple[Any, ...]:
    """Where the code of a function stands, and with which arguments. What is added stands where its statement does."""
    column = min((column for line, _, column, _ in code.co_positions() if column and line == code.co_firstlineno), default=0)
    return code.co_name, code.co_firstlineno, column, code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]


def binds(code: CodeType, names: Collection[str]) -> bool:
    """Whether code, or that of a function in it, binds one of these names around it."""
    steps = (step for inner in (code, *codes_inside(code)) for step in get_instructions(inner))
    return any(step.opname in _BINDS and step.argval in names for step in steps)


def is_made_inside(x: Any) -> bool:
    """Whether this is a function that a converted one has made, of which the plain code is known."""
    return type(x) is FunctionType and id(x.__code__) in _plain


def is_converted_inside(x: Any) -> bool:
    """Whether this is any function that a converted one has made."""
    return type(x) is FunctionType and id(x.__code__) in _inner


def plain_code(x: FunctionType) -> CodeType | None:
    """The code of such a function as it is written; None of all others."""
    return _plain.get(id(x.__code__))


def is_built(x: Any) -> bool:
    """Whether this is such a function as a library sees it."""
    return type(x) is FunctionType and id(x.__code__) in _built


@dataclass(frozen=True, eq=False)
class Space:
    """A module's globals, which are compared by identity."""

    names: dict[str, Any]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Space) and other.names is self.names

    def __hash__(self) -> int:
        return id(self.names)


@dataclass(frozen=True)
class Closure:
    """A function as it is written, and what it has been made with."""

    code: CodeType
    space: Space
    contents: tuple[Any, ...]  # of its cells
    defaults: tuple[Any, ...] | None
    named_defaults: dict[str, Any] | None
    attributes: dict[str, Any]  # `event.terminal`, say

    def parts(self) -> tuple[tuple[Any, ...], Any]:
        return (self.contents, self.defaults, self.named_defaults, self.attributes), (self.code, self.space)

    @staticmethod
    def build(made_of: Any, parts: Any) -> Any:
        """The function itself, of what is no more traced."""
        code, space = made_of
        leaves, spec = flatten(parts)
        if any(map(_stands_in, leaves)):
            return Closure(code, space, *parts)
        contents, defaults, named_defaults, attributes = unflatten(spec, [*map(_read_only, leaves)])
        function = FunctionType(code, space.names, code.co_name, defaults, tuple(map(CellType, contents)))
        function.__kwdefaults__ = named_defaults
        function.__dict__.update(attributes)
        return function


_register: Any = optree.register_pytree_node
_register(Closure, Closure.parts, Closure.build, namespace=NAMESPACE)


def _stands_in(x: Any) -> bool:
    """Whether this is a tracer, or another thing of the trace's."""
    return is_traced(x) or home_of(type(x)).startswith("jitml.")


def _read_only(x: Any) -> Any:
    """What is written there would be lost, and an object may keep the function: the program's memory goes."""
    if type(x) is np.ndarray:
        x = x.copy()
        x.flags.writeable = False
    return x


@dataclass(frozen=True)
class Applied:
    """`functools.partial` with such a function."""

    function: Any
    args: tuple[Any, ...]
    kwargs: dict[str, Any]

    def parts(self) -> tuple[tuple[Any, ...], Any]:
        return (self.function, self.args, self.kwargs), None

    @staticmethod
    def build(_: Any, parts: Any) -> Any:
        function, args, kwargs = parts
        return Applied(*parts) if any(map(_stands_in, flatten(parts)[0])) else functools.partial(function, *args, **kwargs)


_register(Applied, Applied.parts, Applied.build, namespace=NAMESPACE)


def with_plain_functions(tree: Any) -> Any:
    """Arguments of a host call, with functions that are made inside the jitted one as they are written."""
    return _plainly(tree, ())


class _Lookers(list[tuple[str, Source | None]], CallPart):
    """Host calls inside loops of functions that may read what is outside, and where."""


def require_nothing_pending(name: str, leaves: Sequence[Any]) -> None:
    """Refuse to hand out functions that may look at what the jitted one has changed outside: that shows at the end.

    What a loop's body does after the call is before it in the next iteration.
    """
    trace = active_trace()
    is_pending, is_repeated = _has_changed(trace.root), trace is not trace.root
    if (is_pending or is_repeated) and any(map(_looks_outside, leaves)):
        trace.call[_Lookers].append((name, user_source()))
        if is_pending:
            require_never_changed(trace.root)


def require_never_changed(root: Trace) -> None:
    """Refuse changes of what is outside, if functions may have looked at that in a loop."""
    if root.call[_Lookers] and _has_changed(root):
        name, source = root.call[_Lookers][-1]
        message = (
            f"{name} is given a function that may read what the jitted one has changed, and sees it as it was before the call"
        )
        remedy = "Call it first, or let the function take what it needs as an argument."
        refuse(UnsupportedError(message, source=source, remedy=remedy))


def _has_changed(root: Trace) -> bool:
    return bool(root.changes.stored) or bool(root.call[LiftedArrays].written())


def _looks_outside(x: Any) -> bool:
    """Whether a function may read more than what it is given, or an object may be read by one."""
    if is_traced(x) or type(x) in _DATA or x is None:
        return False
    if type(x) is FunctionType and not is_converted(x.__code__.co_filename):
        return False
    root = active_trace().root
    if isinstance(x, type):
        return root.changes.is_changed(x)
    if isinstance(x, ModuleType):
        return id(vars(x)) in root.changes.spaces
    if not is_made_inside(x):
        return not isinstance(x, BuiltinFunctionType)
    code = _plain[id(x.__code__)]
    names = {name for inner in (code, *codes_inside(code)) for name in (*inner.co_names, *inner.co_freevars)}
    if any(name in names and owner in root.changes.spaces for owner, name in root.changes.stored):
        return True
    outer = [x.__globals__[name] for name in names_in_code(code) if name in x.__globals__]
    own, _ = flatten((_around(x), x.__defaults__, x.__kwdefaults__, vars(x)))
    return any(map(_looks_outside, outer)) or any(y is not x and _looks_outside(y) for y in own)


def calls_back(leaves: Sequence[Any]) -> bool:
    """Whether functions of the user's, or what is partly applied to traced values, are among arguments."""
    return any(_is_users(x) or _is_to_be_rewritten(x) for x in leaves)


def _is_to_be_rewritten(x: Any) -> bool:
    if type(x) is functools.partial:
        return any(_stands_in(part) or _is_to_be_rewritten(part) for part in (x.func, *x.args, *x.keywords.values()))
    return is_made_inside(x) or original_form(x) is not None


def _is_users(x: Any) -> bool:
    """Whether this is a function of the user's, or an object from outside, or a method of one, that a library may call."""
    if type(x) is FunctionType:
        return is_converted(x.__code__.co_filename)
    owner = x.__self__ if type(x) is MethodType else x
    called = x.__func__ if type(x) is MethodType else getattr(type(x), "__call__", None)  # noqa: B004  # that of the class
    return id(owner) in active_trace().outside.places and _is_users(called) if type(called) is FunctionType else False


def original_form(x: Any) -> FunctionType | None:
    """The function that the jitted one has found somewhere, of which this is the converted form."""
    if type(x) is not FunctionType or HOOKS not in x.__code__.co_freevars or is_made_inside(x):
        return None
    return next((function for function, converted in active_trace().functions.converted.items() if converted is x), None)


def _plainly(tree: Any, within: tuple[FunctionType, ...]) -> Any:
    def seen(x: Any) -> Any:
        if type(x) is functools.partial and _is_to_be_rewritten(x):
            return Applied(*(_plainly(part, within) for part in (x.func, x.args, dict(x.keywords))))
        if (original := original_form(x)) is not None:
            x = original
        if type(x) is FunctionType and _is_users(x) and not is_made_inside(x):
            _require_no_effects(x, x.__code__)
        return _closure(x, (*within, x)) if is_made_inside(x) and x not in within else x

    return optree.tree_map(seen, tree, namespace=NAMESPACE)


def _closure(function: FunctionType, within: tuple[FunctionType, ...]) -> Any:
    code = _plain[id(function.__code__)]
    _require_no_effects(function, code)
    cells = dict(zip(function.__code__.co_freevars, function.__closure__ or ()))
    try:
        contents = tuple(_plainly(cells[name].cell_contents, within) for name in code.co_freevars)
    except (KeyError, ValueError):  # it is unbound as yet
        return function
    if any(isinstance(x, Iterator) for x in flatten(contents)[0]):
        unsupported(
            f"{function.__name__} is called by a library, and has an iterator to go on with",
            "Make it a list before.",
            Cause.ITERATOR,
        )
    parts = (_plainly(part, within) for part in (function.__defaults__, function.__kwdefaults__, vars(function)))
    return Closure(code, Space(function.__globals__), contents, *parts)


def _require_no_effects(function: FunctionType, code: CodeType) -> None:
    """Refuse a function that does more than to compute: it is called while the jitted one is traced, too, and then on copies."""
    names = names_in_code(code)
    what = ""
    if binds(code, (*code.co_freevars, *code.co_names)):
        what = "binds a name of the function around it"
    elif not names.isdisjoint(_SEEN_BY_OTHERS):
        what = "does what others see"
    elif any(isinstance(function.__globals__.get(name), _GENERATORS) for name in names):
        what = "draws random numbers"
    if what:
        unsupported(f"{function.__name__} is called by a library, and {what}", "Let it return a value instead.")


@contextmanager
def nothing_drawn(name: str) -> Iterator[None]:
    """While a function is tried out, nobody draws from the generators of `np.random` and `random`."""
    legacy, pythons = before = np.random.get_state(legacy=False), random.getstate()
    yield
    if pickle.dumps((np.random.get_state(legacy=False), random.getstate())) != pickle.dumps(before):
        np.random.set_state(legacy)
        random.setstate(pythons)
        unsupported(
            f"{name} draws random numbers, or calls a function that does", "Draw them before, and hand them on.", Cause.RANDOM
        )


class ChangedAround(FailedCheck):
    """A function that a library has called has changed what is around it."""


@dataclass(frozen=True)
class WatchedCallback:
    """A host function that is given such functions: they must leave what they close over as it is.

    name: what users call it. own: objects of the jitted function's among that, which there are once for all calls, and what they
    hold at this point. call: calls it from the user's line, for its warnings.
    """

    function: Callable[..., Any]
    name: str
    own: tuple[tuple[Any, Sequence[Any]], ...]
    call: Call = field(default_factory=caller)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        functions = [x for x in flatten((args, kwargs))[0] if type(x) in (FunctionType, functools.partial)]
        before = _held(functions)
        self._require_own_unchanged()
        try:
            result = self.call(self.function, args, kwargs)
        except ValueError as error:
            if "read-only" in str(error):
                raise ChangedAround(f"{self.name} calls a function that writes into an array of the function around it") from None
            raise
        if _held(functions) != before:
            raise ChangedAround(f"{self.name} calls a function that changes a list or a dict of the function around it")
        self._require_own_unchanged()
        return result

    @property
    def cells(self) -> list[tuple[CellType, Any]]:
        """Where functions find what they close over, and what is there now."""
        functions = [x for x, _ in self.own if type(x) is FunctionType]
        return [(cell, cell.cell_contents) for x in functions for cell in x.__closure__ or () if cell != CellType()]

    def _require_own_unchanged(self) -> None:
        for x, state in self.own:
            after = _state(x)
            if len(after) != len(state) or not all(map(is_, after, state)):
                raise ChangedAround(
                    f"{self.name} calls a function that uses a {type(x).__name__} of the function around it, which changes"
                )


def own_objects(leaves: Sequence[Any]) -> tuple[tuple[Any, Sequence[Any]], ...]:
    """Objects that the jitted function has made, functions too, among what functions close over, and what they hold now."""
    waiting, found = list(filter(_is_to_be_rewritten, leaves)), dict[int, Any]()
    while waiting:
        x = waiting.pop()
        if _stands_in(x) or x is None or issubclass(type(x), (*_DATA, type, ModuleType)) or id(x) in found:
            continue
        if type(x) is functools.partial:
            waiting += flatten((x.func, x.args, dict(x.keywords)))[0]
        elif is_made_inside(x) or (type(x) is not FunctionType and id(x) not in active_trace().outside.places):
            found[id(x)] = x
            waiting += _state(x)
            if type(x) is FunctionType:
                waiting += flatten((_around(x), x.__defaults__, x.__kwdefaults__))[0]
    return tuple((x, _state(x)) for x in found.values())


def _around(function: FunctionType) -> list[Any]:
    """What is in a converted function's cells, as far as they are bound."""
    found = []
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or ()):
        if name != HOOKS:
            with suppress(ValueError):
                found.append(cell.cell_contents)
    return found


def _state(x: Any) -> Sequence[Any]:
    """What an object holds itself."""
    items = [*x] if isinstance(x, (set, list, bytearray)) else [*x, *x.values()] if isinstance(x, dict) else []
    slots = [name for cls in type(x).__mro__ for name, member in vars(cls).items() if isinstance(member, MemberDescriptorType)]
    if type(x) is not FunctionType:
        items += [getattr(x, name, None) for name in slots]
    own = getattr(x, "__dict__", {})
    return flatten([*items, *own, *own.values()])[0]


def _held(functions: Collection[Any]) -> Sequence[Any]:
    """What functions close over, as far as containers go: their structure, and which things are in them."""
    found: list[Any] = []
    for function in functions:
        function = function.func if type(function) is functools.partial else function
        if is_built(function):
            contents = [cell.cell_contents for cell in function.__closure__ or ()]
            leaves, spec = flatten(contents)
            found += [spec, *map(id, leaves), *_held([x for x in leaves if type(x) is FunctionType])]
    return found
