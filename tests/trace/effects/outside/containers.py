"""Containers from outside."""

# ruff: noqa  # code as people write it, odd code too
# mypy: ignore-errors

from __future__ import annotations

import array
import bisect
import collections
import contextlib
import functools
import heapq
import operator
import random

import numpy as np
from tests.trace.effects.outside.rows import ROWS, Plain


def _container_row(label, make, change):
    def made():
        box = make()

        def act(v):
            return change(box, v)

        return act, lambda: box

    made.__name__ = label
    ROWS.append(made)


def _set(d, v):
    d["a"] = v


def _set_one(d, v):
    d["a"] = 1


def _set_zero(d, v):
    d[0] = v


def _del_a(d, v):
    if "a" in d:
        del d["a"]


def _del_0(d, v):
    if len(d) > 1:
        del d[0]


def _del_slice(d, v):
    del d[:1]


def _set_slice(d, v):
    d[:1] = [v, 2]


def _aug(d, v):
    d[0] += v


def _grow(d, v):
    d += [v]


def _grow_set(d, v):
    d |= {3}


def _times(d, v):
    d *= 2


def _operator_delitem(d, v):
    if "a" in d:
        operator.delitem(d, "a")


def _reinit(d, v):
    list.__init__(d, [9])


def _unpack_into(d, v):
    d[0], _ = v, 1


def _for_into(d, v):
    for d[0] in (v, 2.0):
        pass


def _with_into(d, v):
    with contextlib.nullcontext(v) as d[0]:
        pass


def _star_into(d, v):
    *d[0], b = (1, 2, 3)


def _walk(d, v):
    return sum(d.pop() for _ in range(min(1, len(d)))) + v


def _swap(d, v):
    d[0], d[1] = d[1], d[0]


LIST = lambda: [1.0, 2.0, 3.0]
DICT = lambda: {"a": 1.0, "b": 2.0}
for label, make, change in [
    ("list_append", LIST, lambda d, v: d.append(v)),
    ("list_append_constant", LIST, lambda d, v: d.append(1)),
    ("list_unbound_append", LIST, lambda d, v: list.append(d, v)),
    ("list_extend", LIST, lambda d, v: d.extend([v, 1])),
    ("list_insert", LIST, lambda d, v: d.insert(0, v)),
    ("list_pop", LIST, lambda d, v: (d.pop() if d else 0) + v),
    ("list_remove", LIST, lambda d, v: d.remove(1.0) if 1.0 in d else None),
    ("list_clear", LIST, lambda d, v: d.clear()),
    ("list_sort", lambda: [3, 1, 2], lambda d, v: d.sort()),
    ("list_unbound_sort", lambda: [3, 1, 2], lambda d, v: list.sort(d)),
    ("list_reverse", LIST, lambda d, v: d.reverse()),
    ("list_setitem", LIST, _set_zero),
    ("list_dunder_setitem", LIST, lambda d, v: d.__setitem__(0, v)),
    ("list_unbound_setitem", LIST, lambda d, v: list.__setitem__(d, 0, v)),
    ("list_delitem", LIST, _del_0),
    ("list_del_slice", LIST, _del_slice),
    ("list_set_slice", LIST, _set_slice),
    ("list_augmented_item", LIST, _aug),
    ("list_iadd", LIST, _grow),
    ("list_dunder_iadd", LIST, lambda d, v: d.__iadd__([v]) and None),
    ("list_imul", lambda: [1.0], _times),
    ("list_init", LIST, _reinit),
    ("list_bound_init", LIST, lambda d, v: d.__init__([9])),
    ("list_operator_setitem", LIST, lambda d, v: operator.setitem(d, 0, v)),
    ("list_operator_delitem", LIST, lambda d, v: operator.delitem(d, 0) if d else None),
    ("list_operator_iconcat", LIST, lambda d, v: operator.iconcat(d, [v]) and None),
    ("list_operator_imul", lambda: [1.0], lambda d, v: operator.imul(d, 2) and None),
    ("list_methodcaller", LIST, lambda d, v: operator.methodcaller("append", v)(d)),
    ("list_methodcaller_clear", LIST, lambda d, v: operator.methodcaller("clear")(d)),
    ("list_partial", LIST, lambda d, v: functools.partial(d.append, v)()),
    ("list_partial_unbound", LIST, lambda d, v: functools.partial(list.append, d)(v)),
    ("list_map", LIST, lambda d, v: list(map(d.append, [1])) and None),
    ("list_map_method", LIST, lambda d, v: list(map(list.pop, [d])) and None),
    ("list_reduce", LIST, lambda d, v: functools.reduce(lambda a, b: a.append(b) or a, [1, 2], d) and None),
    ("list_comprehension", LIST, lambda d, v: [d.append(i) for i in range(2)] and None),
    ("list_getattr", LIST, lambda d, v: getattr(d, "append")(v)),
    ("list_attrgetter", LIST, lambda d, v: operator.attrgetter("append")(d)(v)),
    ("list_unpack_into", LIST, _unpack_into),
    ("list_for_into", LIST, _for_into),
    ("list_with_into", LIST, _with_into),
    ("list_star_into", LIST, _star_into),
    ("list_swap", LIST, _swap),
    ("list_heappush", LIST, lambda d, v: heapq.heappush(d, 0.5)),
    ("list_heapify", lambda: [3, 1, 2], lambda d, v: heapq.heapify(d)),
    ("list_insort", LIST, lambda d, v: bisect.insort(d, 1.5)),
    ("list_shuffle", LIST, lambda d, v: random.Random(0).shuffle(d)),
    ("list_np_shuffle", LIST, lambda d, v: np.random.default_rng(0).shuffle(d)),
    ("list_in_list", lambda: [[1.0], 2], lambda d, v: d[0].append(v)),
    ("list_sort_key", lambda: [3, 1, 2], lambda d, v: d.sort(key=lambda y: -y)),
    ("list_iter_remove", LIST, lambda d, v: [d.remove(y) for y in list(d) if y > 2] and None),
    ("dict_setitem", DICT, _set),
    ("dict_set_constant", DICT, _set_one),
    ("dict_unbound_setitem", DICT, lambda d, v: dict.__setitem__(d, "a", v)),
    ("dict_delitem", DICT, _del_a),
    ("dict_operator_delitem", DICT, _operator_delitem),
    ("dict_update", DICT, lambda d, v: d.update(a=v)),
    ("dict_unbound_update", DICT, lambda d, v: dict.update(d, a=v)),
    ("dict_methodcaller_update", DICT, lambda d, v: operator.methodcaller("update", a=1)(d)),
    ("dict_ior", DICT, lambda d, v: operator.ior(d, {"a": 5}) and None),
    ("dict_init", DICT, lambda d, v: dict.__init__(d, c=3)),
    ("dict_bound_init", DICT, lambda d, v: d.__init__(c=3)),
    ("dict_setdefault", DICT, lambda d, v: d.setdefault("c", 4.0) + v),
    ("dict_setdefault_traced", DICT, lambda d, v: d.setdefault("c", v) + v),
    ("dict_unbound_setdefault", DICT, lambda d, v: dict.setdefault(d, "c", 4.0) + v),
    ("dict_pop", DICT, lambda d, v: d.pop("a", 0.0) + v),
    ("dict_popitem", DICT, lambda d, v: d.popitem()[1] + v if d else v),
    ("dict_clear", DICT, lambda d, v: d.clear()),
    ("dict_in_dict", lambda: {"a": {"b": 1.0}}, lambda d, v: d["a"].update(b=v)),
    ("dict_values_sorted", lambda: {"a": [3, 1]}, lambda d, v: [y.sort() for y in d.values()] and None),
    ("defaultdict_read", lambda: collections.defaultdict(lambda: 2.0), lambda d, v: d["a"] + v),
    ("defaultdict_list", lambda: collections.defaultdict(list), lambda d, v: d["a"].append(v)),
    ("defaultdict_getitem", lambda: collections.defaultdict(lambda: 2.0), lambda d, v: d.__getitem__("a") + v),
    ("defaultdict_operator", lambda: collections.defaultdict(lambda: 2.0), lambda d, v: operator.getitem(d, "a") + v),
    ("defaultdict_itemgetter", lambda: collections.defaultdict(lambda: 2.0), lambda d, v: operator.itemgetter("a")(d) + v),
    ("defaultdict_map", lambda: collections.defaultdict(lambda: 2.0), lambda d, v: sum(map(d.__getitem__, "ab")) + v),
    ("defaultdict_format", lambda: collections.defaultdict(lambda: 2.0), lambda d, v: len("{0[a]}".format(d)) + v),
    ("defaultdict_format_map", lambda: collections.defaultdict(lambda: 2.0), lambda d, v: len("{a}".format_map(d)) + v),
    ("defaultdict_percent", lambda: collections.defaultdict(lambda: 2.0), lambda d, v: len("%(a)s" % d) + v),
    ("counter_update", collections.Counter, lambda d, v: d.update("ab")),
    ("counter_add", collections.Counter, lambda d, v: operator.setitem(d, "a", d["a"] + 1)),
    ("counter_subtract", lambda: collections.Counter("aab"), lambda d, v: d.subtract("a")),
    ("ordered_move", lambda: collections.OrderedDict(a=1, b=2), lambda d, v: d.move_to_end("a")),
    ("ordered_pop", lambda: collections.OrderedDict(a=1, b=2), lambda d, v: d.popitem(last=False) and None if d else None),
    ("chain_map", lambda: collections.ChainMap({}, {"a": 1.0}), _set),
    ("chain_map_read", lambda: collections.ChainMap({}, {"a": 1.0}), lambda d, v: d["a"] + v),
    ("user_dict", lambda: collections.UserDict(a=1.0), _set),
    ("user_list", lambda: collections.UserList([1.0]), lambda d, v: d.append(v)),
    ("user_list_set", lambda: collections.UserList([1.0]), _set_zero),
    ("deque_append", lambda: collections.deque([1.0], maxlen=2), lambda d, v: d.append(v)),
    ("deque_left", lambda: collections.deque([1.0, 2.0]), lambda d, v: d.appendleft(1)),
    ("deque_pop", lambda: collections.deque([1.0, 2.0]), lambda d, v: d.popleft() + v if d else v),
    ("deque_rotate", lambda: collections.deque([1.0, 2.0]), lambda d, v: d.rotate(1)),
    ("deque_unbound", lambda: collections.deque([1.0, 2.0]), lambda d, v: collections.deque.rotate(d, 1)),
    ("deque_set", lambda: collections.deque([1.0, 2.0]), _set_zero),
    ("deque_init", lambda: collections.deque([1.0, 2.0]), lambda d, v: d.__init__([5])),
    ("set_add", lambda: {1, 2}, lambda d, v: d.add(3)),
    ("set_unbound_add", lambda: {1, 2}, lambda d, v: set.add(d, 3)),
    ("set_discard", lambda: {1, 2}, lambda d, v: d.discard(1)),
    ("set_pop", lambda: {1, 2}, lambda d, v: d.pop() + v if d else v),
    ("set_update", lambda: {1, 2}, lambda d, v: d.update([3])),
    ("set_ior", lambda: {1, 2}, _grow_set),
    ("set_operator_ior", lambda: {1, 2}, lambda d, v: operator.ior(d, {3}) and None),
    ("set_init", lambda: {1, 2}, lambda d, v: d.__init__([5])),
    ("set_methodcaller", lambda: {1, 2}, lambda d, v: operator.methodcaller("add", 3)(d)),
    ("set_difference_update", lambda: {1, 2}, lambda d, v: d.difference_update([1])),
    ("bytearray_append", lambda: bytearray(b"ab"), lambda d, v: d.append(1)),
    ("bytearray_set", lambda: bytearray(b"ab"), lambda d, v: operator.setitem(d, 0, 1)),
    ("bytearray_init", lambda: bytearray(b"ab"), lambda d, v: d.__init__(b"c")),
    ("memoryview_set", lambda: memoryview(bytearray(b"ab")), lambda d, v: operator.setitem(d, 0, 1)),
    ("array_append", lambda: array.array("d", [1.0, 2.0]), lambda d, v: d.append(3.0)),
    ("array_set", lambda: array.array("d", [1.0, 2.0]), lambda d, v: operator.setitem(d, 0, 7.0)),
    ("array_byteswap", lambda: array.array("d", [1.0, 2.0]), lambda d, v: d.byteswap()),
    ("array_unbound_byteswap", lambda: array.array("d", [1.0, 2.0]), lambda d, v: array.array.byteswap(d)),
    ("tuple_of_list", lambda: ([1.0], 2), lambda d, v: d[0].append(v)),
    ("attribute_list", Plain, lambda d, v: d.items.append(v)),
    ("attribute_array", Plain, lambda d, v: operator.iadd(d.w, v) is None or None),
    ("attribute_array_item", Plain, lambda d, v: operator.setitem(d.w, 0, v)),
    ("array_fill", lambda: np.zeros(2), lambda d, v: d.fill(v)),
    ("array_out", lambda: np.zeros(1), lambda d, v: np.add(v, 1, out=d) is None or None),
    ("array_object", lambda: np.array([None, 1], dtype=object), lambda d, v: operator.setitem(d, 0, 2)),
    ("array_flags", lambda: np.zeros(2), lambda d, v: d.setflags(write=False)),
    ("array_of_names", lambda: np.zeros(2, dtype=[("a", float)]), lambda d, v: operator.setitem(d["a"], 0, 1.0)),
]:
    _container_row(label, make, change)
