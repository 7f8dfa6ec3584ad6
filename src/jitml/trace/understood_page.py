"""Writes `docs/understood.md` from the table: `python -m jitml.trace.understood_page`."""

from __future__ import annotations

from dataclasses import dataclass

from jitml.trace.understood import TABLE, Way

_HEAD = """# What is understood of values from outside

Written by `make docs` from `trace/understood.py`; not by hand. A jitted function gets values from outside: arguments, globals,
what it closes over, attributes, items, defaults, keys. By its type, each belongs to the first row that covers it, whatever its
role. What nobody has listed is in the last row: it is taken at run time, from the object of that call, or the function is refused
with the line.
"""
_PLACES_HEAD = """
## Where a value becomes a constant, or something happens while tracing

A test finds every file that holds a constant, guards one, or calls something while tracing, and looks for it here.

| file | what it does | row |
| --- | --- | --- |"""


@dataclass(frozen=True)
class Place:
    """A file in which values become constants, and the rows that say how these stay true."""

    file: str
    what: str
    ways: tuple[Way, ...]


_ALL = tuple(Way)
PLACES = (
    Place("trace/arguments.py", "lets arguments in: static ones and what jitml has made by value or identity", _ALL),
    Place("trace/loaded_names.py", "loads globals, cells and defaults by name at each call", _ALL),
    Place("trace/outside.py", "lets a value in as its row says; keys of dicts, and objects that came in unseen, are held", _ALL),
    Place("trace/accesses.py", "loads attributes, items and what modules keep; members of classes by identity", _ALL),
    Place("trace/outer_names.py", "holds the dict or cell whose names are assigned", (Way.ITEMS,)),
    Place("trace/asked.py", "asks NumPy's settings and the environment before the program starts", (Way.VALUE, Way.ITEMS)),
    Place("trace/attributes.py", "loads what a class has where an attribute of its object was deleted", (Way.ATTRIBUTES,)),
    Place("trace/inherited.py", "asks whether a class itself has what another one gives it", (Way.ATTRIBUTES, Way.ITSELF)),
    Place("trace/handlers.py", "asks whether a name that was missing is there", (Way.VALUE,)),
    Place("trace/eager.py", "runs transforms outside of the trace where what they are given is not traced", (Way.ITSELF,)),
    Place("trace/changes.py", "lets items of containers among the arguments in", (Way.ITEMS,)),
    Place("trace/keys.py", "compares types of keys, and what objects hold that are keys", (Way.ITEMS,)),
    Place("trace/modules.py", "asks which modules there are", (Way.ITSELF,)),
    Place("trace/queues.py", "asks whether other threads run before the program starts", (Way.ATTRIBUTES,)),
    Place("trace/copies.py", "loads what `copy.copy` reads: attributes, and which there are", (Way.ATTRIBUTES,)),
    Place("trace/unseen.py", "compares what code that is not converted reads", (Way.ATTRIBUTES, Way.COMPARED, Way.ITEMS)),
    Place("trace/classes.py", "compares the functions of classes of the user's", (Way.ITSELF, Way.ATTRIBUTES)),
    Place("trace/convert.py", "converts functions: their code, and globals of those that are arguments", (Way.ITSELF,)),
    Place(
        "trace/wrappers.py",
        "asks dispatchers, caches and unknown libraries before the program starts",
        (Way.ITSELF, Way.RUN_TIME),
    ),
    Place("trace/callees.py", "guards whether an object has an attribute", (Way.ATTRIBUTES,)),
    Place(
        "trace/outside_calls.py",
        "calls the standard library, NumPy and SciPy while tracing, on what rows have let in",
        (Way.VALUE, Way.COMPARED),
    ),
    Place(
        "trace/hostcalls.py",
        "tries host calls out; numbers, text and None among their results are compared at run time",
        (Way.RUN_TIME,),
    ),
    Place("trace/objects.py", "holds an object of a library that is a key: it is this one", (Way.RUN_TIME,)),
    Place("trace/context.py", "makes inputs of numbers", (Way.VALUE,)),
    Place("trace/host.py", "the host program itself: constants are operands of its steps", _ALL),
    Place("trace/numbers.py", "guards a number by value where Python needs it", (Way.VALUE,)),
    Place("trace/known.py", "guards numbers of which a condition depends", (Way.VALUE,)),
    Place("trace/eager.py", "runs outside of the trace what only runs meanwhile, as a signal's handler does", (Way.ITSELF,)),
    Place("trace/shown.py", "guards what texts show of objects", (Way.VALUE, Way.ATTRIBUTES)),
    Place("trace/overlap.py", "guards where arrays lie that share memory", (Way.ARRAY,)),
    Place("trace/random.py", "holds generators that came in unseen", (Way.GENERATOR,)),
    Place("trace/tracers.py", "holds arrays that came in unseen, and reads them at each call", (Way.ARRAY,)),
    Place("autograd/api/custom.py", "loads the rules of functions that have some", (Way.ITSELF,)),
    Place("autograd/attributes.py", "loads attributes of objects that are differentiated", (Way.ATTRIBUTES,)),
    Place("numpy/layouts.py", "calls NumPy on small arrays that lie like the operands", (Way.ARRAY,)),
    Place("numpy/arrays.py", "has arrays on the memory of other objects made at each call", (Way.CONTENTS, Way.RUN_TIME)),
    Place("numpy/rounding.py", "guards whether arrays overlap", (Way.ARRAY,)),
)


def page() -> str:
    """The page."""
    lines = [_HEAD, "| what | guarded | read | changed | copied | handed to library code | returned |", "| --- " * 7 + "|"]
    for row in TABLE:
        cells = (row.what, row.guarded, row.read, row.changed, row.copied, row.handed, row.returned)
        lines.append(f"| {' | '.join(cells)} |")
    lines.append(_PLACES_HEAD)
    names = {row.way: row.what.partition(":")[0] for row in TABLE}
    for place in PLACES:
        rows = "each" if place.ways == _ALL else "; ".join(names[way] for way in place.ways)
        lines.append(f"| `{place.file}` | {place.what} | {rows} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    print(page(), end="")
