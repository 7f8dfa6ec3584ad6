"""Where a program finds an object: argument, global, attribute, item, closure, default; and how the next call finds another."""

from __future__ import annotations

from dataclasses import dataclass

from programs.drawn.choices import Choices
from programs.drawn.things.thing import Thing, filled

KEYS = (("2", "3", "5"), ("3", "1", "2"), ("5", "2", "2"), ("2", "5", "3"))
ABOVE = """

class Holder:
    def __init__(self, held=None):
        self.held = held


def keeping(held):
    def get():
        return held

    return get


def given(held=None):
    return held


HOLDER = Holder()
BOX = {}
"""


@dataclass(frozen=True)
class Held:
    """A thing in its place.

    Args:
        access: the expression by which the program gets it.
        above: what stands above the program for it.
        parameter: the argument that brings it, with what it is at each call.
        before: statements before each call.
    """

    thing: Thing
    access: str
    above: str = ""
    parameter: str = ""
    values: tuple[str, ...] = ()
    before: tuple[tuple[str, ...], ...] = ()


def place(choices: Choices, thing: Thing, number: int) -> Held:
    """Puts a thing somewhere outside of the program."""
    keys = choices.pick(KEYS)
    made = choices.pick(thing.made)
    texts = tuple(filled(made, k=k, x="x", e="2", n="1.5", i="0") for k in keys)
    name, world = f"o{number}", f"THING{number}"
    if thing.changed and choices.chance(50):
        return _changed_in_place(choices, thing, number, texts, keys)
    kind = choices.number(0, 9)
    if kind < 4:
        return Held(thing, name, parameter=name, values=texts)
    if kind < 5:
        how, access = choices.pick(
            (
                ("[{}, 1]", "{}[0]"),
                ("({},)", "{}[0]"),
                ("{{'o': {}}}", "{}['o']"),
                ("Holder({})", "{}.held"),
                ("keeping({})", "{}()"),
            )
        )
        return Held(thing, access.format(name), parameter=name, values=tuple(how.format(t) for t in texts))
    access, statement = choices.pick(
        (
            (world, f"globals()['{world}'] = {{}}"),
            (f"HOLDER.{name}", f"HOLDER.{name} = {{}}"),
            (f"BOX['{name}']", f"BOX['{name}'] = {{}}"),
            (f"{world}()", f"globals()['{world}'] = keeping({{}})"),
            ("given()", "given.__defaults__ = ({},)"),
        )
    )
    return Held(thing, access, before=tuple((statement.format(t),) for t in texts))


def _changed_in_place(choices: Choices, thing: Thing, number: int, texts: tuple[str, ...], keys: tuple[str, ...]) -> Held:
    """One object for all calls, which changes between them."""
    name, world = f"o{number}", f"THING{number}"
    change = choices.pick(thing.changed)
    made = (f"globals()['{world}'] = {texts[0]}",)
    before = tuple(tuple(filled(change, o=world, k=k).splitlines()) if n else made for n, k in enumerate(keys))
    how = choices.number(0, 3)
    if how == 0:
        return Held(thing, world, before=before)
    if how == 1:
        return Held(thing, f"HOLDER.{name}", before=tuple((*lines, f"HOLDER.{name} = {world}") for lines in before))
    if how == 2:
        return Held(thing, f"{name}[0]", parameter=name, values=(f"[{world}]",) * 3, before=before)
    return Held(thing, name, parameter=name, values=(world,) * 3, before=before)
