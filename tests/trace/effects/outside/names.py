"""Globals and nonlocals, attributes of functions and modules."""

# ruff: noqa  # code as people write it, odd code too
# mypy: ignore-errors

from __future__ import annotations

import contextlib

from tests.trace.effects.outside.rows import row


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


@row
def module_attribute():
    import tests.trace.effects.outside.names as module

    module.GLOBAL = 0

    def act(v):
        module.GLOBAL += 1

    return act, lambda: module.GLOBAL
