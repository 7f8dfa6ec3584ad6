"""Instances of users' classes: state, caches, class attributes, dataclasses, special methods that are replaced."""

from __future__ import annotations

from programs.drawn.things.thing import Thing

_FILTER = """
class Filter:
    limit = 3

    def __init__(self, k):
        self.k, self.cached, self.log = k, None, []

    def value(self, x):
        if self.cached is None:
            self.cached = x.size * self.k
        return self.cached

    def forget(self):
        self.cached = None

    def bump(self, v):
        self.k += v
        self.log.append(v)
        return self.k
"""
_LAZY = """
class Lazy:
    def __init__(self, k):
        self.k = k

    @property
    def twice(self):
        return self.k * 2

    @property
    def table(self):
        if not hasattr(self, "made"):
            self.made = [self.k, self.k + 1]
        return self.made
"""
_SHARED = """
class Shared:
    total = 0
    seen = []
    best = {}

    def __init__(self, k):
        self.k = k

    def note(self, v):
        Shared.total += 1
        self.seen.append(v)
        self.best[len(self.seen)] = self.k
        return v * self.k

    @classmethod
    def clear(cls):
        cls.total = 0
        cls.seen.clear()

    @staticmethod
    def scaled(v):
        return v * Shared.total
"""
_SPECIAL = """
class Special:
    def __init__(self, k):
        self.k = k

    def __call__(self, x):
        return x * self.k

    def __str__(self):
        return f"special {self.k}"

    def __len__(self):
        return self.k

    def __getitem__(self, i):
        return self.k + i

    def __contains__(self, v):
        return v == self.k

    def __add__(self, other):
        return self.k + other

    def __bool__(self):
        return self.k > 2

    def step(self, x):
        return x + self.k
"""
_DATA = """
import dataclasses

@dataclasses.dataclass
class Particle:
    k: int = 1
    speed: float = 0.5
    path: list = dataclasses.field(default_factory=list)

    def move(self, v):
        self.path.append(self.k)
        self.speed = self.speed * 0.5 + v
        return self.speed
"""
_FROZEN = """
import dataclasses

@dataclasses.dataclass(frozen=True)
class Settings:
    k: int = 1
    name: str = "a"

    def bump(self, v=1):
        object.__setattr__(self, "k", self.k + v)
        return self.k
"""
_NODE = """
class Node:
    __slots__ = ("k", "next")

    def __init__(self, k, next=None):
        self.k, self.next = k, next

    def last(self):
        node = self
        while node.next is not None:
            node = node.next
        return node
"""
_FAMILY = """
class Base:
    factor = 2

    def __init__(self, k):
        self.k = k

    def scaled(self, v):
        return v * self.factor + self.k


class Derived(Base):
    def __init__(self, k):
        super().__init__(k)
        self.parts = {"a": k, "b": [k]}

    def scaled(self, v):
        return super().scaled(v) - 1
"""
_ENTRY = """
from collections import namedtuple

Entry = namedtuple("Entry", "k weight rows")
"""
_MISSING = """
class Fallback:
    def __init__(self, k):
        self.k = k

    def __getattr__(self, name):
        if name.startswith("far"):
            return len(name) * self.__dict__["k"]
        raise AttributeError(name)
"""

OBJECTS = (
    Thing(
        "filter",
        ("Filter($k)",),
        ("$o.k", "$o.value($x)", "$o.cached", "len($o.log)", "$o.bump($n)", "$o.limit", "$x * $o.k", "$o.log[-1]"),
        (
            "$o.cached = None",
            "$o.forget()",
            "$o.k = $n",
            "$o.k += 1",
            "$o.log.append($n)",
            "$o.log = []",
            "$o.log = None",
            "del $o.cached",
            "$o.extra = $n",
            "$o.cached = $x",
            "$o.cached = $x.copy()",
            "setattr($o, 'k', $n)",
            "if $o.cached is None:\n    $o.cached = $n",
            "$o.cached = None\nif $o.cached is None:\n    $o.cached = $n",
            "Filter.limit = $n",
            "$o.bump($n)",
            "$o.log.clear()",
        ),
        ("$o.k = $k", "$o.cached = $k", "$o.cached = None", "$o.log = [$k]", "$o.log.append($k)", "Filter.limit = $k"),
        _FILTER,
    ),
    Thing(
        "lazy",
        ("Lazy($k)",),
        ("$o.twice", "$o.table[0]", "$o.table[$i]", "sum($o.table)", "hasattr($o, 'made')", "getattr($o, 'made', [0])[0]"),
        ("$o.k = $n", "$o.table.append($n)", "$o.table[0] = $n", "del $o.made", "$o.made = None", "$o.made = [$n, 1]"),
        ("$o.k = $k", "$o.made = [$k, $k]", "Lazy.twice = property(lambda self: self.k * $k)"),
        _LAZY,
    ),
    Thing(
        "shared",
        ("Shared($k)",),
        ("$o.note($n)", "len($o.seen)", "Shared.total", "$o.scaled($n)", "$o.best", "len(Shared.best)", "$o.total"),
        ("$o.note($n)", "Shared.seen.append($n)", "$o.clear()", "$o.seen = [$n]", "Shared.total = $e", "$o.total = 5"),
        ("$o.k = $k", "Shared.total = $k", "Shared.seen.append($k)", "Shared.seen = [$k]"),
        _SHARED,
    ),
    Thing(
        "special",
        ("Special($k)",),
        (
            "$o($x)",
            "len($o)",
            "$o[$i]",
            "$o + $n",
            "$o.step($x)",
            "($e in $o)",
            "str($o)",
            "(1 if $o else 2)",
            "len(f'{$o}')",
            "Special($e)($n)",
            "Special(2).k",
        ),
        ("$o.k = $e", "$o.step = $o.__call__"),
        (
            "$o.k = $k",
            "Special.__call__ = lambda self, x: x - $k",
            "Special.__init__ = lambda self, k: setattr(self, 'k', $k)",
            "Special.__len__ = lambda self: $k",
            "Special.__str__ = lambda self: 'x' * $k",
            "Special.__getitem__ = lambda self, i: $k",
            "Special.step = lambda self, x: x * $k",
            "Special.__bool__ = lambda self: $k > 3",
        ),
        _SPECIAL,
    ),
    Thing(
        "particle",
        ("Particle($k)", "Particle($k, 2.0)", "Particle(k=$k, path=[1])"),
        ("$o.k", "$o.speed", "$o.move($n)", "len($o.path)", "$o == Particle($k)", "dataclasses.astuple($o)[0]", "$o"),
        ("$o.k = $n", "$o.path.append($n)", "$o.speed *= 2", "$o.move($n)", "$v = dataclasses.replace($o, k=$e)\n$v.k += 1"),
        ("$o.k = $k", "$o.path.append($k)", "$o.speed = $k * 0.5"),
        _DATA,
    ),
    Thing(
        "settings",
        ("Settings($k)", "Settings(k=$k, name='b')"),
        ("$o.k", "$o.bump()", "$o.bump($e)", "len($o.name)", "$o == Settings($e)", "hash($o) == hash(Settings($e))", "$o"),
        ("$o.bump()", "object.__setattr__($o, 'k', $e)", "$v = dataclasses.replace($o, k=$e)\n$v.bump(2)"),
        ("object.__setattr__($o, 'k', $k)",),
        _FROZEN,
    ),
    Thing(
        "node",
        ("Node($k)", "Node($k, Node(1))"),
        ("$o.k", "$o.last().k", "($o.next is None)", "$o.last() is $o"),
        ("$o.next = Node($n)", "$o.next = None", "$o.last().k = $n", "$o.last().next = Node($e)", "$o.k += 1", "del $o.next"),
        ("$o.k = $k", "$o.next = Node($k)"),
        _NODE,
    ),
    Thing(
        "derived",
        ("Derived($k)",),
        ("$o.scaled($n)", "$o.scaled($x)", "$o.parts['a']", "$o.parts['b'][0]", "isinstance($o, Base)", "type($o).factor"),
        ("$o.parts['a'] = $n", "$o.parts['b'].append($n)", "$o.parts['b'][0] = $n", "$o.factor = $e", "$o.parts = {'a': 1}"),
        ("$o.k = $k", "Base.factor = $k", "$o.parts['b'][0] = $k", "Derived.scaled = lambda self, v: v + $k"),
        _FAMILY,
    ),
    Thing(
        "entry",
        ("Entry($k, 0.5, [1, 2])", "Entry(k=$k, weight=$k, rows=[[1], [2]])"),
        ("$o.k", "$o[1]", "$o.rows[0]", "$o._replace(k=$n).k", "sum($o[:2])", "$o", "Entry($n, $n, [])"),
        ("$o.rows[0] = $n", "$o.rows.append($n)"),
        ("$o.rows[0] = $k",),
        _ENTRY,
    ),
    Thing(
        "fallback",
        ("Fallback($k)",),
        ("$o.far", "$o.farther", "getattr($o, 'near', $n)", "hasattr($o, 'k')"),
        ("$o.far = $n", "$o.k = $e", "$o.near = $n"),
        ("$o.k = $k", "$o.near = $k"),
        _MISSING,
    ),
)
