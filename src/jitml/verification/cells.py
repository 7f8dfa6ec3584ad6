"""Mutable cells: an array, a container, attributes, a generator; how to look at each, and how to put back what was seen."""

from __future__ import annotations

import array
import pickle
import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import CellType, MemberDescriptorType, ModuleType
from typing import Any

import numpy as np

from jitml.device.view import DeviceView, fetch, store
from jitml.records import dataclass
from jitml.trace.record.container_contents import differ
from jitml.trace.record.recording import is_users_class
from jitml.trace.record.references import MISSING, Attributes, Content, Items, References
from jitml.verification.blockwise_comparison import are_same, same_bits, sample

Array = np.ndarray[Any, Any]
Named = Iterable[tuple[str, Any]]


@dataclass(frozen=True, slots=True, eq=False)
class StateCell:
    """One thing that may change.

    Args:
        look: what it holds.
        put: makes it hold something else, that `look` has seen.
        same: whether it holds what was seen.
        parts: what was seen, taken apart, with names as users write them.
        show: what it holds, in its own memory, which will change; None where `look` makes no copy.
        kind: whose attributes it has, if it has some.
    """

    look: Callable[[], Any]
    put: Callable[[Any], None]
    same: Callable[[Any], bool]
    parts: Callable[[Any], Named]
    show: Callable[[], Any] | None = None
    kind: type = object


def of_array(x: Array, name: str) -> StateCell:
    if type(x) is DeviceView:
        return _of_device_memory(x, name)
    plain = x.view(np.ndarray)

    def put(held: Array) -> None:
        if plain.flags.writeable:
            np.copyto(plain, held)

    return StateCell(
        lambda: plain.copy("K"), put, lambda held: same_bits(plain, held), lambda held: [(name, held)], lambda: plain
    )


def _of_device_memory(x: DeviceView, name: str) -> StateCell:
    """Memory of a device, of which each look takes a copy."""

    def put(held: Array) -> None:
        if x.flags.writeable:
            store(x, held)

    return StateCell(lambda: fetch(x), put, lambda held: same_bits(fetch(x), held), lambda held: [(name, held)], lambda: fetch(x))


def of_constant(x: Array, name: str) -> StateCell:
    """A large array that nobody may write: some pages tell whether somebody has."""
    plain, pages = x.view(np.ndarray), sample(x)
    return StateCell(lambda: plain, lambda held: None, lambda held: sample(plain) == pages, lambda held: [(name, held)])


def of_container(x: Any, name: str) -> StateCell:
    """A list, deque, set or dict, or bytes that may change."""

    def parts(held: tuple[Any, ...]) -> Named:
        if isinstance(x, dict):
            return [(name, dict(_pairs(held)))]
        return [(name, held[0] if isinstance(x, (bytearray, array.array)) else set(held) if isinstance(x, set) else list(held))]

    return _of_references(Items(x), parts)


def _of_references(references: References, parts: Callable[[Any], Named]) -> StateCell:
    return StateCell(references.look, references.put, lambda held: not differ(held, references.look()), parts)


def is_found_out(name: str, kind: type) -> bool:
    """Whether an attribute is a library's own, which it sets where it has found out something: programs compute less."""
    return name.rpartition(".")[2].startswith("_") and kind is not object and not is_users_class(kind)


def of_namespace(space: dict[str, Any], kind: type, name: str) -> StateCell:
    """All attributes of an object of a class."""

    def put(held: tuple[Any, ...]) -> None:
        wanted = dict(_pairs(held))
        if list(wanted) != list(space):
            space.clear()
        space.update(wanted)

    def look() -> tuple[Any, ...]:
        return (*space.keys(), *space.values())

    def same(held: tuple[Any, ...]) -> bool:
        now, half = look(), len(held) // 2
        return len(now) == len(held) and now[:half] == held[:half] and are_same(now[half:], held[half:])

    def parts(held: tuple[Any, ...]) -> Named:
        return [(f"{name}.{key}", value) for key, value in _pairs(held)]

    return StateCell(look, put, same, parts, kind=kind)


def of_slots(x: Any, members: Mapping[str, MemberDescriptorType], name: str) -> StateCell:
    """The attributes that an object has slots for."""
    references = Attributes(x, {}, (), tuple(members.values()))
    return _of_references(references, lambda held: [(f"{name}.{key}", value) for key, value in zip(members, held)])


def of_class(cls: type) -> StateCell:
    """A class's own attributes, but for special methods."""

    def look() -> tuple[Any, ...]:
        members = [(key, value) for key, value in [*vars(cls).items()] if not is_special(key)]
        return (*(key for key, _ in members), *(value for _, value in members))

    def put(held: tuple[Any, ...]) -> None:
        wanted = dict(_pairs(held))
        for key in dict(_pairs(look())).keys() - wanted.keys():
            type.__delattr__(cls, key)
        for key, value in wanted.items():
            if vars(cls).get(key, MISSING) is not value:
                type.__setattr__(cls, key, value)

    def same(held: tuple[Any, ...]) -> bool:
        one, other = dict(_pairs(look())), dict(_pairs(held))
        return one.keys() == other.keys() and all(one[key] is other[key] for key in one)

    return StateCell(look, put, same, lambda held: [(f"{cls.__qualname__}.{key}", value) for key, value in _pairs(held)])


def of_names(space: dict[str, Any], keys: Sequence[str], owner: str = "") -> StateCell:
    """Globals, or attributes of a module, of these names."""
    shown = [f"{owner}.{key}" if owner else key for key in keys]
    return _of_references(Attributes(None, space, tuple(keys)), lambda held: zip(shown, held))


def of_module(module: ModuleType, keys: Sequence[str]) -> StateCell:
    return of_names(vars(module), keys, module.__name__)


def of_cell(cell: CellType, name: str) -> StateCell:
    """A variable of a function around."""
    return _of_references(Content(cell), lambda held: [(name, held[0])])


class GeneratorState(bytes):
    """What a generator of random numbers draws next."""


def of_generator(x: Any, name: str) -> StateCell:
    """What a generator of NumPy's or Python's draws next."""

    def look() -> GeneratorState:
        if isinstance(x, random.Random):
            return GeneratorState(pickle.dumps(x.getstate()))
        return GeneratorState(pickle.dumps(x.state if isinstance(x, np.random.BitGenerator) else x.get_state(legacy=False)))

    def put(held: bytes) -> None:
        state = pickle.loads(held)
        if isinstance(x, random.Random):
            x.setstate(state)
        elif isinstance(x, np.random.BitGenerator):
            x.state = state
        else:
            x.set_state(state)

    return StateCell(look, put, lambda held: look() == held, lambda held: [(f"the state of {name}", held)])


def is_special(name: str) -> bool:
    return name[:2] == "__" == name[-2:]


def _pairs(held: tuple[Any, ...]) -> Iterator[tuple[Any, Any]]:
    """Keys and values of a dict of which first the keys were seen, then the values."""
    half = len(held) // 2
    return zip(held[:half], held[half:])
