"""Nested arguments and results: optree's flattening, with dataclasses as containers, and dicts in the order of their keys."""

from __future__ import annotations

import dataclasses
import inspect
import re
from collections import OrderedDict, deque
from collections.abc import Callable, Collection, Iterator, Sequence
from functools import partial
from itertools import chain, islice, repeat
from typing import Any, NamedTuple

import optree

from jitml.diagnostics.tracebacks import entry
from jitml.errors import UnsupportedError
from jitml.trace.record.class_caches import is_local
from jitml.trace.record.recording import current_trace, unsupported


class _Look(NamedTuple):
    """What is in a structure: an OrderedDict, anything by keys or names, a key that is traced."""

    is_ordered: bool
    is_keyed: bool
    is_traced: bool


NAMESPACE = "jitml"
_IN_ORDER = optree.dict_insertion_ordered(True, namespace=NAMESPACE)
_IN_ORDER.__enter__()  # and never left: programs see in which order keys are
_leaf_types: set[type] = set()  # known not to be dataclasses
DATACLASSES: set[type] = set()  # that are known as containers
_nodes: set[type] = set()  # containers of the users' own kinds
_structures: dict[int, tuple[optree.PyTreeSpec, _Look]] = {}  # by their hashes
_MOST_STRUCTURES = 4096
_PLAIN_KEYS = {str, int}
_BY_POSITION = (list, tuple, deque, None)  # None: a leaf
MOST_PARTS = 120_000  # that it takes a second to take apart, and to guard
HOLDS_ITSELF = 1 << 62  # places in a container without end


class Static:
    """An argument that the user declared static: known to the trace, a variant for each value (by `==` and type)."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Static) and type(self.value) is type(other.value) and bool(self.value == other.value)

    def __hash__(self) -> int:
        return hash(self.value)

    def __repr__(self) -> str:
        return repr(self.value)


def flatten(tree: Any, *, none_is_leaf: bool = False) -> tuple[list[Any], optree.PyTreeSpec]:
    """Leaves and structure. None is structure, if it is no leaf; an instance of a dataclass is a container of its fields.

    Where dataclasses hold each other without end (a node and its parent), they are leaves: objects, like those of other classes.
    """
    while True:
        try:
            leaves, spec = optree.tree_flatten(tree, none_is_leaf=none_is_leaf, namespace=NAMESPACE)
        except RecursionError:
            return _with_records_whole(tree, none_is_leaf)
        unknown = set(map(type, leaves)) - _leaf_types
        new = [cls for cls in unknown if dataclasses.is_dataclass(cls)]
        for cls in new:
            _register_dataclass(cls)
        if not new:
            _leaf_types.update(cls for cls in unknown if not is_local(cls))
            return _ordered(tree, none_is_leaf) if _has_ordered(spec) else (leaves, spec)


def _with_records_whole(tree: Any, none_is_leaf: bool) -> tuple[list[Any], optree.PyTreeSpec]:
    try:
        return optree.tree_flatten(tree, is_leaf=holds_itself, none_is_leaf=none_is_leaf, namespace=NAMESPACE)
    except RecursionError:
        unsupported("a container holds itself, or is nested too deep", "Keep what is shared in objects of a class.")


def holds_itself(x: Any) -> bool:
    """Whether a dataclass can be reached from its own fields."""
    if not is_record(x):
        return False
    known, waiting = {id(x)}, [*children(x)[0]]
    while waiting:
        part = waiting.pop()
        if part is x:
            return True
        if id(part) not in known:
            known.add(id(part))
            waiting += children(part)[0]
    return False


def _ordered(tree: Any, none_is_leaf: bool) -> tuple[list[Any], optree.PyTreeSpec]:
    """The same with the keys of each OrderedDict as it goes through them; optree knows them as they came in."""
    return optree.tree_flatten(_in_own_order(tree), none_is_leaf=none_is_leaf, namespace=NAMESPACE)


def _in_own_order(tree: Any) -> Any:
    def made_anew(x: Any) -> Any:
        return OrderedDict((key, _in_own_order(item)) for key, item in x.items()) if type(x) is OrderedDict else x

    return optree.tree_map(made_anew, tree, is_leaf=lambda x: type(x) is OrderedDict, namespace=NAMESPACE)


def _has_ordered(spec: optree.PyTreeSpec) -> bool:
    """Whether there is an OrderedDict in a structure.

    What containers of a class of their own know besides their children does not enter a structure's hash: of those with the same
    one only the last is kept, for a cache would compare each with all.
    """
    return _looked_at(spec).is_ordered


def _looked_at(spec: optree.PyTreeSpec) -> _Look:
    """What is in a structure. One with traced keys is not kept: they would outlive their trace."""
    key = hash(spec)
    known = _structures.get(key)
    if known is not None and not (known[1].is_keyed and current_trace() and _has_traced_key(spec)) and known[0] == spec:
        return known[1]
    inside = [*map(_looked_at, _containers_in(spec))]
    is_keyed = spec.type not in _BY_POSITION or any(look.is_keyed for look in inside)
    is_traced = _has_own_traced_key(spec) or any(look.is_traced for look in inside)
    look = _Look(spec.type is OrderedDict or any(look.is_ordered for look in inside), is_keyed, is_traced)
    if not is_traced:
        if len(_structures) == _MOST_STRUCTURES:
            _structures.clear()
        _structures[key] = spec, look
    return look


def _containers_in(spec: optree.PyTreeSpec) -> list[optree.PyTreeSpec]:
    """The parts of a structure, if there is another container among them: there may be leaves alone, perhaps a million."""
    return spec.children() if spec.num_nodes - spec.num_leaves > 1 else []


def _has_traced_key(spec: optree.PyTreeSpec) -> bool:
    return _has_own_traced_key(spec) or any(map(_has_traced_key, _containers_in(spec)))


def _has_own_traced_key(spec: optree.PyTreeSpec) -> bool:
    keys = () if spec.type in _BY_POSITION else spec.entries()
    return not _PLAIN_KEYS.issuperset(map(type, keys)) and any(map(_is_traced_key, keys))


def _is_traced_key(key: Any) -> bool:
    if isinstance(key, (tuple, frozenset)):
        return any(map(_is_traced_key, key))
    return type(key).__module__.startswith("jitml.")


def _turn(turns: Iterator[bool], _: Any) -> bool:
    return next(turns)


def children(tree: Any) -> tuple[list[Any], optree.PyTreeSpec]:
    """What a container holds itself; nothing of what is none."""
    if type(tree) is OrderedDict:
        tree = OrderedDict(tree.items())
    while True:
        turns = chain((False,), repeat(True))  # not by identity: a list may hold itself
        parts, spec = optree.tree_flatten(tree, is_leaf=partial(_turn, turns), namespace=NAMESPACE)
        if not spec.is_leaf():
            return parts, spec
        if not _is_new_dataclass(type(tree)):
            return [], spec
        _register_dataclass(type(tree))


def places_within(x: Any, known: dict[int, int] | None = None) -> int:
    """How many leaves and containers flattening meets, each as often as it can be reached."""
    if type(x) not in (tuple, list, dict):
        return 1
    known = {} if known is None else known
    if id(x) not in known:
        known[id(x)] = HOLDS_ITSELF
        known[id(x)] = 1 + sum(places_within(part, known) for part in (x.values() if type(x) is dict else x))
    return known[id(x)]


def _is_new_dataclass(cls: type) -> bool:
    return dataclasses.is_dataclass(cls) and cls not in DATACLASSES


def is_own_kind(x: Any) -> bool:
    """Whether this is a container of a kind of the user's, who alone knows what it is made of, but has attributes."""
    return type(x) in _nodes


def flatten_but(tree: Any, whole: Collection[int], *, none_is_leaf: bool = False) -> tuple[list[Any], optree.PyTreeSpec]:
    """The same, with records of these ids as leaves."""
    flatten(tree)  # classes are registered that have not been met
    return optree.tree_flatten(tree, is_leaf=lambda x: id(x) in whole, none_is_leaf=none_is_leaf, namespace=NAMESPACE)


def is_record(x: Any) -> bool:
    """Whether a container has attributes for items: a dataclass, or one of a user's own kind."""
    return is_own_kind(x) or (not isinstance(x, type) and dataclasses.is_dataclass(x))


def first_leaves(tree: Any, most: int) -> list[Any]:
    """The first leaves, each None too, before anything is made of the others; none where containers hold themselves."""
    while True:
        try:
            leaves = [*islice(optree.tree_iter(tree, none_is_leaf=True, namespace=NAMESPACE), most)]
        except RecursionError:  # `flatten` says of what
            return []
        new = [cls for cls in set(map(type, leaves)) if cls not in _leaf_types and _is_new_dataclass(cls)]
        for cls in new:
            _register_dataclass(cls)
        if not new:
            return leaves


def count_leaves(tree: Any, most: int) -> int:
    """How many leaves there are; `most + 1` if there are more than that."""
    return len(first_leaves(tree, most + 1))


def is_countable(tree: Any) -> bool:
    """Whether a list of the parts alone is made soon."""
    return count_leaves(tree, MOST_PARTS) <= MOST_PARTS


def is_nested(spec: optree.PyTreeSpec) -> bool:
    """Whether `(args, kwargs)` of this structure have containers among them."""
    return spec.num_nodes - spec.num_leaves > 3  # more than the tuple of both and those two


def unflatten(spec: optree.PyTreeSpec, leaves: Sequence[Any]) -> Any:
    return optree.tree_unflatten(spec, leaves)


def structure_of(spec: optree.PyTreeSpec) -> str:
    """A structure as users would write it, with a star for each leaf: `{'w': *, 'b': (*, *)}`."""
    return re.sub(r"^PyTreeSpec\((.*?)(, namespace='\w*')?\)$", r"\1", str(spec), flags=re.DOTALL)


def leaf_names(spec: optree.PyTreeSpec, parameters: Sequence[str]) -> list[str]:
    """What users would call each leaf of a flattened `(args, kwargs)`: `x`, `params['w']`, `layers[0]`."""
    names: list[str] = []
    for (which, first, *_), rest in zip(spec.paths(), places_in(spec, 2)):
        base = first if which == 1 else (parameters[first] if first < len(parameters) else f"args[{first}]")
        names.append(f"{base}{rest}")
    return names


def places_in(spec: optree.PyTreeSpec, skipped: int) -> list[str]:
    """Where each leaf is, as users would write it behind a name, from so deep on: `['w'][0].bias`."""
    return ["".join(entry.codify("") for entry in accessor[skipped:]) for accessor in spec.accessors()]


@entry
def register_pytree_node(
    cls: type, flatten_func: Callable[[Any], tuple[Sequence[Any], Any]], unflatten_func: Callable[[Any, Sequence[Any]], Any]
) -> None:
    """Make a class known as a container, as tuples and dicts are: `jit` and all transforms then look at the arrays in it.

    Dataclasses and namedtuples are containers already, and so is what is registered with optree for all of its users.

    Args:
        flatten_func: an instance -> (its children, the rest of it: anything that compares by ==).
        unflatten_func: the rest, new children -> an instance.

    Raises:
        ValueError: the class is a container already.

    >>> import jitml
    >>> class Interval:
    ...     def __init__(self, low, high):
    ...         self.low, self.high = low, high
    >>> jitml.register_pytree_node(Interval, lambda i: ((i.low, i.high), None), lambda _, ends: Interval(*ends))
    >>> slope = jitml.grad(lambda i: i.high**2 - i.low)(Interval(1.0, 2.0))
    >>> slope.low, slope.high
    (np.float64(-1.0), np.float64(4.0))
    """

    def split(instance: Any) -> tuple[Sequence[Any], Any]:
        children, rest = flatten_func(instance)
        return tuple(children), rest

    optree.register_pytree_node(cls, split, unflatten_func, namespace=NAMESPACE)  # type: ignore[arg-type]  # any class will do
    if not issubclass(cls, (list, tuple, dict, deque)):
        _nodes.add(cls)


def _slice_of(_: None, bounds: Sequence[Any]) -> slice:
    return slice(*bounds)


# What is computed may be a bound: then the slice is a new one at each call, and in each way that a region takes.
_BOUNDS = ("start", "stop", "step")
_REGISTER: Any = optree.register_pytree_node  # whose stubs ask for a collection
_REGISTER(
    slice,
    lambda x: ((x.start, x.stop, x.step), None, _BOUNDS),
    _slice_of,
    path_entry_type=optree.GetAttrEntry,
    namespace=NAMESPACE,
)


def _register_dataclass(cls: type) -> None:
    DATACLASSES.add(cls)
    names = tuple(f.name for f in dataclasses.fields(cls))
    absent = object()
    defaults = {name: inspect.getattr_static(cls, name, absent) for name in names}
    # Of these, getattr finds what the class has where the instance has none.
    shown_by_class = frozenset(name for name, x in defaults.items() if x is not absent and not hasattr(type(x), "__set__"))

    def split(instance: Any) -> tuple[list[Any], None, tuple[str, ...]]:
        try:
            if shown_by_class and not shown_by_class <= vars(instance).keys():
                raise AttributeError(", ".join(sorted(shown_by_class - vars(instance).keys())))
            return [getattr(instance, name) for name in names], None, names
        except AttributeError as error:
            raise UnsupportedError(f"a {cls.__qualname__} lacks a field: {error}", remedy="Set it to None instead.") from error

    def join(_: None, values: Sequence[Any]) -> Any:
        instance: Any = object.__new__(cls)
        for name, value in zip(names, values):
            object.__setattr__(instance, name, value)
        return instance

    unflatten_one: Callable[..., Any] = join
    optree.register_pytree_node(cls, split, unflatten_one, namespace=NAMESPACE)
