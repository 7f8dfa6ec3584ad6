"""Generated methods: `__init__` of dataclasses is written by the standard library, and executed; nobody keeps its text.

It is written once more, in the same way. It calls factories of defaults and `__post_init__`, which are the user's.
"""

from __future__ import annotations

import dataclasses
from types import CodeType, FunctionType
from typing import Any
from weakref import WeakSet

from jitml.trace.rewrite.source_texts import is_generated, keep_texts

_writer: Any = dataclasses  # of its private functions: what they write is compared with what there is


_done: WeakSet[type] = WeakSet()


def keep_generated(cls: type) -> None:
    """Let the source of a class's `__init__`, and of those that it may call of its bases, be found."""
    if cls in _done:
        return
    _done.add(cls)
    for base in cls.__mro__:
        init = vars(base).get("__init__")
        if type(init) is FunctionType and is_generated(init.__code__) and "__dataclass_fields__" in vars(base):
            keep_texts([_text(base, init.__code__)])


def _text(cls: Any, code: CodeType) -> str:
    kinds = (_writer._FIELD, _writer._FIELD_INITVAR)
    fields = [field for field in cls.__dataclass_fields__.values() if field._field_type in kinds]
    me = "__dataclass_self__" if any(field.name == "self" for field in fields) else "self"
    is_frozen, has_slots = cls.__dataclass_params__.frozen, "__slots__" in vars(cls)
    lines = [_writer._field_init(field, is_frozen, {}, me, has_slots) for field in fields]
    if hasattr(cls, "__post_init__"):
        given = ",".join(field.name for field in fields if field._field_type is _writer._FIELD_INITVAR)
        lines.append(f"{me}.__post_init__({given})")
    named = [_writer._init_param(field) for field in fields if field.init and field.kw_only]
    parameters = [me, *(_writer._init_param(field) for field in fields if field.init and not field.kw_only)]
    head = f" def __init__({','.join([*parameters, *(['*', *named] if named else [])])}):\n"
    around = f"def __create_fn__({','.join(code.co_freevars)}):" + "\n" * (code.co_firstlineno - 1)
    return around + head + "\n".join(f"  {line.strip()}" for line in lines if line) + "\n"
