"""Write-back: what becomes of a list, a dict or an object from outside that the function changes?

It changes after the call has succeeded.

The function gets copies of the caller's lists, dicts, dataclasses and registered containers, and of those that it finds in
globals, closures and attributes; what it has done to a copy shows when it is compared with what was in it (`TrackedCopy`). An
object's attributes are kept apart while the function is traced (`Trace.stored`). What is new comes out as further results, and
is put where it belongs.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Sequence
from functools import partial
from operator import getitem
from typing import Any

from jitml.errors import JitmlError, UnsupportedError, UserFrame
from jitml.records import dataclass
from jitml.trace.carried.outer_lists import OpenList
from jitml.trace.effects.attribute_stores import held_value
from jitml.trace.environment.class_guards import require_class
from jitml.trace.environment.equality_guards import require_form
from jitml.trace.environment.guarded_loads import load, observe, observe_factory, observe_keys, require_unset, with_items
from jitml.trace.environment.tracked_copies import Loads, TrackedCopy, entries, watch_copy
from jitml.trace.record.container_contents import kind_of_container, to_load
from jitml.trace.record.guards import Slot
from jitml.trace.record.object_state import CONTAINERS
from jitml.trace.record.parts import CallPart
from jitml.trace.record.pytree import flatten, is_own_kind, is_record
from jitml.trace.record.recording import Trace, user_source
from jitml.trace.record.state import TrackedContainer
from jitml.trace.record.user_code import about, base_name
from jitml.trace.speculation.modes import Decisions
from jitml.trace.values.boxing import is_traced
from jitml.trace.values.text import plain_key

_INSTEAD = "Return the new value instead."


@dataclass(frozen=True)
class Sealed:
    """A copy of a container that the function may not change: what is raised if it does, and the copy's leaves."""

    error: JitmlError
    copied: object
    leaves: Sequence[object]


class SealedCopies(list[Sealed], CallPart):
    """Those of a call."""


@dataclass(frozen=True)
class Change:
    """New contents of a container or new attributes of an object: `put(target, values)`."""

    slot: Slot
    put: Callable[[Any, Sequence[Any]], None]


def watch_arguments(trace: Trace, root: Slot, given: Any, copied: Any, names: Sequence[str]) -> Any:
    """Watch all containers among the arguments.

    Args:
        root: the slot of `(args, kwargs)`, which is `given`; `copied` is its copy.

    Returns:
        What the function gets: the copy, in which lists that loops append to are open.
    """
    copies: tuple[dict[Any, Any], dict[Any, Any]] = (dict(enumerate(copied[0])), dict(copied[1]))
    for which in (0, 1):
        find = partial(load, trace, getitem, root, which, "arguments")
        for key, original in entries(given[which]):
            name = names[key] if which == 0 and key < len(names) else str(key)
            find_part = partial(_part, trace, find, getitem, key, name)
            with about(name):
                copies[which][key] = _watch(trace, find_part, original, copied[which][key], name)
    return (*copies[0].values(),), copies[1]


def _part(trace: Trace, find: Callable[[], Slot], function: Callable[..., Any], key: Any, name: str) -> Slot:
    return load(trace, function, find(), key, name)


def _watch(trace: Trace, find: Callable[[], Slot], original: Any, copied: Any, name: str) -> Any:
    if copied is None or is_traced(copied):
        return copied
    leaves, _ = flatten(copied)
    if any(leaf is copied for leaf in leaves):
        return copied
    if not (is_record(original) or isinstance(original, (list, dict, deque, tuple))) or type(original) is not type(copied):
        message = f"the function changes an argument, a {type(copied).__qualname__}"
        # Of a kind of the user's, which only its own functions know.
        error = UnsupportedError(message, source=user_source(), remedy=_INSTEAD)
        error.argument = base_name(name)
        trace.call[SealedCopies].append(Sealed(error, copied, leaves))
        return copied
    require_class(trace, type(original))
    if isinstance(original, dict):
        observe_keys(trace, original, name)
        require_form(trace, original, find, name)
    given = dict(entries(copied))
    opened: dict[Any, Any] = {}
    there = entries(original)
    if is_record(original):  # what has built the copy may set what the caller has deleted
        for key in given.keys() - dict(there).keys():
            require_unset(trace, find(), key)
            object.__delattr__(copied, key)
    for key, other in there:
        function, text = getattr if is_record(original) else to_load(original), _name_of_item(original, name, key)
        part = partial(_part, trace, find, function, key, text)
        if key not in given:  # an attribute that is none of a dataclass's fields
            object.__setattr__(copied, key, observe(trace, other, part(), text))
            continue
        is_made_up = is_own_kind(original) and not any(map(is_traced, flatten(given[key])[0]))
        seen = observe(trace, other, part(), text) if is_made_up else _watch(trace, part, other, given[key], text)
        if seen is not given[key]:
            opened[key] = seen
    if opened and is_record(original):
        for key, seen in opened.items():
            object.__setattr__(copied, key, seen)
    elif opened:
        copied = with_items(copied, [*{**given, **opened}.items()])
    known = trace.call[Decisions]
    if type(original) is list and name in known.moving - known.closed:
        copied = OpenList(trace, None, name, original, copied.__getitem__)
    if isinstance(copied, defaultdict):
        observe_factory(trace, copied, find, name)
    if not isinstance(original, tuple):
        before = () if type(copied) is OpenList else entries(copied)
        watch_copy(trace, TrackedCopy(copied, original, find, name, before))
    return copied


def _name_of_item(container: Any, name: str, key: Any) -> str:
    return f"{name}.{key}" if is_record(container) else f"{name}[{key!r}]"


def check_sealed(trace: Trace) -> None:
    """The function got copies of containers, of the user's own kinds: what it did to them would be lost."""
    for sealed in trace.call[SealedCopies]:
        after, _ = flatten(sealed.copied)
        if len(after) != len(sealed.leaves) or any(a is not b for a, b in zip(after, sealed.leaves)):
            raise sealed.error


def changes_of(trace: Trace) -> tuple[list[Change], list[Any]]:
    """What the function has changed, and the values that are new, for each change.

    Raises:
        UnsupportedError: what is changed can be reached in another way as well, or holds what compiled code cannot make.
    """
    changes: list[Change] = []
    values: list[Any] = []
    moving: set[str] = set()
    changed: list[TrackedContainer] = []
    for watched in list(trace.copies.watched.values()):
        with about(watched.name):
            _require_same_state(watched)
            found = _difference(watched)
        if found is not None:
            put, new, numbers = found
            changed.append(watched)
            moving |= {_name_of_item(watched.original, watched.name, key) for key in numbers}
            if isinstance(put, _Extend) or (isinstance(put, _SetSequence) and put.only_grows):
                moving.add(watched.name)
            changes.append(Change(watched.find(), put))
            values.append(new)
    require_alone(trace, changed)
    guarded = trace.call[Loads].guarded
    stored: dict[int, dict[str, Any]] = {}
    for owner, name in trace.changes.stored:
        stored.setdefault(owner, {})[name] = held_value(trace.changes.stored, (owner, name), is_end=True)
    for owner, named in stored.items():
        slot = trace.outside.places[owner]
        bound = {f"{trace.host.name(slot)}.{name}" for name in named}
        moving |= bound | {name for name in guarded if name.startswith(tuple(x + mark for x in bound for mark in ".["))}
        changes.append(Change(slot, SetAttributes(tuple(named))))
        values.append([*named.values()])
    if not guarded.isdisjoint(moving):  # what is another one at each call is no reason to compile again
        trace.call[Decisions].moving |= moving
        trace.call[Decisions].again()
    return changes, values


def stack_of_change(trace: Trace, change: Change, n: int) -> tuple[UserFrame, ...]:
    """Where the value was stored that is the one of this number in a change, if it is an attribute's."""
    names = change.put.names if isinstance(change.put, SetAttributes) else ()
    found = ((owner, names[n]) for owner, slot in trace.outside.places.items() if slot == change.slot and n < len(names))
    return next((trace.changes.stacks[key] for key in found if key in trace.changes.stacks), ())


def _require_same_state(watched: TrackedContainer) -> None:
    """The attributes of a list or dict of the user's own class are not watched."""
    if type(watched.copy) is OpenList or not isinstance(watched.copy, CONTAINERS):
        return
    before, after = (getattr(x, "__dict__", {}) for x in (watched.original, watched.copy))
    if before.keys() != after.keys() or any(after[key] is not before[key] for key in after):
        raise UnsupportedError(
            f"the function changes an attribute of {watched.name}, a {type(watched.copy).__qualname__}",
            source=user_source(),
            remedy=_INSTEAD,
        )


def _difference(watched: TrackedContainer) -> tuple[Callable[[Any, Sequence[Any]], None], list[Any], list[Any]] | None:
    """How the caller's own becomes like the copy, the values that this takes, and keys of numbers that are replaced."""
    if not watched.is_changed():
        return None
    if type(watched.copy) is OpenList:
        return _Extend(), [part for part in watched.copy.parts if type(part) is not list or part], []
    before, after = watched.before, entries(watched.copy)
    known = dict(before)
    new = [(key, item) for key, item in after if key not in known or item is not known[key]]
    replaced = [key for key, _ in new if key in known]
    if is_record(watched.copy):
        if [key for key, _ in after[: len(before)]] != [key for key, _ in before]:
            message = f"the function deletes an attribute of {watched.name}, a {type(watched.copy).__qualname__}"
            raise UnsupportedError(message, source=user_source(), remedy="Set it to None instead.")
        return SetAttributes(tuple(key for key, _ in new)), [item for _, item in new], replaced
    if isinstance(watched.copy, dict):
        kept = {key for key, _ in after} - {key for key, _ in new}
        order = [key for key, _ in before if key in dict(after)] + [key for key, _ in new if key not in known]
        keys = tuple(plain_key(key) for key, _ in after)
        is_in_order = order == [key for key, _ in after]
        return _SetItems(keys, tuple(key in kept for key, _ in after), is_in_order), [item for _, item in new], replaced
    places = [place if place < len(before) and item is before[place][1] else None for place, item in after]
    return _SetSequence(len(before), tuple(places)), [item for _, item in new], replaced


@dataclass(frozen=True)
class SetAttributes:
    """An object gets these attributes; its own `__setattr__` has had its say while the function was traced."""

    names: tuple[str, ...]

    def __call__(self, target: Any, values: Sequence[Any]) -> None:
        for name, value in zip(self.names, values):
            object.__setattr__(target, name, value)


@dataclass(frozen=True)
class _SetItems:
    """A dict gets these keys; those that are kept have the items that they have."""

    keys: tuple[Any, ...]
    kept: tuple[bool, ...]
    is_in_order: bool

    def __call__(self, target: Any, values: Sequence[Any]) -> None:
        given, kind = iter(values), kind_of_container(target)
        items = {key: kind.__getitem__(target, key) if is_kept else next(given) for key, is_kept in zip(self.keys, self.kept)}
        if not self.is_in_order:
            kind.clear(target)
        for key in [key for key in kind.__iter__(target) if key not in items]:
            kind.__delitem__(target, key)
        for (key, item), is_kept in zip(items.items(), self.kept):
            if not (is_kept and self.is_in_order):
                kind.__setitem__(target, key, item)


@dataclass(frozen=True)
class _SetSequence:
    """A list or deque of `length` items gets others: its own, from these places, and new ones."""

    length: int
    places: tuple[int | None, ...]

    @property
    def only_grows(self) -> bool:
        return self.places[: self.length] == tuple(range(self.length))

    def __call__(self, target: Any, values: Sequence[Any]) -> None:
        kind = kind_of_container(target)
        if self.only_grows:
            kind.extend(target, values)
            return
        given, own = iter(values), list(kind.__iter__(target))
        items = [next(given) if place is None else own[place] for place in self.places]
        kind.clear(target)
        kind.extend(target, items)


@dataclass(frozen=True)
class _Extend:
    """A list gets further items, all that are in others."""

    def __call__(self, target: Any, values: Sequence[Any]) -> None:
        for items in values:
            list.extend(target, items)


def require_alone(trace: Trace, changed: Sequence[TrackedContainer]) -> None:
    """Nothing else that the function has got is one of these very containers: its copy would not have changed."""
    mine = {id(watched.original): watched for watched in changed}
    others = [watched for watched in trace.copies.watched.values() if mine.get(id(watched.original)) is not watched]
    for other in others:
        if (known := mine.get(id(other.original))) is not None:
            with about(known.name):
                raise UnsupportedError(
                    f"{known.name} is changed, and {other.name} is the same {type(known.original).__name__}",
                    source=user_source(),
                    remedy=_INSTEAD,
                )
    for kind in dict.fromkeys(type(watched.original) for watched in changed):
        alike = [[x.find() for x in some if type(x.original) is kind] for some in (changed, others)]
        trace.host.require_alone(*alike)
