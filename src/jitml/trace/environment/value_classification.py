"""Value classification: what does tracing understand of a value from outside?

`way_of`: one table, by type; what is not in it is opaque.

A value comes in as an argument, global, attribute, item, default, key or in a cell; whatever its role, the first row that covers
its type says how it is guarded, read, changed, copied, handed to library code and returned. The last row covers all else.
`docs/understood.md` prints the table.
"""

from __future__ import annotations

import functools
import io
import operator
import random
import re
import struct
import sys
from collections.abc import Callable, Iterator
from enum import Enum, auto
from types import (
    BuiltinFunctionType,
    ClassMethodDescriptorType,
    CodeType,
    FunctionType,
    GenericAlias,
    GetSetDescriptorType,
    MemberDescriptorType,
    MethodDescriptorType,
    MethodType,
    MethodWrapperType,
    ModuleType,
    UnionType,
    WrapperDescriptorType,
)
from typing import Any

import numpy as np

from jitml.diagnostics.code_owners import is_users
from jitml.imports.late import late_class
from jitml.records import dataclass
from jitml.trace.host_calls.generators import is_generator
from jitml.trace.record.device_arrays import is_on_device
from jitml.trace.record.guards import IMMUTABLE
from jitml.trace.record.libraries import is_distribution, is_sparse
from jitml.trace.record.object_state import CONTAINERS, is_polynomial, is_visible, parts_of
from jitml.trace.record.recording import home_of, is_users_class

PLAIN = (  # no np.void, which shows the memory of a structured array
    bool, int, float, complex, str, bytes, type(None), type(...), range, np.number, np.bool_, np.character, np.datetime64,
    np.dtype, Enum, slice, frozenset, *IMMUTABLE,
)  # fmt: skip
_CODE = (
    type, FunctionType, ModuleType, CodeType, BuiltinFunctionType, MethodWrapperType, WrapperDescriptorType, MethodDescriptorType,
    ClassMethodDescriptorType, GetSetDescriptorType, MemberDescriptorType, property, staticmethod, classmethod, np.ufunc,
    type(functools.lru_cache(abs)), operator.itemgetter, operator.attrgetter, operator.methodcaller, re.Pattern, re.Match,
    struct.Struct, np.finfo, np.iinfo, GenericAlias, UnionType, io.IOBase, random.Random,
    *map(type, (np.r_, np.c_, np.mgrid, np.ogrid)),
)  # fmt: skip
_MASKED, _MASKED_NUMBER = late_class("numpy.ma", "MaskedArray"), late_class("numpy.ma.core", "MaskedConstant")
_KNOWN = {*sys.stdlib_module_names, "numpy", "scipy"}


class Way(Enum):
    """How a value from outside comes in."""

    ARRAY = auto()
    GENERATOR = auto()
    VALUE = auto()
    ITEMS = auto()
    PARTS = auto()
    ITSELF = auto()
    ATTRIBUTES = auto()
    COMPARED = auto()
    OPAQUE = auto()


@dataclass(frozen=True)
class UnderstoodRow:
    """What is done with the values of some types.

    covers: whether it is this row's, if no earlier one has it.
    """

    way: Way
    what: str
    covers: Callable[[Any], bool]
    guarded: str
    read: str
    changed: str
    copied: str
    handed: str
    returned: str


def is_array(x: Any) -> bool:
    """Whether this is an array that is computed with; a masked one is an object of a library's."""
    return (isinstance(x, np.ndarray) and not isinstance(x, _MASKED)) or is_on_device(x)


def is_bound(x: Any) -> bool:
    """Whether a function written in C is a method of an object."""
    if type(x) not in (BuiltinFunctionType, MethodWrapperType):
        return False
    return not isinstance(x.__self__, (type(None), type, ModuleType, *_CODE))


def _has_items(x: Any) -> bool:
    """Whether this is a container, and not a library's that is one by the way, as a sparse matrix is a dict of its numbers."""
    kind: Any = type(x)
    is_standard = home_of(kind).partition(".")[0] in sys.stdlib_module_names
    return isinstance(x, CONTAINERS) and (isinstance(x, tuple) or is_standard or (is_users_class(kind) and not is_sparse(kind)))


def _is_code(x: Any) -> bool:
    kind: Any = type(x)
    if isinstance(x, _MASKED_NUMBER) or is_distribution(x):
        return True
    if isinstance(x, _CODE) or kind.__name__ == "_ArrayFunctionDispatcher" or home_of(kind).startswith("jitml."):
        return True
    return home_of(kind).partition(".")[0] in ("typing", "_thread")


def _has_attributes(x: Any) -> bool:
    kind: Any = type(x)
    is_standard = home_of(kind).partition(".")[0] in sys.stdlib_module_names
    return (is_users_class(kind) and not is_sparse(kind)) or (is_standard and is_visible(kind))


TABLE = (
    UnderstoodRow(
        Way.ARRAY, "arrays", is_array,
        "class, dtype, shape, strides, what it shares memory with", "at each call", "in place, when the call has succeeded",
        "as a new array", "as an array that the program has", "itself, or a view of it",
    ),
    UnderstoodRow(
        Way.GENERATOR, "generators of random numbers", is_generator,
        "class", "at each call, draw by draw", "drawing advances it", "refused", "at run time, to what draws", "itself",
    ),
    UnderstoodRow(
        Way.VALUE, "numbers, text, None, dtypes, dates and other values that never change", lambda x: isinstance(x, PLAIN),
        "by value; by type numbers that are arguments or change often, and floats that arguments hold",
        "as a constant or an operand", "never", "itself",
        "itself", "itself",
    ),
    UnderstoodRow(
        Way.ITEMS, "lists, tuples, dicts, deques, and classes made of them", _has_items,
        "type, length or keys, and each item by its own row", "item by item", "on a copy, written back in the end",
        "item by item", "a copy of its items", "the caller's own",
    ),
    UnderstoodRow(
        Way.PARTS, "methods of objects, partials",
        lambda x: type(x) in (functools.partial, MethodType) or is_bound(x),
        "what it is made of, each part by its own row", "through its parts", "through its parts", "through its parts",
        "made anew of its parts", "itself",
    ),
    UnderstoodRow(
        Way.ITSELF, "functions, classes, modules, jitted functions, patterns, streams and other code", _is_code,
        "by identity, functions made inside of others that arguments hold by code; of those converted also all that they load",
        "never changes", "refused",
        "itself", "itself", "itself",
    ),
    UnderstoodRow(
        Way.ATTRIBUTES, "objects of the user's classes and of Python's", _has_attributes,
        "by identity, arguments and what they hold by class; attributes as they are loaded", "attribute by attribute",
        "attributes are set when the call has succeeded",
        "refused, unless they have a `__copy__`",
        "refused", "itself",
    ),
    UnderstoodRow(
        Way.COMPARED, "polynomials of NumPy's",
        is_polynomial,
        "by identity, and all that they hold by value", "as a constant", "arrays that they hold, in place", "refused",
        "refused", "itself",
    ),
    UnderstoodRow(
        Way.OPAQUE, "everything else: objects of libraries, masked arrays, sets, bytearrays, weak references", lambda x: True,
        "by class", "attributes that it keeps, before the program starts; all else is refused",
        "refused", "refused", "refused", "itself",
    ),
)  # fmt: skip


def row_of(x: Any) -> UnderstoodRow:
    """The row that covers a value."""
    return next(row for row in TABLE if row.covers(x))


def way_of(x: Any) -> Way:
    """How a value from outside comes in."""
    return row_of(x).way


def is_librarys_code(x: Any) -> bool:
    """Whether this is a function of a library's that is always the same, or one that `operator` makes of plain values."""
    if isinstance(x, (operator.itemgetter, operator.attrgetter, operator.methodcaller)):
        return all(isinstance(part, (*PLAIN, tuple, dict)) for part in parts_of([x]) if part is not x)
    if type(x) is FunctionType:
        return not is_users(x.__code__.co_filename) and x.__closure__ is None and home_of(x).partition(".")[0] in _KNOWN
    is_code = (
        isinstance(x, (np.ufunc, BuiltinFunctionType, MethodDescriptorType)) or type(x).__name__ == "_ArrayFunctionDispatcher"
    )
    return is_code and not is_bound(x)


def is_iterator(x: Any) -> bool:
    """Whether this goes forward as it is read, out of sight."""
    return isinstance(x, Iterator) and home_of(type(x)) in ("builtins", "itertools")
