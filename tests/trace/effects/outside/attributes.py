"""Attributes, properties and descriptors."""

# ruff: noqa  # code as people write it, odd code too
# mypy: ignore-errors

from __future__ import annotations

import functools
from types import SimpleNamespace

import numpy as np
from tests.trace.effects.outside.rows import Plain, row


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
