"""Attributes beside fields: which attributes that are no fields has the copy of a dataclass that a transform hands in?

Those that are constants.

A dataclass is made of its fields, and these are differentiated, or taken row by row. What `__post_init__` or other code has set
besides may have been computed from them: kept as a constant it would take a slope away, without a word. So numbers that could
have one are withheld, and reading one says why. Cached properties are computed again.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NoReturn

import numpy as np

from jitml.errors import DerivativeError
from jitml.trace.environment.guarded_loads import load, observe
from jitml.trace.environment.tracked_copies import entries
from jitml.trace.record.pytree import children, flatten, is_own_kind, is_record
from jitml.trace.record.recording import Trace, active_trace, user_source
from jitml.trace.values.boxing import is_traced


def hand_on_attributes(what: str, given: Any, passed: Any, varies: Callable[[Any], bool]) -> None:
    """Give the copies of dataclasses in an argument the attributes of the originals that are no fields.

    Args:
        what: the transform's name, for messages.
        given, passed: an argument, and its copy.
        varies: whether a leaf in an attribute may depend on what the transform varies of this argument.
    """
    root = active_trace().root
    for x, copy in containers(given, passed):
        if not is_record(x) or is_own_kind(x):
            continue
        there = dict(entries(copy))
        withheld = dict(root.copies.withheld.get(id(x), {}))
        for name, value in entries(x):
            if name in there or isinstance(inspect.getattr_static(type(x), name, None), functools.cached_property):
                continue
            if any(map(varies, flatten(value)[0])):
                withheld[name] = partial(_refuse, what, type(x).__name__, name)
            else:
                object.__setattr__(copy, name, _seen(root, x, name, value))
        root.copies.withheld[id(copy)] = withheld


def containers(x: Any, copy: Any) -> Iterator[tuple[Any, Any]]:
    """Each container in an argument, with its copy; what is its own copy is a leaf, a dataclass that holds itself, say."""
    if x is copy:
        return
    parts, spec = children(x)
    if spec.is_leaf():
        return
    yield x, copy
    for part, other in zip(parts, children(copy)[0]):
        yield from containers(part, other)


def is_inexact(leaf: Any) -> bool:
    """Whether a leaf has a derivative."""
    kinds = (float, complex, np.ndarray, np.generic)
    return (is_traced(leaf) or isinstance(leaf, kinds)) and np.dtype(getattr(leaf, "dtype", type(leaf))).kind in "fc"


def never(leaf: Any) -> bool:
    """Of an argument that the transform does not vary."""
    return False


def is_inexact_or_array(leaf: Any) -> bool:
    """Whether a leaf may be another one in each row."""
    return isinstance(leaf, np.ndarray) or is_inexact(leaf)


def _seen(root: Trace, x: Any, name: str, value: Any) -> Any:
    """An attribute as the function shall see it: guarded where the object is from outside and has not been copied yet."""
    slot = root.outside.places.get(id(x))
    if slot is None or id(x) in root.copies.watched or is_traced(value):
        return value
    text = f"{root.host.name(slot)}.{name}"
    return observe(root, value, load(root, getattr, slot, name, text), text)


def _refuse(what: str, kind: str, name: str) -> NoReturn:
    raise DerivativeError(
        f"{what}: {name} is no field of the dataclass {kind}, and may depend on the fields, which vary",
        source=user_source(),
        remedy=f"Make {name} a property, which is computed from the fields, or a field.",
    )
