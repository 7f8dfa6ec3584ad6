"""Writes `docs/understood.md` from the table: `make docs`."""

from __future__ import annotations

from jitml.records import dataclass
from jitml.trace.environment.value_classification import TABLE, Way

_HEAD = """# What is understood of values from outside

Written by `make docs` from `trace/environment/value_classification.py`; not by hand.

This page is for people who change jitml. A jitted function gets values from outside: arguments, globals, variables of
functions around it, attributes, items, defaults, keys. The table says what is done with each, by its type. The first
row that covers the type counts. It does not matter how the value comes in. A type that nobody has listed is in the last
row. There, the value is taken from the object of each call, or the function is refused with the line.

The first column says what is compared at each call. The others say how a value is read, and what becomes of changes, of copies,
of calls of library code that get it, and of returning it.
"""
_PLACES_HEAD = """
## Where a value becomes a constant, or something happens while tracing

A value may become a constant of the program. That is right only as long as a guard compares it. So a test finds every file
that makes a constant, guards one, or calls something while tracing. It must be in this table.

| file | what it does | row |
| --- | --- | --- |"""


@dataclass(frozen=True)
class ConstantPlace:
    """A file in which values become constants, and the rows that say how these stay true."""

    file: str
    what: str
    ways: tuple[Way, ...]


_ALL = tuple(Way)
PLACES = (
    ConstantPlace("trace/record/device_arrays.py", "guards the device that an array is on, by identity", (Way.ARRAY,)),
    ConstantPlace(
        "trace/environment/arguments.py", "lets arguments in: static ones and what jitml has made by value or identity", _ALL
    ),
    ConstantPlace("trace/environment/name_lookup.py", "loads globals, cells and defaults by name at each call", _ALL),
    ConstantPlace(
        "trace/environment/guarded_loads.py",
        "lets a value in as its row says; keys of dicts, and objects that came in unseen, are held",
        _ALL,
    ),
    ConstantPlace("trace/hooks/models/attributes.py", "loads attributes; members of classes by identity", _ALL),
    ConstantPlace("trace/hooks/models/modules.py", "loads what modules keep", _ALL),
    ConstantPlace("trace/hooks/models/opaque.py", "loads attributes that objects of libraries keep", (Way.OPAQUE,)),
    ConstantPlace("trace/effects/attribute_stores.py", "guards that an object has an attribute itself", (Way.ATTRIBUTES,)),
    ConstantPlace(
        "trace/effects/inheritance.py", "asks whether a class itself has what another one gives it", (Way.ATTRIBUTES, Way.ITSELF)
    ),
    ConstantPlace(
        "dispatch/eager.py", "runs transforms outside of the trace where what they are given is not traced", (Way.ITSELF,)
    ),
    ConstantPlace("trace/effects/write_back.py", "lets items of containers among the arguments in", (Way.ITEMS,)),
    ConstantPlace("trace/environment/equality_guards.py", "compares types of keys", (Way.ITEMS,)),
    ConstantPlace("trace/record/loaded_modules.py", "asks which modules there are", (Way.ITSELF,)),
    ConstantPlace(
        "trace/environment/unseen_reads.py",
        "requires that what code that is not converted reads never changes",
        (Way.ATTRIBUTES, Way.COMPARED, Way.ITEMS),
    ),
    ConstantPlace(
        "trace/environment/class_guards.py", "compares the functions of classes of the user's", (Way.ITSELF, Way.ATTRIBUTES)
    ),
    ConstantPlace(
        "trace/hooks/convert.py", "converts functions: their code, and globals of those that are arguments", (Way.ITSELF,)
    ),
    ConstantPlace("trace/hooks/models/user_methods.py", "guards whether an object has an attribute", (Way.ATTRIBUTES,)),
    ConstantPlace(
        "trace/hooks/unconverted_calls.py",
        "calls the standard library, NumPy and SciPy while tracing, on what rows have let in",
        (Way.VALUE, Way.COMPARED),
    ),
    ConstantPlace(
        "trace/host_calls/call.py",
        "tries host calls out; numbers, text and None among their results are compared at run time",
        (Way.OPAQUE,),
    ),
    ConstantPlace("trace/values/opaque_objects.py", "holds an object of a library that is a key: it is this one", (Way.OPAQUE,)),
    ConstantPlace("trace/record/recording.py", "makes inputs of numbers", (Way.VALUE,)),
    ConstantPlace("trace/record/guards.py", "the host program itself: constants are operands of its steps", _ALL),
    ConstantPlace("trace/values/numbers.py", "guards a number by value where Python needs it", (Way.VALUE,)),
    ConstantPlace("trace/symbolic/constants.py", "guards numbers of which a condition depends", (Way.VALUE,)),
    ConstantPlace(
        "dispatch/eager.py", "runs outside of the trace what only runs meanwhile, as a signal's handler does", (Way.ITSELF,)
    ),
    ConstantPlace("trace/environment/callbacks.py", "holds functions that are called back to be these", (Way.ITSELF, Way.OPAQUE)),
    ConstantPlace("trace/host_calls/generators.py", "holds generators that came in unseen", (Way.GENERATOR,)),
    ConstantPlace("trace/values/boxing.py", "holds arrays that came in unseen, and reads them at each call", (Way.ARRAY,)),
    ConstantPlace("autograd/api/custom.py", "loads the rules of functions that have some", (Way.ITSELF,)),
    ConstantPlace("autograd/arguments/attributes.py", "loads attributes of objects that are differentiated", (Way.ATTRIBUTES,)),
    ConstantPlace("numpy/support/memory_order.py", "calls NumPy on small arrays that lie like the operands", (Way.ARRAY,)),
    ConstantPlace("numpy/arrays/methods.py", "has arrays on the memory of other objects made at each call", (Way.OPAQUE,)),
    ConstantPlace("numpy/reductions/closeness.py", "guards whether arrays overlap", (Way.ARRAY,)),
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
