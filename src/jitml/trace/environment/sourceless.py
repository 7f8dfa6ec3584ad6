"""Functions without source: which of them may be traced as they are, because nothing that they name could be impure?

Python calls their operators and NumPy's functions ask the tracers (NumPy's protocols); everything else in them would run once,
while they are traced, unseen. So there are two kinds: what libraries generate (they are not converted anyway), and
formulas, `lambda x: np.exp(-x) * scale`: no loop, no branch, and no names but those of NumPy's ufuncs, of arrays, of numbers and
of other such functions.
"""

from __future__ import annotations

import dis
import inspect
from collections.abc import Callable, Mapping
from functools import lru_cache, wraps
from types import CodeType, FunctionType
from typing import Any, NoReturn

import numpy as np

from jitml.errors import SourceNotFound
from jitml.trace.record.pytree import flatten
from jitml.trace.record.recording import is_users, refuse
from jitml.trace.rewrite.source_texts import is_generated
from jitml.trace.values.boxing import is_traced

_NAMES = ("LOAD_GLOBAL", "LOAD_DEREF", "LOAD_CLASSDEREF", "LOAD_FROM_DICT_OR_DEREF")
_ATTRIBUTES = ("LOAD_ATTR", "LOAD_METHOD")
_HARMLESS = {
    *("RESUME", "NOP", "NOT_TAKEN", "COPY_FREE_VARS", "PUSH_NULL", "PRECALL", "KW_NAMES", "CALL", "CALL_KW"),
    *("LOAD_CONST", "LOAD_CONST_IMMORTAL", "LOAD_SMALL_INT", "BINARY_OP", "BINARY_SUBSCR", "BINARY_SLICE", "BUILD_SLICE"),
    *("BUILD_TUPLE", "COMPARE_OP", "UNARY_NEGATIVE", "UNARY_INVERT", "UNARY_POSITIVE", "SWAP", "COPY", "POP_TOP"),
    *("RETURN_VALUE", "RETURN_CONST"),
}
_NUMBERS = (bool, int, float, complex, np.number, np.bool_, np.ndarray, type(None), slice, type(...))


def is_trusted(function: FunctionType) -> bool:
    """Whether a library has made a function, or the standard library one that only looks at fields of a record."""
    if not is_users(str(function.__globals__.get("__file__") or "")):
        return True
    is_namedtuples = function.__code__.co_filename == "<string>" and function.__globals__.get("_tuple_new") is tuple.__new__
    return is_namedtuples or (is_generated(function.__code__) and function.__name__ != "__init__")


def is_formula(function: FunctionType, names: Mapping[str, Any]) -> bool:
    """Whether a function only computes with its arguments, and with arrays and numbers that it names.

    Args:
        names: what it finds by name, as far as it is bound.
    """
    found, defaults = _named(function.__code__), (function.__defaults__, function.__kwdefaults__)
    if found is None or not all(isinstance(x, _NUMBERS) for x in flatten(defaults)[0]):
        return False
    return all(name in names and _is_harmless(names[name], attribute) for name, attribute in found)


def _is_harmless(value: Any, attribute: str | None) -> bool:
    """Whether a formula may name a value, or an attribute of it."""
    if value is np:
        return attribute is not None and isinstance(getattr(np, attribute, None), np.ufunc)
    return isinstance(value, (*_NUMBERS, np.ufunc)) or (type(value) is FunctionType and attribute is None)


def refuse_unread(function: FunctionType, reason: str) -> NoReturn:
    """Raises: SourceNotFound."""
    message = f"the source of {function.__qualname__} was not found, so that it cannot be traced: {reason}"
    remedy = "Define it in a file, or in a cell of a notebook; for text that is executed, put its lines into linecache.cache."
    refuse(SourceNotFound(message, remedy=remedy))


@lru_cache(maxsize=1024)
def _named(code: CodeType) -> frozenset[tuple[str, str | None]] | None:
    """Names in a formula, each with the attribute that is read of it at once, if one is; None if it is no formula."""
    if code.co_flags & (inspect.CO_GENERATOR | inspect.CO_VARARGS | inspect.CO_VARKEYWORDS):
        return None
    found: set[tuple[str, str | None]] = set()
    steps = [(step, what) for step, what in instructions(code) if step not in ("CACHE", "EXTENDED_ARG")]
    for (step, what), (after, attribute) in zip(steps, (*steps[1:], ("", None))):
        if step in _NAMES:
            found.add((what, attribute if after in _ATTRIBUTES else None))
        elif not (step in _HARMLESS or step in _ATTRIBUTES or step.startswith(("LOAD_FAST", "STORE_FAST"))):
            return None
    return frozenset(found)


@lru_cache(maxsize=64)
def instructions(code: CodeType) -> tuple[tuple[str, Any], ...]:
    """The steps of a code object, each with what it is about: taken apart once for all who ask, which takes long."""
    return tuple((step.opname, step.argval) for step in dis.get_instructions(code))


def given_numbers(function: FunctionType, reason: str) -> Callable[..., Any]:
    """A formula that takes arrays and numbers only: operators of other objects may do anything.

    Raises:
        SourceNotFound: it is given something else.
    """

    @wraps(function)
    def formula(*args: Any, **kwargs: Any) -> Any:
        for x in flatten((args, kwargs))[0]:
            if not (is_traced(x) or isinstance(x, _NUMBERS)):
                refuse_unread(function, reason)
        return function(*args, **kwargs)

    return formula
