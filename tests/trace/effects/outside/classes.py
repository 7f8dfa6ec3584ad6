"""Classes: what they hold, and what making an object of them does."""

# ruff: noqa  # code as people write it, odd code too
# mypy: ignore-errors

from __future__ import annotations

from dataclasses import dataclass, field

from tests.trace.effects.outside.rows import row


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
