"""Things that Python code does to what others see, one kind a row: `(act, state)`, made anew for each run.

`act(v)` does it, given a number of NumPy's, and may return one; `state()` says what others see of it.
"""

# ruff: noqa  # code as people write it, odd code too
# mypy: ignore-errors

from __future__ import annotations

import array
import bisect
import collections
import contextlib
import copy
import functools
import heapq
import io
import itertools
import operator
import queue
import random
import time
import weakref
from dataclasses import dataclass, field
from types import SimpleNamespace

import numpy as np

ROWS = []


def row(make):
    ROWS.append(make)
    return make


class Plain:
    def __init__(self):
        self.n = 0
        self.w = np.zeros(2)
        self.items = []


# Special methods that Python calls itself


def _special_row(label, use, **methods):
    def make():
        class Counting:
            def __init__(self):
                self.count = 0

        for name, method in methods.items():
            setattr(Counting, name, method)
        obj = Counting()

        def act(v):
            return use(obj, v)

        return act, lambda: object.__getattribute__(obj, "count")

    make.__name__ = label
    ROWS.append(make)


def counted_len(self):
    self.count += 1
    return 3


def counted_contains(self, v):
    self.count += 1
    return True


def counted_add(self, v):
    self.count += 1
    return v + 1


def counted_eq(self, v):
    self.count += 1
    return True


def counted_true(self):
    self.count += 1
    return True


def counted_iter(self):
    self.count += 1
    return iter([1, 2])


def counted_next(self):
    self.count += 1
    return 1


def counted_float(self):
    self.count += 1
    return 2.0


def counted_int(self):
    self.count += 1
    return 2


def counted_hash(self):
    self.count += 1
    return 5


def counted_one(self, v):
    self.count += 1
    return 3


def counted_none(self, *v):
    self.count += 1


def counted_self(self, *v):
    self.count += 1
    return self


def counted_array(self, dtype=None, copy=None):
    self.count += 1
    return np.ones(1)


def counted_bool(self, v):
    self.count += 1
    return True


def counted_str(self):
    self.count += 1
    return "s"


def counted_format(self, spec):
    self.count += 1
    return "s"


def counted_getattr(self, name):
    self.count += 1
    return 2.0


def counted_getattribute(self, name):
    n = object.__getattribute__(self, "count")
    object.__setattr__(self, "count", n + 1)
    return object.__getattribute__(self, name)


def counted_setattr(self, name, value):
    object.__setattr__(self, name, value)
    if name != "count":
        object.__setattr__(self, "count", self.count + 1)


def counted_delattr(self, name):
    self.count += 1
    object.__delattr__(self, name)


def in_set(o, v):
    return 1.0 if o in {1, 2} else 2.0


def as_key(o, v):
    d = {}
    d[o] = v
    return v


def go(o, v):
    s = 0.0
    for y in o:
        s += y
    return s


def unpack(o, v):
    a, b = o
    return a + b + v


def with_it(o, v):
    with o:
        v = v + 1
    return v


def set_w(o, v):
    o.w = v


def aug_w(o, v):
    o.count += v


def del_w(o, v):
    o.w = 1.0
    del o.w


def del_item(o, v):
    del o[0]


def iadd(o, v):
    o += 1
    return v


def chained(o, v):
    return v if 0 < o < 5 else -v


def branch_on(o, v):
    if o:
        return v
    return -v


def not_it(o, v):
    return v if not o else -v


def or_it(o, v):
    return (o and 2.0) * v


def match_it(o, v):
    match o:
        case [a, b]:
            return a + b + v
    return v


_special_row("len_of_an_object", lambda o, v: len(o) + v, __len__=counted_len)
_special_row("in_an_object", lambda o, v: (3 in o) + v, __contains__=counted_contains)
_special_row("traced_in_an_object", lambda o, v: (v in o) + v, __contains__=counted_contains)
_special_row("object_plus_one", lambda o, v: o + 1, __add__=counted_add)
_special_row("object_plus_traced", lambda o, v: o + v, __add__=counted_add)
_special_row("one_plus_object", lambda o, v: 1 + o, __radd__=counted_add)
_special_row("traced_plus_object", lambda o, v: v + o, __radd__=counted_add, __array_ufunc__=None)
_special_row("object_equals", lambda o, v: (o == 1) + v, __eq__=counted_eq)
_special_row("object_is_less", lambda o, v: (o < 1) + v, __lt__=counted_bool)
_special_row("object_is_less_chained", chained, __lt__=counted_bool, __gt__=counted_bool)
_special_row("truth_of_an_object", branch_on, __bool__=counted_true)
_special_row("truth_by_len", branch_on, __len__=counted_len)
_special_row("not_of_an_object", not_it, __bool__=counted_true)
_special_row("and_of_an_object", or_it, __bool__=counted_true)
_special_row("bool_of_an_object", lambda o, v: bool(o) * v, __bool__=counted_true)
_special_row("for_over_an_object", go, __iter__=counted_iter)
_special_row("sum_of_an_object", lambda o, v: sum(o) + v, __iter__=counted_iter)
_special_row("list_of_an_object", lambda o, v: list(o)[0] + v, __iter__=counted_iter)
_special_row("unpack_an_object", unpack, __iter__=counted_iter)
_special_row("star_an_object", lambda o, v: max(*o, 3) + v, __iter__=counted_iter)
_special_row("comprehend_an_object", lambda o, v: sum([y * v for y in o]), __iter__=counted_iter)
_special_row("next_of_an_object", lambda o, v: next(o) + v, __next__=counted_next)
_special_row("zip_of_an_object", lambda o, v: [a for a, _ in zip(o, (1, 2))][0] + v, __iter__=counted_iter)
_special_row("float_of_an_object", lambda o, v: float(o) + v, __float__=counted_float)
_special_row("int_of_an_object", lambda o, v: int(o) + v, __int__=counted_int)
_special_row("index_of_an_object", lambda o, v: [1, 2, 3][o] + v, __index__=counted_int)
_special_row("range_of_an_object", lambda o, v: len(range(o)) + v, __index__=counted_int)
_special_row("abs_of_an_object", lambda o, v: abs(o) + v, __abs__=counted_float)
_special_row("minus_an_object", lambda o, v: -o + v, __neg__=counted_float)
_special_row("round_an_object", lambda o, v: round(o) + v, __round__=counted_int)
_special_row("hash_of_an_object", lambda o, v: hash(o) + v, __hash__=counted_hash)
_special_row("object_in_a_set", in_set, __hash__=counted_hash)
_special_row("object_as_a_key", as_key, __hash__=counted_hash)
_special_row("item_of_an_object", lambda o, v: o[0] + v, __getitem__=counted_one)
_special_row("item_by_operator", lambda o, v: operator.getitem(o, 0) + v, __getitem__=counted_one)
_special_row("call_an_object", lambda o, v: o(v) + v, __call__=counted_one)
_special_row("array_of_an_object", lambda o, v: np.asarray(o)[0] + v, __array__=counted_array)
_special_row("ufunc_of_an_object", lambda o, v: np.multiply(o, v)[0], __array__=counted_array)
_special_row("str_of_an_object", lambda o, v: len(str(o)) + v, __str__=counted_str)
_special_row("repr_of_an_object", lambda o, v: len(repr(o)) + v, __repr__=counted_str)
_special_row("format_an_object", lambda o, v: len(f"{o}") + v, __format__=counted_format)
_special_row("percent_an_object", lambda o, v: len("%s" % o) + v, __str__=counted_str)
_special_row("missing_attribute", lambda o, v: o.missing + v, __getattr__=counted_getattr)
_special_row("hasattr_of_an_object", lambda o, v: hasattr(o, "missing") + v, __getattr__=counted_getattr)
_special_row("getattribute", lambda o, v: o.count * v, __getattribute__=counted_getattribute)
_special_row("setattr_of_an_object", set_w, __setattr__=counted_setattr)
_special_row("augmented_through_setattr", aug_w, __setattr__=counted_setattr)
_special_row("delattr_of_an_object", del_w, __delattr__=counted_delattr)
_special_row("delitem_of_an_object", del_item, __delitem__=counted_none)
_special_row("iadd_of_an_object", iadd, __iadd__=counted_self)
_special_row("with_an_object", with_it, __enter__=counted_none, __exit__=counted_none)
_special_row("match_an_object", match_it, __len__=counted_len, __getitem__=counted_one)
_special_row("copy_of_an_object", lambda o, v: copy.copy(o).count + v, __copy__=counted_self)
_special_row("sorted_objects", lambda o, v: len(sorted([o, o])) + v, __lt__=counted_bool)
_special_row("max_of_objects", lambda o, v: (max(o, o) is o) + v, __gt__=counted_bool)
_special_row("index_in_a_list", lambda o, v: [1, o].index(o) + v, __eq__=counted_eq)
_special_row("dir_of_an_object", lambda o, v: len(dir(o)) + v, __dir__=lambda self: (counted_one(self, 0), ["a"])[1])
_special_row("reversed_object", lambda o, v: list(reversed(o))[0] + v, __reversed__=counted_iter)
_special_row("instancecheck", lambda o, v: v * (o @ 2), __matmul__=counted_one)
_special_row("divmod_of_an_object", lambda o, v: divmod(o, 2) + v, __divmod__=counted_one)
_special_row("pow_of_an_object", lambda o, v: pow(o, 2) + v, __pow__=counted_one)


class Described:
    def __set_name__(self, owner, name):
        self.name = name

    def __get__(self, obj, kind=None):
        if obj is None:
            return self
        obj.gets += 1
        return obj.__dict__.get("_" + self.name, 1.0)

    def __set__(self, obj, value):
        obj.sets += 1
        obj.__dict__["_" + self.name] = value


class WithDescriptor:
    w = Described()

    def __init__(self):
        self.gets = self.sets = 0


@row
def descriptor_read():
    o = WithDescriptor()

    def act(v):
        return o.w + v

    return act, lambda: dict(vars(o))


@row
def descriptor_written():
    o = WithDescriptor()

    def act(v):
        o.w = v

    return act, lambda: dict(vars(o))


@row
def property_that_counts():
    class Lazy:
        def __init__(self):
            self.n = 0

        @property
        def value(self):
            self.n += 1
            return 2.0

    o = Lazy()

    def act(v):
        return o.value + v

    return act, lambda: o.n


@row
def setter_that_counts():
    class Kept:
        def __init__(self):
            self.n, self._w = 0, 0.0

        @property
        def w(self):
            return self._w

        @w.setter
        def w(self, value):
            self.n += 1
            self._w = value

    o = Kept()

    def act(v):
        o.w += v

    return act, lambda: (o.n, float(o._w))


@row
def cached_property_kept():
    class Lazy:
        def __init__(self):
            self.n = 0

        @functools.cached_property
        def value(self):
            self.n += 1
            return 2.0

    o = Lazy()

    def act(v):
        return o.value + v

    return act, lambda: dict(vars(o))


@row
def cached_property_of_traced():
    class Lazy:
        def __init__(self):
            self.w = np.ones(2)

        @functools.cached_property
        def value(self):
            return self.w.sum()

    o = Lazy()

    def act(v):
        return o.value + v

    return act, lambda: repr(vars(o))


# Attributes


@row
def attribute_counted():
    o = Plain()

    def act(v):
        o.n += 1

    return act, lambda: o.n


@row
def attribute_kept():
    o = Plain()

    def act(v):
        o.last = v

    return act, lambda: dict(vars(o))


@row
def attribute_deleted():
    o = Plain()
    o.extra = 1

    def act(v):
        if hasattr(o, "extra"):
            del o.extra

    return act, lambda: dict(vars(o))


@row
def attribute_deleted_and_set():
    o = Plain()

    def act(v):
        o.extra = v
        del o.extra

    return act, lambda: dict(vars(o))


@row
def delattr_by_function():
    o = Plain()
    o.extra = 1

    def act(v):
        delattr(o, "n") if hasattr(o, "n") else None

    return act, lambda: dict(vars(o))


@row
def setattr_by_function():
    o = Plain()

    def act(v):
        setattr(o, "n", v)

    return act, lambda: dict(vars(o))


@row
def object_setattr():
    o = Plain()

    def act(v):
        object.__setattr__(o, "n", v)

    return act, lambda: dict(vars(o))


@row
def bound_setattr():
    o = Plain()

    def act(v):
        o.__setattr__("n", v)

    return act, lambda: dict(vars(o))


@row
def object_dict():
    o = Plain()

    def act(v):
        o.__dict__["n"] = v

    return act, lambda: dict(vars(o))


@row
def object_dict_update():
    o = Plain()

    def act(v):
        o.__dict__.update(n=v)

    return act, lambda: dict(vars(o))


@row
def vars_update():
    o = Plain()

    def act(v):
        vars(o)["n"] = v

    return act, lambda: dict(vars(o))


@row
def namespace():
    o = SimpleNamespace(n=0)

    def act(v):
        o.n += 1
        o.last = v

    return act, lambda: dict(vars(o))


@row
def attribute_of_a_list():
    class Log(list):
        pass

    o = Log([1.0])
    o.n = 0

    def act(v):
        o.n += 1
        return o[0] + v

    return act, lambda: (list(o), o.n)


@row
def attribute_of_a_dict():
    class Log(dict):
        pass

    o = Log(a=1.0)
    o.n = 0

    def act(v):
        o.n += 1
        o["a"] = v

    return act, lambda: (dict(o), o.n)


@row
def method_of_a_dict_that_counts():
    class Log(dict):
        n = 0

        def put(self, key, value):
            self.n += 1
            self[key] = value

    o = Log()

    def act(v):
        o.put("a", v)

    return act, lambda: (dict(o), o.n)


@row
def class_attribute():
    class Counter:
        n = 0

    def act(v):
        Counter.n += 1

    return act, lambda: Counter.n


@row
def class_attribute_by_self():
    class Counter:
        n = 0
        log = []

        def step(self):
            type(self).n += 1

    o = Counter()

    def act(v):
        o.step()

    return act, lambda: Counter.n


@row
def class_list_by_self():
    class Counter:
        log = []

        def step(self, v):
            self.log.append(v)

    o = Counter()

    def act(v):
        o.step(v)

    return act, lambda: list(Counter.log)


@row
def class_made_inside_counts():
    class Counter:
        made = 0

        def __init__(self, v):
            Counter.made += 1
            self.v = v

    def act(v):
        return Counter(v).v

    return act, lambda: Counter.made


@row
def new_that_counts():
    class Counter:
        made = []

        def __new__(cls, *args):
            cls.made.append(1)
            return object.__new__(cls)

        def __init__(self, v):
            self.v = v

    def act(v):
        return Counter(v).v

    return act, lambda: list(Counter.made)


@row
def metaclass_that_counts():
    log = []

    class Meta(type):
        def __call__(cls, *args):
            log.append(1)
            return type.__call__(cls, *args)

    class Counter(metaclass=Meta):
        def __init__(self, v):
            self.v = v

    def act(v):
        return Counter(v).v

    return act, lambda: list(log)


@row
def singleton():
    class One:
        instance = None

        def __new__(cls):
            if cls.instance is None:
                cls.instance = object.__new__(cls)
                cls.instance.n = 0
            return cls.instance

    def act(v):
        One().n += 1

    return act, lambda: One.instance is not None and One.instance.n


@row
def post_init_that_counts():
    log = []

    @dataclass
    class Point:
        x: float

        def __post_init__(self):
            log.append(1)

    def act(v):
        return Point(v).x

    return act, lambda: list(log)


@row
def default_factory_that_counts():
    log = []

    def make():
        log.append(1)
        return 2.0

    @dataclass
    class Point:
        x: float = field(default_factory=make)

    def act(v):
        return Point().x + v

    return act, lambda: list(log)


@row
def function_attribute():
    def helper(v):
        helper.n += 1
        return v

    helper.n = 0

    def act(v):
        return helper(v)

    return act, lambda: helper.n


@row
def mutable_default():
    def helper(v, log=[]):
        log.append(1)
        return v + len(log)

    def act(v):
        return helper(v)

    return act, lambda: list(helper.__defaults__[0])


@row
def closure_counter():
    n = 0

    def count():
        nonlocal n
        n += 1
        return n

    def act(v):
        return v + count()

    return act, lambda: n


@row
def closure_kept():
    last = None

    def act(v):
        nonlocal last
        last = v

    return act, lambda: last


GLOBAL = 0


@row
def global_counter():
    global GLOBAL
    GLOBAL = 0

    def act(v):
        global GLOBAL
        GLOBAL += 1

    return act, lambda: GLOBAL


@row
def global_by_globals():
    global GLOBAL
    GLOBAL = 0

    def act(v):
        globals()["GLOBAL"] = 3

    return act, lambda: GLOBAL


@row
def global_augmented_in_a_helper():
    global GLOBAL
    GLOBAL = 0

    def act(v):
        bump()
        return v

    return act, lambda: GLOBAL


def bump():
    global GLOBAL
    GLOBAL += 1


@row
def global_for_target():
    global GLOBAL
    GLOBAL = 0

    def act(v):
        global GLOBAL
        for GLOBAL in (1, 2):
            pass

    return act, lambda: GLOBAL


@row
def global_with_target():
    global GLOBAL
    GLOBAL = 0

    def act(v):
        global GLOBAL
        with contextlib.nullcontext(7) as GLOBAL:
            pass

    return act, lambda: GLOBAL


@row
def global_walrus():
    global GLOBAL
    GLOBAL = 0

    def act(v):
        global GLOBAL
        if (GLOBAL := 3) > 2:
            return v

    return act, lambda: GLOBAL


@row
def global_def():
    global GLOBAL
    GLOBAL = 0

    def act(v):
        global GLOBAL

        def GLOBAL():
            return 1

    return act, lambda: callable(GLOBAL)


@row
def global_import():
    global GLOBAL
    GLOBAL = 0

    def act(v):
        global GLOBAL
        import math as GLOBAL

    return act, lambda: GLOBAL == 0


@row
def global_del():
    global GLOBAL
    GLOBAL = 0

    def act(v):
        global GLOBAL
        try:
            del GLOBAL
        except NameError:
            pass

    return act, lambda: "GLOBAL" in globals()


@row
def nonlocal_for_target():
    last = 0

    def act(v):
        nonlocal last
        for last in (1, 2):
            pass

    return act, lambda: last


# Caches


@row
def lru_cache_without_arguments():
    log = []

    @functools.lru_cache
    def table():
        log.append(1)
        return np.arange(3.0)

    def act(v):
        return v + table()[1]

    return act, lambda: list(log)


@row
def lru_cache_of_a_number():
    log = []

    @functools.lru_cache
    def table(n):
        log.append(n)
        return n * 2.0

    def act(v):
        return v + table(3)

    return act, lambda: list(log)


@row
def lru_cache_of_a_traced_number():
    log = []

    @functools.lru_cache
    def double(v):
        log.append(1)
        return v * 2

    def act(v):
        return double(v)

    return act, lambda: len(log)


@row
def lru_cache_over_an_array():
    w = np.ones(3)

    @functools.lru_cache
    def total():
        return w.sum()

    def act(v):
        return v * total()

    return act, lambda: total.cache_info().currsize


@row
def lru_cache_method():
    class Model:
        def __init__(self):
            self.n = 0

        @functools.lru_cache
        def size(self):
            self.n += 1
            return 3

    o = Model()

    def act(v):
        return v * o.size()

    return act, lambda: o.n


@row
def memo_of_constants():
    memo = {}

    def act(v):
        if "a" not in memo:
            memo["a"] = 2.0
        return v * memo["a"]

    return act, lambda: dict(memo)


@row
def memo_of_traced():
    memo = {}

    def act(v):
        if "a" not in memo:
            memo["a"] = v
        return v * memo["a"]

    return act, lambda: dict(memo)


@row
def memo_by_traced_key():
    memo = {}

    def act(v):
        key = float(v)
        if key not in memo:
            memo[key] = v * 2
        return memo[key]

    return act, lambda: dict(memo)


@row
def memo_by_try():
    memo = {}

    def act(v):
        try:
            return memo["a"] * v
        except KeyError:
            memo["a"] = 2.0
            return v

    return act, lambda: dict(memo)


@row
def memo_in_a_helper_class():
    class Memo:
        def __init__(self, f):
            self.f, self.kept = f, {}

        def __call__(self, key, v):
            if key not in self.kept:
                self.kept[key] = self.f(v)
            return self.kept[key]

    memo = Memo(lambda v: v * 2)

    def act(v):
        return memo("a", v)

    return act, lambda: dict(memo.kept)


@row
def weak_memo():
    memo = weakref.WeakKeyDictionary()
    o = Plain()

    def act(v):
        memo[o] = v

    return act, lambda: list(memo.values())


# Containers from outside


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


@row
def subclass_with_own_append():
    class Loud(list):
        count = 0

        def append(self, v):
            type(self).count += 1
            super().append(v)

    o = Loud()

    def act(v):
        o.append(v)

    return act, lambda: (list(o), Loud.count)


@row
def indexed_by_own_counter():
    class Buffer:
        def __init__(self):
            self.buf, self.i = np.zeros(8), 0

        def __len__(self):
            return self.i

        def push(self, v):
            self.buf[self.i] = v
            self.i += 1

    o = Buffer()

    def act(v):
        o.push(v)

    return act, lambda: (o.buf, o.i)


@row
def ring_buffer():
    class Buffer:
        def __init__(self):
            self.buf, self.i = np.zeros(4), 0

        def push(self, v):
            self.buf[self.i % 4] = v
            self.i = (self.i + 1) % 4

    o = Buffer()

    def act(v):
        o.push(v)

    return act, lambda: (o.buf, o.i)


@row
def listeners():
    log = []
    listeners = [lambda v: log.append(1)]

    def act(v):
        for tell in listeners:
            tell(v)

    return act, lambda: list(log)


@row
def a_decorator_that_counts():
    def counting(f):
        @functools.wraps(f)
        def inner(*args):
            inner.calls += 1
            return f(*args)

        inner.calls = 0
        return inner

    @counting
    def helper(v):
        return v * 2

    def act(v):
        return helper(v)

    return act, lambda: helper.calls


@row
def a_timer():
    spent = {"n": 0}

    @contextlib.contextmanager
    def timed():
        spent["n"] += 1
        yield

    def act(v):
        with timed():
            return v + 1

    return act, lambda: dict(spent)


@row
def exit_stack():
    log = []

    def act(v):
        with contextlib.ExitStack() as stack:
            stack.callback(log.append, 1)
        return v

    return act, lambda: list(log)


@row
def exit_that_keeps():
    class Scope:
        def __init__(self):
            self.depth, self.deepest = 0, 0

        def __enter__(self):
            self.depth += 1
            self.deepest += self.depth
            return self

        def __exit__(self, *error):
            self.depth -= 1

    scope = Scope()

    def act(v):
        with scope:
            with scope:
                return v + 1

    return act, lambda: (scope.depth, scope.deepest)


@row
def generator_helper_that_counts():
    log = []

    def numbers():
        log.append(1)
        yield 1.0

    def act(v):
        return v + sum(numbers())

    return act, lambda: list(log)


@row
def generator_expression_that_counts():
    log = []

    def tell(i):
        log.append(i)
        return i

    def act(v):
        return v + sum(tell(i) for i in range(2))

    return act, lambda: list(log)


# Iterators and sources of other values


def _iterator_row(label, wrap, change):
    def made():
        source = iter(list(range(1000)))
        it = wrap(source)

        def act(v):
            return change(it, v)

        return act, lambda: operator.length_hint(source)

    made.__name__ = label
    ROWS.append(made)


def _generated(source):
    yield from source


for label, wrap in [
    ("list_iterator", lambda source: source),
    ("cycle", itertools.cycle),
    ("generator", _generated),
    ("map_iterator", lambda source: map(abs, source)),
    ("zip_iterator", lambda source: zip(source)),
    ("enumerate_iterator", enumerate),
    ("chain_iterator", itertools.chain),
]:
    _iterator_row(label + "_islice", wrap, lambda it, v: len(list(itertools.islice(it, 2))) + v)
    _iterator_row(label + "_default", wrap, lambda it, v: (next(it, None) is None) + v)
for label, change in [
    ("next", lambda it, v: next(it) + v),
    ("dunder_next", lambda it, v: it.__next__() + v),
    ("in_islice", lambda it, v: (3 in itertools.islice(it, 5)) + v),
    ("map_of_two", lambda it, v: len(list(map(lambda a, b: b, it, (1, 2)))) + v),
    ("next_in_a_callback", lambda it, v: sum(map(lambda _: it.__next__(), [1])) + v),
    ("next_as_a_callback", lambda it, v: len(list(map(next, [it]))) + v),
]:
    _iterator_row("list_iterator_" + label, lambda source: source, change)
    _iterator_row("generator_" + label, _generated, change)


@row
def count_next():
    it = itertools.count()

    def act(v):
        return next(it) + v

    return act, lambda: it


@row
def generator_sent():
    def make():
        got = 0.0
        while True:
            got += yield got

    g = make()
    next(g)

    def act(v):
        return g.send(1.0) + v

    return act, lambda: g.gi_frame.f_locals["got"]


@row
def generator_closed():
    g = _generated(iter(range(9)))

    def act(v):
        g.close()

    return act, lambda: g.gi_frame is None


@row
def tee():
    a, b = itertools.tee(iter(range(1000)))

    def act(v):
        return next(a) + v

    return act, lambda: next(copy.copy(a))


@row
def holder_of_an_iterator():
    class Batches:
        def __init__(self):
            self.it = iter(range(1000))

        def draw(self):
            return next(self.it)

    o = Batches()

    def act(v):
        return o.draw() + v

    return act, lambda: operator.length_hint(o.it)


@row
def object_with_next():
    class Batches:
        def __init__(self):
            self.i = 0

        def __iter__(self):
            return self

        def __next__(self):
            self.i += 1
            return self.i

    o = Batches()

    def act(v):
        return next(o) + v

    return act, lambda: o.i


@row
def default_by_count():
    counter = itertools.count()

    def act(v):
        d = collections.defaultdict(counter.__next__)
        return d["a"] + d["b"] + v

    return act, lambda: counter


@row
def iter_of_a_callable():
    log = [3, 2, 1]

    def act(v):
        return sum(iter(log.pop, 1)) + v if len(log) == 3 else v

    return act, lambda: list(log)


@row
def a_file():
    f = io.StringIO()

    def act(v):
        f.write("a")

    return act, f.getvalue


@row
def a_file_printed_to():
    f = io.StringIO()

    def act(v):
        print("a", file=f)

    return act, f.getvalue


@row
def a_file_read():
    f = io.StringIO("abc" * 100)

    def act(v):
        return len(f.read(1)) + v

    return act, f.tell


@row
def a_queue():
    q = queue.Queue()

    def act(v):
        q.put(v)

    return act, q.qsize


@row
def a_simple_queue():
    q = queue.SimpleQueue()

    def act(v):
        q.put(1)

    return act, q.qsize


@row
def random_random():
    random.seed(0)

    def act(v):
        return random.random() + v

    return act, random.getstate


@row
def random_instance():
    r = random.Random(0)

    def act(v):
        return r.random() + v

    return act, r.getstate


@row
def random_bound():
    r = random.Random(0)
    draw = r.random

    def act(v):
        return draw() + v

    return act, r.getstate


@row
def random_by_map():
    r = random.Random(0)

    def act(v):
        return sum(map(r.uniform, [0], [1])) + v

    return act, r.getstate


@row
def random_as_default():
    r = random.Random(0)

    def act(v):
        return collections.defaultdict(r.random)["a"] + v

    return act, r.getstate


@row
def random_as_key():
    r = random.Random(0)

    def act(v):
        return sorted([1, 2, 3], key=lambda _: r.random())[0] + v

    return act, r.getstate


@row
def clock():
    def act(v):
        return v * (time.perf_counter() > 0)

    return act, lambda: None


@row
def clock_as_default_factory():
    @dataclass
    class Stamp:
        at: float = field(default_factory=time.perf_counter)

    def act(v):
        return v * (Stamp().at > 0)

    return act, lambda: None


@row
def numpy_legacy_seed():
    np.random.seed(0)

    def act(v):
        np.random.seed(3)

    return act, lambda: np.random.get_state()[1][:3]


@row
def library_that_counts():
    c = collections.Counter()

    def act(v):
        c.update(["a"])
        return v + c["a"]

    return act, lambda: dict(c)


@row
def warnings_registry():
    calls = []

    def act(v):
        return v + len(sorted([3, 1], key=lambda y: calls.append(y) or y))

    return act, lambda: list(calls)


@row
def filter_with_effect():
    calls = []

    def act(v):
        return v + len(list(filter(lambda y: calls.append(y) or y > 1, [3, 1])))

    return act, lambda: list(calls)


@row
def singledispatch_helper():
    calls = []

    @functools.singledispatch
    def tell(y):
        calls.append(1)
        return y

    def act(v):
        return v + tell(2.0)

    return act, lambda: list(calls)


@row
def vectorized_effect():
    calls = []

    def tell(y):
        calls.append(1)
        return y

    vectorized = np.vectorize(tell, otypes=[float])

    def act(v):
        return v + vectorized(np.ones(2))[0]

    return act, lambda: len(calls)


@row
def apply_along_axis_effect():
    calls = []

    def tell(y):
        calls.append(1)
        return y.sum()

    def act(v):
        return v + np.apply_along_axis(tell, 0, np.ones((2, 2)))[0]

    return act, lambda: len(calls)


@row
def fromfunction_effect():
    calls = []

    def tell(y):
        calls.append(1)
        return y * 2.0

    def act(v):
        return v + np.fromfunction(tell, (2,))[1]

    return act, lambda: len(calls)


@row
def exception_that_is_counted():
    calls = []

    def act(v):
        try:
            raise ValueError("a")
        except ValueError:
            calls.append(1)
        finally:
            calls.append(2)

    return act, lambda: list(calls)


@row
def exception_with_state():
    class Trouble(Exception):
        count = 0

        def __init__(self, *args):
            super().__init__(*args)
            Trouble.count += 1

    def act(v):
        try:
            raise Trouble("a")
        except Trouble:
            pass

    return act, lambda: Trouble.count


@row
def sys_like_registry():
    registry = {}

    def register(name):
        def wrap(f):
            registry[name] = f
            return f

        return wrap

    def act(v):
        @register("double")
        def double(y):
            return y * 2

        return double(v)

    return act, lambda: list(registry)


@row
def class_made_inside_registers():
    class Base:
        kinds = []

        def __init_subclass__(cls):
            Base.kinds.append(cls.__name__)

    def act(v):
        class Inner(Base):
            pass

        return v

    return act, lambda: list(Base.kinds)


@row
def deleted_object_tells():
    log = []

    class Temporary:
        def __del__(self):
            log.append(1)

    def act(v):
        t = Temporary()
        del t

    return act, lambda: len(log)


@row
def flip_flop():
    state = {"on": False}

    def act(v):
        state["on"] = not state["on"]
        return v if state["on"] else -v

    return act, lambda: dict(state)


@row
def moving_average():
    o = SimpleNamespace(mean=0.0, n=0)

    def act(v):
        o.n += 1
        o.mean += (v - o.mean) / o.n
        return o.mean

    return act, lambda: (float(o.mean), o.n)


@row
def undone():
    o = SimpleNamespace(training=True)

    def act(v):
        before = o.training
        o.training = False
        v = v * (2 if o.training else 3)
        o.training = before
        return v

    return act, lambda: o.training


@row
def list_undone():
    log = [1]

    def act(v):
        log.append(v)
        log.pop()
        return v

    return act, lambda: list(log)


@row
def object_in_a_list():
    os = [Plain(), Plain()]

    def act(v):
        for o in os:
            o.n += 1

    return act, lambda: [o.n for o in os]


@row
def object_in_a_set():
    o = Plain()
    os = {o}

    def act(v):
        for y in os:
            y.n += 1

    return act, lambda: o.n


@row
def object_behind_a_weakref():
    o = Plain()
    r = weakref.ref(o)

    def act(v):
        r().n += 1

    return act, lambda: o.n


@row
def object_of_a_library_call():
    o = Plain()

    def act(v):
        max([o], key=lambda y: 1).n += 1

    return act, lambda: o.n


@row
def list_of_a_library_call():
    log = [[1]]

    def act(v):
        max(log).append(2)

    return act, lambda: log


@row
def list_behind_itemgetter():
    log = {"a": [1]}

    def act(v):
        operator.itemgetter("a")(log).append(2)

    return act, lambda: log


@row
def list_behind_chain():
    log = [[1], [2]]

    def act(v):
        for y in itertools.chain(log):
            y.append(2)

    return act, lambda: log


@row
def linked_list():
    class Node:
        def __init__(self, value, rest):
            self.value, self.rest = value, rest

    head = Node(1.0, Node(2.0, None))

    def act(v):
        n = head
        while n is not None:
            n.value += v
            n = n.rest

    return act, lambda: (float(head.value), float(head.rest.value))


@row
def slots_object():
    class Point:
        __slots__ = ("x",)

    p = Point()
    p.x = 0.0

    def act(v):
        p.x += v

    return act, lambda: float(p.x)


@row
def dataclass_with_list():
    @dataclass
    class State:
        log: list = field(default_factory=list)
        n: int = 0

    s = State()

    def act(v):
        s.log.append(v)
        s.n += 1

    return act, lambda: (list(s.log), s.n)


@row
def frozen_dataclass():
    @dataclass(frozen=True)
    class State:
        n: int = 0

    s = State()

    def act(v):
        object.__setattr__(s, "n", 3)

    return act, lambda: s.n


@row
def module_attribute():
    import tests.trace.effect_programs as module

    module.GLOBAL = 0

    def act(v):
        module.GLOBAL += 1

    return act, lambda: module.GLOBAL


@row
def function_code():
    def helper(v):
        return v

    def act(v):
        helper.__doc__ = "called"
        return helper(v)

    return act, lambda: helper.__doc__


@row
def inner_function_changes_outside():
    log = []

    def act(v):
        def tell(y):
            log.append(y)
            return y

        return sum(map(tell, [1.0, 2.0])) + v

    return act, lambda: list(log)


@row
def ctypes_like_buffer():
    b = io.BytesIO()

    def act(v):
        b.write(b"a")

    return act, b.getvalue
