"""Special methods that Python calls itself."""

# ruff: noqa  # code as people write it, odd code too
# mypy: ignore-errors

from __future__ import annotations

import copy
import operator

import numpy as np
from tests.trace.effects.outside.rows import ROWS


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
