"""Dataclasses whose methods are written when they are first called: the standard library's classes, made in a tenth of its time.

It writes and compiles up to six methods for each class when that is made, which took half of the time of our import; of most
classes, one or two are ever called.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator
from dataclasses import field, fields, replace
from reprlib import recursive_repr
from types import MemberDescriptorType
from typing import TYPE_CHECKING, Any, NamedTuple

_dataclasses: Any = dataclasses  # of its private names: the mark of a field, which its functions look for
_MISSING: Any = dataclasses.MISSING


class _Asked(NamedTuple):
    """What the decorator was asked for, by the standard library's names."""

    eq: bool
    frozen: bool
    slots: bool
    weakref_slot: bool
    init: bool = True
    repr: bool = True
    order: bool = False
    unsafe_hash: bool = False
    match_args: bool = True
    kw_only: bool = False


def _dataclass(
    cls: type | None = None, /, *, eq: bool = True, frozen: bool = False, slots: bool = False, weakref_slot: bool = False
) -> Any:
    """The standard library's decorator, of which these are the options that we use."""
    asked = _Asked(eq, frozen, slots, weakref_slot)
    return _make_dataclass(cls, asked) if cls is not None else lambda cls: _make_dataclass(cls, asked)


if TYPE_CHECKING:
    from dataclasses import dataclass
else:
    dataclass = _dataclass


def _make_dataclass(cls: Any, asked: _Asked) -> Any:
    known: dict[str, Any] = {}
    for base in cls.__mro__[-1:0:-1]:
        known |= getattr(base, "__dataclass_fields__", {})
    known |= {own.name: own for own in _own_fields(cls)}
    own = cls.__dict__
    has_hash = "__hash__" in own and not (own["__hash__"] is None and "__eq__" in own)
    if asked.slots:
        cls = _with_slots(cls, known, asked)
    cls.__dataclass_fields__, cls.__dataclass_params__ = known, asked
    if "__match_args__" not in own:
        cls.__match_args__ = tuple(f.name for f in known.values() if f.init and not f.kw_only)  # type: ignore[misc]
    _write_later(cls, "__init__", _init)
    if "__repr__" not in own:
        cls.__repr__ = _repr
    if asked.eq:
        _write_later(cls, "__eq__", _eq)
        if not has_hash:
            cls.__hash__ = None
            if asked.frozen:
                _write_later(cls, "__hash__", _hash, anew=True)
    if asked.frozen:
        cls.__setattr__, cls.__delattr__ = _refuse_to_set, _refuse_to_delete
    return cls


def _own_fields(cls: type) -> Iterator[Any]:
    """The fields that the class's own annotations make, in order; their defaults become attributes of the class."""
    for name, kind in cls.__annotations__.items():
        if kind.startswith("ClassVar"):
            continue
        default = cls.__dict__.get(name, _MISSING)
        own: Any = default if isinstance(default, dataclasses.Field) else field(default=default)
        own.name, own.type, own._field_type = name, kind, _dataclasses._FIELD
        own.kw_only = own.kw_only is True
        if default is not _MISSING and default.__class__.__hash__ is None:
            raise ValueError(f"the default of {cls.__qualname__}.{name} is mutable: use a default_factory")
        if own is default:
            if own.default is _MISSING:
                delattr(cls, name)
            else:
                setattr(cls, name, own.default)
        yield own


def _with_slots(cls: type, names: Iterable[str], asked: _Asked) -> type:
    """The same class made once more, since slots cannot be added to one."""
    content = dict(cls.__dict__)
    inherited = {name for base in cls.__mro__[1:-1] for name in _slots_of(base)}
    slots = tuple(name for name in names if name not in inherited)
    content["__slots__"] = (*slots, "__weakref__") if asked.weakref_slot else slots
    for name in (*names, "__dict__", "__weakref__"):
        content.pop(name, None)
    if asked.frozen:
        content |= {"__getstate__": _state, "__setstate__": _set_state}
    made: Any = type(cls)(cls.__name__, cls.__bases__, content)
    made.__qualname__ = cls.__qualname__
    return made


def _slots_of(cls: type) -> tuple[str, ...]:
    slots = cls.__dict__.get("__slots__", ())
    return (slots,) if isinstance(slots, str) else tuple(slots)


def _write_later(cls: Any, name: str, write: Callable[[Any], Any], *, anew: bool = False) -> None:
    """A method that has itself written when it is first called."""
    if name in cls.__dict__ and not anew:
        return

    def method(*args: Any, **named: Any) -> Any:
        if cls.__dict__.get(name) is method:  # else another thread was first, or somebody holds this one
            setattr(cls, name, write(cls))
        return cls.__dict__[name](*args, **named)

    method.__name__, method.__qualname__ = name, f"{cls.__qualname__}.{name}"
    setattr(cls, name, method)


def _compiled(cls: type, name: str, parameters: str, lines: list[str], **names: Any) -> Any:
    """A method with that head and those lines, as if the standard library had made it."""
    body = "".join(f"\n  {line}" for line in lines or ["pass"])
    scope: dict[str, Any] = {}
    exec(f"def __create_fn__({', '.join(names)}):\n def {name}({parameters}):{body}\n return {name}", {}, scope)
    made = scope["__create_fn__"](**names)
    made.__qualname__ = f"{cls.__qualname__}.{name}"
    return made


def _init(cls: Any) -> Any:
    names: dict[str, Any] = {"_missing": _MISSING}
    positional, named, lines = ["self"], list[str](), list[str]()
    for each in cls.__dataclass_fields__.values():
        name = each.name
        value, parameter = name, name
        if each.default_factory is not _MISSING:
            names[f"_make_{name}"] = each.default_factory
            parameter = f"{name}=_missing"
            value = f"_make_{name}() if {name} is _missing else {name}" if each.init else f"_make_{name}()"
        elif each.default is not _MISSING:
            names[f"_default_{name}"] = each.default
            parameter = f"{name}=_default_{name}"
            value = name if each.init else f"_default_{name}"
        elif not each.init:
            continue
        if each.init:
            (named if each.kw_only else positional).append(parameter)
        if not each.init and each.default is not _MISSING and not cls.__dataclass_params__.slots:
            continue
        lines.append(_setting(cls, name, value, names) if cls.__dataclass_params__.frozen else f"self.{name} = {value}")
    if any(line.startswith("_own[") for line in lines):
        lines.insert(0, "_own = self.__dict__")
    if hasattr(cls, "__post_init__"):
        lines.append("self.__post_init__()")
    return _compiled(cls, "__init__", ", ".join([*positional, *(["*", *named] if named else [])]), lines, **names)


def _setting(cls: type, name: str, value: str, names: dict[str, Any]) -> str:
    """What sets a field of a frozen class, at half the price of `object.__setattr__`, which looks for it first."""
    slot = getattr(cls, name, None)
    if type(slot) is MemberDescriptorType:
        names[f"_set_{name}"] = slot.__set__
        return f"_set_{name}(self, {value})"
    return f"_own[{name!r}] = {value}"


def _eq(cls: Any) -> Any:
    names = [f.name for f in cls.__dataclass_fields__.values() if f.compare]
    mine, others = (f"({''.join(f'{of}.{name}, ' for name in names)})" for of in ("self", "other"))
    lines = ["if other.__class__ is self.__class__:", f" return {mine} == {others}", "return NotImplemented"]
    return _compiled(cls, "__eq__", "self, other", lines)


def _hash(cls: Any) -> Any:
    names = [f.name for f in cls.__dataclass_fields__.values() if (f.compare if f.hash is None else f.hash)]
    return _compiled(cls, "__hash__", "self", [f"return hash(({''.join(f'self.{name}, ' for name in names)}))"])


@recursive_repr()
def _repr(self: Any) -> str:
    shown = (f"{f.name}={getattr(self, f.name)!r}" for f in self.__dataclass_fields__.values() if f.repr)
    return f"{self.__class__.__qualname__}({', '.join(shown)})"


def _refuse_to_set(self: Any, name: str, value: object) -> None:
    if _is_fixed(self, name):
        raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")
    object.__setattr__(self, name, value)


def _refuse_to_delete(self: Any, name: str) -> None:
    if _is_fixed(self, name):
        raise dataclasses.FrozenInstanceError(f"cannot delete field {name!r}")
    object.__delattr__(self, name)


def _is_fixed(self: Any, name: str) -> bool:
    """A plain class that inherits from a frozen one has attributes of its own beside the fields."""
    return "__dataclass_fields__" in type(self).__dict__ or name in self.__dataclass_fields__


def _state(self: Any) -> list[Any]:
    return [getattr(self, name) for name in self.__dataclass_fields__]


def _set_state(self: Any, state: list[Any]) -> None:
    for name, value in zip(self.__dataclass_fields__, state, strict=True):
        object.__setattr__(self, name, value)


__all__ = ["dataclass", "field", "fields", "replace"]
