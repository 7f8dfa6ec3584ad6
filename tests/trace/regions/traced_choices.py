"""Functions whose results, or what they write, are one array or another as array values say: rows of `test_traced_control.py`."""

# ruff: noqa  # code as people write it, odd code too
# mypy: ignore-errors

from __future__ import annotations

from tests.trace.regions.traced_programs import Program, program

CHOICES: list[Program] = []
DECIDED: list[Program] = []


def choice(function: Program) -> Program:
    CHOICES.append(function)
    return function


def decided(function: Program) -> Program:
    DECIDED.append(function)
    return function


@program
def two_names_for_one_array(x):
    y = x * 1
    z = y
    for i in range(3):
        y = y + 1
        z = y
        z += x[i]
    return y, z


@choice
def argument_or_new(x):
    y = x
    if x[0] > 0:
        y = x + 1
    return y


@choice
def decided_twice(x):
    y = x
    if x[0] > 0:
        y = x + 1
    if x[1] > 0:
        y = y * 2
    return y


@choice
def two_results_may_be_one(x):
    y = x * 2
    w = x + 1
    z = y if x[0] > 0 else w
    return y, z


@choice
def one_of_two_arguments(x, y):
    z = x if x[0] > 0 else y
    return z, z[1:], x


@choice
def view_or_copy(x):
    return x[1:] if x[0] > 0 else x[:-1].copy()


def while_may_not_run(x):
    while x.sum() < 100:
        x = x * 2
    return x


def kept_by_a_branch(x):
    for i in range(5):
        if x[i] > 2:
            x = x * 2
    return x


@decided
def written_after_a_choice(x):
    y = x
    if x[0] > 0:
        y = x + 1
    if x[1] > 0:
        y = y * 2
    y += 1
    return x


@decided
def written_after_a_while(x):
    while x.sum() < 100:
        x = x * 2
    x += 1
    return x


@decided
def written_after_a_loop(x):
    for i in range(5):
        if x[i] > 2:
            x = x * 2
    x += 1
    return x


@decided
def written_after_a_break(x):
    y = x
    for i in range(5):
        if y[i] > 2:
            break
        y = y * 2
    y += 1
    return y


@decided
def written_after_a_ternary(x):
    y = x * 1
    z = x if x[0] > 0 else y
    z += 1
    return z
