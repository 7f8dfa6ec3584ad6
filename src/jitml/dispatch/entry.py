"""Guarded entry: how is a compiled call made?

`bind` joins a `Traced` and the code that executes its graph into one Python function.

The function takes the flattened arguments, runs the host program (guards, loads, numbers), executes, and builds the result;
it answers `MISS`, before anything has been changed, where a check fails. It is written as source and compiled once per
variant: plain `is` and `==` on locals is the cheapest guard that Python has. What is called often gets a native entry in its
place (`jitml.native_entry`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import optree

from jitml.device.view import DeviceView, fetch, store
from jitml.errors import JitmlError
from jitml.interrupts import pass_on
from jitml.ir.interpret import interpret
from jitml.trace.record.device_arrays import as_returned
from jitml.trace.record.guards import Compute, HostConst, Slot
from jitml.trace.record.pytree import unflatten
from jitml.trace.traced import Either, FixedResult, FromGraph, FromHost, Repeated, Result, Traced

if TYPE_CHECKING:
    from jitml.trace.storage.index_maps import Step

MISS = object()
_NO_NUMBERS: Mapping[Any, int] = {}
_NO_NAMES: Mapping[int, str] = {}
Array = np.ndarray[Any, Any]
Enter = Callable[..., Any]
Admission = Callable[[Sequence[Any]], bool]
Execute = Callable[..., Sequence[Array]]  # one argument per graph input: arrays, or numbers for shape (); results in true shape


def bind(traced: Traced, execute: Execute) -> Enter:
    """The function `(leaves) -> result or MISS` of one variant; see `admission` too."""
    body, names = _begun(traced)
    inputs = ", ".join(f"s{s}" for s in traced.entries)
    if (tell := telling(traced)) is not None:
        body += ["try:", f"    r = execute({inputs})", "except BaseException as e:", "    tell(e)", "    raise"]
        names["tell"] = tell
    else:
        body.append(f"r = execute({inputs})")
    names["execute"] = execute
    body += _ending(traced, names)
    enter = _made(body, names)
    enter.execute = execute  # type: ignore[attr-defined]  # who asks which program answers
    return enter


def finishing(traced: Traced, shaped: Callable[[Any], Any] | None) -> tuple[Callable[..., Any], tuple[Slot, ...]]:
    """The function `(outputs, *slots) -> result` that ends a call of a variant, and which slots of the host program these are.

    Args:
        shaped: gives outputs their true shapes, where only the run tells them.
    """
    names: dict[str, Any] = {"shaped": shaped}
    body = [*(["r = shaped(r)"] if shaped is not None else []), *_ending(traced, names)]
    asked = _function("finish", ["r"], body, {}).__code__.co_names
    slots = tuple(slot for slot in range(len(traced.host.names)) if f"s{slot}" in asked)
    return _function("finish", ["r", *(f"s{slot}" for slot in slots)], body, names), slots


def _ending(traced: Traced, names: dict[str, Any]) -> list[str]:
    """The lines from the outputs `r` on, with the names that they refer to."""
    body: list[str] = []
    names |= {"unflatten": unflatten, "see": see, "copyto": np.copyto}
    if traced.numbers:
        body.append(f"z = {{{', '.join(f'n{n}: int(r[{position}])' for n, position in enumerate(traced.numbers.values()))}}}")
        names |= {f"n{n}": number for n, number in enumerate(traced.numbers)}
    body += [f"copyto(s{array}, s{copy})" for array, copy in traced.copied]
    *repeated, result = _results(traced, names, body)
    body += [f"c{n} = {code}" for n, code in enumerate(repeated)]
    if traced.changes:
        body.append(f"y, z = {result}")
        body += [f"p{n}(s{change.slot}, z[{n}])" for n, change in enumerate(traced.changes)]
        names |= {f"p{n}": change.put for n, change in enumerate(traced.changes)}
        body.append("return y")
    else:
        body.append(f"return {result}")
    return body


class CallReach(NamedTuple):
    """What the program of a variant gets hold of in a call.

    Args:
        inputs: what it is given.
        changed: arrays, containers and objects that the call changes, with their names.
        lent: objects that are handed on by their addresses, as generators of random numbers are, with their names.
    """

    inputs: list[Any]
    changed: list[tuple[Any, str]]
    lent: list[tuple[Any, str]]


def reached(traced: Traced, leaves: Sequence[Any]) -> CallReach | None:
    """What a call that a variant admits gives to its program; None if nobody can tell."""
    host = traced.host
    changed = [traced.entries[entry] for entry in traced.aliases.values()] + [array for array, _ in traced.copied]
    changed += [change.slot for change in traced.changes]
    given = (step.operands[0] for step in host.steps if isinstance(step, Compute) and step.function is id)
    lent = [slot for slot in given if not isinstance(slot, HostConst)]
    try:
        slots = host.values(leaves, [*traced.entries, *changed, *lent])
    except Exception as error:
        pass_on(error)
        return None
    named = ([(slots[slot], host.name(slot)) for slot in dict.fromkeys(some)] for some in (changed, lent))
    return CallReach([slots[slot] for slot in traced.entries], *named)


def _begun(traced: Traced) -> tuple[list[str], dict[str, Any]]:
    """The lines that run the host program, and end where that is all that is asked; and the names that they refer to."""
    lines, names = traced.host.render("return MISS")
    arguments = sorted(traced.host.arguments, key=traced.host.arguments.__getitem__)
    body = [f"({', '.join(f's{s}' for s in arguments)},) = leaves"] if arguments else []
    if any(" = " in line for line in lines):
        body += ["try:", *(f"    {line}" for line in lines), "except Exception as e:", "    pass_on(e)", "    return MISS"]
    else:
        body += lines
    body.append("if only_asked: return True")
    return body, names | {"MISS": MISS, "pass_on": pass_on}


def _made(body: Sequence[str], names: dict[str, Any]) -> Enter:
    return _function("enter", ["leaves", "only_asked=False"], body, names)


def _function(name: str, parameters: Sequence[str], body: Sequence[str], names: dict[str, Any]) -> Any:
    source = f"def {name}({', '.join(parameters)}):\n" + "".join(f"    {line}\n" for line in body)
    exec(compile(source, "<jitml entry>", "exec"), names)
    return names[name]


def admission(enter: Enter) -> Admission:
    """Whether calls are for the variant that is entered so; nothing is computed."""
    return lambda leaves: enter(leaves, only_asked=True) is not MISS


def telling(traced: Traced) -> Callable[[BaseException], None] | None:
    """What says of an exception from outside, as Ctrl-C, which of the caller's arrays it may have left half written."""
    copies = {copy for _, copy in traced.copied}
    slots = dict.fromkeys(traced.entries[entry] for entry in traced.aliases.values())
    written = ", ".join(traced.host.name(slot) for slot in slots if slot not in copies)
    return partial(_tell, written) if written else None


def _tell(written: str, error: BaseException) -> None:
    if not isinstance(error, (JitmlError, RuntimeWarning)):
        error.add_note(f"The compiled function was writing {written}: some of the elements may be new.")


def _leaves(traced: Traced, names: dict[str, Any], body: list[str]) -> list[str]:
    """An expression for each returned leaf; an array that may be returned several times is made once, in a line of its own."""
    distinct = {id(result): result for result in traced.results}
    parts = [part for result in distinct.values() for part in _parts(result)]
    uses = Counter(map(id, (*traced.results, *parts)))
    known: dict[int, str] = {}
    for n, result in enumerate((*parts, *traced.results)):
        if uses[id(result)] > 1 and id(result) not in known and not isinstance(result, Repeated):
            code = _leaf(traced, result, f"w{n}", names, known)
            known[id(result)] = f"v{n}"
            body.append(f"v{n} = {code}")
    return [_leaf(traced, result, f"f{n}", names, known) for n, result in enumerate(traced.results)]


def _parts(result: Result) -> list[Result]:
    """The arrays among which a leaf is chosen."""
    if not isinstance(result, Either):
        return []
    return [part for x in (result.then, result.orelse) for part in (_parts(x) if isinstance(x, Either) else [x])]


def _results(traced: Traced, names: dict[str, Any], body: list[str]) -> list[str]:
    """How the objects that are in several places are made, and the result."""
    leaves = iter(_leaves(traced, names, body))
    return [_tree(spec, list(islice(leaves, spec.num_leaves)), n, names) for n, spec in enumerate(traced.out_specs)]


def _tree(spec: optree.PyTreeSpec, leaves: Sequence[str], number: int, names: dict[str, Any]) -> str:
    if spec.is_leaf() and len(leaves) == 1:
        return leaves[0]
    if spec.type is tuple and all(child.is_leaf() for child in spec.children()) and leaves:
        return f"({', '.join(leaves)},)"
    names[f"spec{number}"] = spec
    return f"unflatten(spec{number}, [{', '.join(leaves)}])"


def _leaf(traced: Traced, result: Result, name: str, names: dict[str, Any], known: Mapping[int, str]) -> str:
    if id(result) in known:
        return known[id(result)]
    if traced.device is not None and isinstance(result, (FromGraph, FromHost)):
        names["as_returned"] = as_returned
        return f"as_returned({_made_by(traced, result, name, names)})"
    return _made_by(traced, result, name, names, known)


def _made_by(traced: Traced, result: Result, name: str, names: dict[str, Any], known: Mapping[int, str] = _NO_NAMES) -> str:
    match result:
        case FixedResult(value):
            names[name] = value
            return name
        case Either(position, then, orelse):
            then_code, else_code = (_leaf(traced, x, f"{name}{n}_", names, known) for n, x in enumerate((then, orelse)))
            return f"({then_code} if r[{position}] else {else_code})"
        case Repeated(number):
            return f"c{number}"
        case FromHost(slot, steps, writeable, itself):
            base = f"s{slot}"
            if itself:
                return base
        case FromGraph(position, kind, steps, writeable, itself):
            base = f"r[{position}]"
            if kind is np.generic:
                return f"{base}[()]"
            if kind is not np.ndarray:
                return f"{base}.item()"
    if not steps and writeable and itself:
        return base
    names[name] = steps
    return f"see({base}, {name}, {writeable}{', z' if traced.numbers else ''})"


def see(array: Array, steps: Sequence[Step], writeable: bool, numbers: Mapping[Any, int] = _NO_NUMBERS) -> Array:
    """NumPy's view of an array through the steps that a traced view took.

    Args:
        numbers: what its sizes and starts are in this call.
    """
    array = array if steps else array.view()
    for step in steps:
        array = step.show(array, numbers)
    if not writeable and array.flags.writeable:
        array = array.view()
        array.flags.writeable = False
    return array


def interpreted(traced: Traced) -> Execute:
    """Execute by the graph interpreter, writing into the caller's arrays at the end."""

    def execute(*inputs: Any) -> Sequence[np.ndarray[Any, Any]]:
        given = [fetch(x) if type(x) is DeviceView else x for x in inputs]
        arrays = [np.asarray(x, v.dtype) for x, v in zip(given, traced.graph.inputs)]
        # An array of which sizes are left open is flat in the graph.
        results = interpret(traced.graph, [x.reshape(-1) if v.ndim < x.ndim else x for x, v in zip(arrays, traced.graph.inputs)])
        # NumPy may have answered with an argument, or a view of one: each output has memory of its own.
        outputs = [np.array(x, order="C") for x in results]
        for output, entry in traced.aliases.items():
            put = store if type(inputs[entry]) is DeviceView else np.copyto
            put(inputs[entry], outputs[output].reshape(inputs[entry].shape))
        return outputs

    return execute
