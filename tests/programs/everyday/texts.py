"""Texts of objects, printed, logged and returned, which are left to Python: as they are at this call, not at an earlier one."""

# ruff: noqa  # code as people write it
# mypy: ignore-errors

from __future__ import annotations

import contextlib
import copy
import io
import logging
from collections import namedtuple
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import PurePosixPath

import numpy as np

from programs.everyday.table import rows

ROWS, calls, session = rows()
OBJECT = "is written into a text"


class Account:
    def __init__(self, owner, balance):
        self.owner = owner
        self.balance = balance

    def __repr__(self):
        return f"Account({self.owner}, {self.balance:.2f})"


class Savings(Account):
    def __str__(self):
        return f"{super().__repr__()} saved"


class Bank:
    def __init__(self, *accounts):
        self.accounts = list(accounts)

    def total(self):
        return sum(a.balance for a in self.accounts)

    def __str__(self):
        return " + ".join(str(a) for a in self.accounts) + f" = {self.total():.1f}"


class Money:
    def __init__(self, amount):
        self.amount = amount

    def __format__(self, spec):
        return "$" + format(self.amount, spec)


@dataclass
class Point:
    name: str
    x: float
    hidden: float = field(default=0.0, repr=False)


class Plain:
    pass


Pair = namedtuple("Pair", "a b")
ANN, BOB = (Account("ann", 1.0),), (Account("bob", 2.5),)


@calls(ANN, BOB, (Savings("cy", 3.0),), as_python=OBJECT)
def texts_of_an_object(a):
    return str(a), repr(a), f"{a}", f"{a!r:>25}|", "%s %r" % (a, a), "{} {!r} {0}".replace("{0}", "").format(a, a), a.__str__()


@calls(ANN, BOB, (Savings("cy", 3.0),), as_python=OBJECT)
def texts_after_it_has_changed(a):
    before = str(a)
    a.balance += 1
    return before, str(a), f"{a!s}", "%5s owns %.1f" % (a, a.balance), "{0.owner}: {0.balance:.1f} {0}".format(a)


@calls(ANN, BOB, as_python=OBJECT)
def texts_in_containers(a):
    a.balance *= 2
    return str([a]), f"{(a, 1.5)} {[{'k': a}]}", repr(Pair(a, [a])), "%s" % ([a],), "{}".format([a])


@calls((Point("p", 1.0),), (Point("q", 2.0),), as_python=OBJECT)
def texts_of_a_dataclass(p):
    p.x += 1
    made = Point("made", p.x * 2)
    made.x += 1
    return str(p), f"{p}", str([p, made]), f"{made!r:.20}"


@calls(([1.0, 2.0], {"w": np.ones(2)}), ([3.0, 4.0], {"w": np.zeros(2)}))
def texts_of_containers_of_the_callers(xs, d):
    xs[0] += 1
    return str(xs), repr(d), f"{Pair(xs, d)}"


@calls((Bank(Account("a", 1.0), Savings("b", 2.0)),), (Bank(Account("c", 3.0), Savings("d", 4.0)),), as_python=OBJECT)
def texts_of_an_object_of_objects(bank):
    bank.accounts[0].balance += 5
    return str(bank), ";".join(map(str, bank.accounts)), [f"{a}" for a in bank.accounts]


@calls((Money(2.0),), (Money(3.5),), as_python=OBJECT)
def formats_of_its_own(m):
    m.amount += 1
    return f"{m:.2f}", format(m, ".1f"), "{:.3f}".format(m)


@calls((PurePosixPath("/a"), Fraction(1, 2)), (PurePosixPath("/b"), Fraction(1, 3)))
def texts_of_objects_of_a_library(path, part):
    return str(path), f"{part} {path!r}"


@calls(ANN, BOB, as_python="exceptions may be handled")
def a_format_that_an_object_has_not(a):
    try:
        return f"{a:>30}"
    except TypeError as error:
        return str(error)


@session(as_python=OBJECT)
def an_object_without_a_text_of_its_own(jit):
    made = [Plain(), Plain()]
    f = jit(lambda p, x: (str(p), x + 1))
    seen = [f(p, np.ones(2)) for p in made]
    return [text == str(p) for (text, _), p in zip(seen, made)], seen[0][1]


@session(as_python=OBJECT)
def printed_and_logged(jit):
    out = io.StringIO()
    log = logging.getLogger("texts")
    log.propagate = False
    log.addHandler(handler := logging.StreamHandler(out))

    @jit
    def pay(a, x):
        for v in x:
            a.balance += v
            print(a, [a], sep=" | ")
        log.warning("%s of %r", a, [a])
        log.warning(a)
        return a.balance

    with contextlib.redirect_stdout(out):
        paid = [pay(copy.copy(a), np.arange(n) + 0.5) for (a,), n in ((ANN, 2), (BOB, 2), (BOB, 3))]
    log.removeHandler(handler)
    return paid, out.getvalue()
