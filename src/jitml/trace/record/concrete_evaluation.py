"""Concrete evaluation of examples: what is a traced value in the call that is being traced?

`examples_of` computes it from the arguments, by interpretation.

A host call tells by its result of today what its results will be. The value itself never gets into the compiled program, so
inside loops those of the first iteration will do. Loops before are interpreted, or run as Python functions if that takes long;
of what the longest compute nothing is known.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from jitml.device.view import DeviceView, fetch
from jitml.errors import Cause, MoreIterations
from jitml.imports.late import late
from jitml.interrupts import pass_on
from jitml.ir import ops
from jitml.ir.dims import resolve
from jitml.ir.graph import Graph, Node, Value
from jitml.ir.interpret import Watch, watched
from jitml.ir.op import recording
from jitml.ir.run_state import postponing
from jitml.ir.types import F64, I64
from jitml.records import dataclass, field
from jitml.trace.record.array_memory import native_copy
from jitml.trace.record.parts import CallPart, LocalPart
from jitml.trace.record.recording import Trace, active_trace, unsupported

if TYPE_CHECKING:
    from jitml.ir.execute import to_python
else:
    to_python = late("jitml.ir.execute.to_python")


Array = np.ndarray[Any, Any]
_FEW_NODES = 1_000  # what takes more in the bodies of a loop is worth a function
_INTERPRETED = 10  # times as long does a node take then
_MOST_WORK = 1_000_000  # nodes that are run in the bodies of loops, while one recording goes on
_MOST_BYTES = 1 << 28


class NoExample(LookupError):
    """A value depends on what is not known yet."""


class TooLong(NoExample):
    """A loop is not worth being run to its end."""


def examples_of(values: Sequence[Value]) -> list[Array]:
    """What these values of the current trace are in this call; the caller's arrays are read as they are now.

    What a loop carries may be unknown yet: then ones of that shape and dtype stand for the values themselves.
    """
    return [_example_or_ones(value) for value in values]


def _example_or_ones(value: Value) -> Array:
    try:
        return _examples([value])[0]
    except NoExample:
        if not value.aval.is_static:
            unsupported("a host call inside a loop or branch depends on what is not known there yet")
        return np.ones(value.shape, value.dtype)


def address_of(value: Value) -> Array:
    """The same for an address, which nothing can stand for."""
    try:
        return _examples([value])[0]
    except NoExample:
        unsupported("a generator of random numbers is not known where a loop or branch draws from it", cause=Cause.RANDOM)


def example_of_size(value: Value) -> int | None:
    """What an integer is in this call, as a hint; None if that cannot be told, 0 if the call will not get so far."""
    try:
        return int(_examples([value])[0])
    except NoExample:
        return None
    except MoreIterations:
        raise
    except Exception as error:  # the program's own: the call raises before, whatever the size is taken for
        pass_on(error)
        return 0


@dataclass
class Concrete(CallPart):
    """What values are in this call.

    examples: of those that have been asked for.
    constants: what values are in every call.
    bytes: of all that is kept.
    work: what has been run of loops for them.
    """

    examples: dict[Value, Array] = field(default_factory=dict)
    constants: dict[Value, Array] = field(default_factory=dict)
    bytes: int = 0
    work: int = 0


class EnteredValues(dict[Value, Value], LocalPart):
    """Inputs of a trace that are not captured: what they begin with, in a trace around."""


def guess(value: Value) -> int:
    """A truth, an integer or the bits of a double in this call, as far as that can be told: 0 otherwise."""
    with np.errstate(all="ignore"):
        try:
            found = _examples([value])[0]
            return int(np.asarray(found).view(I64) if value.dtype == F64 else found)
        except TooLong:
            unsupported("which way the function goes depends on what a long loop computes", "Decide it outside.", Cause.SLOW)
        except NoExample:  # only a loop's first iteration knows
            return 0
        except MoreIterations:
            raise
        except Exception as error:  # the call will not get so far either, or NumPy answers it
            pass_on(error)
            for part in [*active_trace().call.values()]:
                part.contradicted()
            return 0


def _examples(values: Sequence[Value]) -> list[Array]:
    """What others would see of it is dropped: the program is going to do it."""
    return postponing(_compute_examples, values)[0]


def _compute_examples(values: Sequence[Value]) -> list[Array]:
    trace = active_trace()
    known = trace.call[Concrete].examples
    outer = _outer(trace)
    env: dict[Value, Array] = {}
    with recording(None):
        for step in _needed(values, known, outer, trace):
            if isinstance(step, Node):
                env.update(zip(step.outputs, _example_of_node(trace, step, env, known)))
            else:
                source = outer.get(step)
                env[step] = _example_of_input(trace, step) if source is None else _example_known(source, env, known)
        found = [_example_known(v, env, known) for v in values]
    _keep(trace.root, env)
    known.update(zip(values, found))
    return found


def _keep(root: Trace, env: dict[Value, Array]) -> None:
    """Later examples depend on the same values: they are kept as long as there is room for them."""
    concrete = root.call[Concrete]
    for value, array in env.items():
        if concrete.bytes < _MOST_BYTES:
            concrete.bytes += array.nbytes
            concrete.examples[value] = array


def keep_known(root: Trace, env: dict[Value, Array]) -> None:
    """The same of what no call changes; nobody writes into it."""
    concrete = root.call[Concrete]
    for value, array in env.items():
        if concrete.bytes < _MOST_BYTES:
            concrete.bytes += array.nbytes
            concrete.constants[value] = shown = array.view()
            shown.flags.writeable = False


def remember(values: Sequence[Value], examples: Sequence[Any]) -> None:
    """Results of a host call, which need not be computed again."""
    active_trace().call[Concrete].examples.update((v, np.asarray(x)) for v, x in zip(values, examples))


def _outer(trace: Trace) -> dict[Value, Value]:
    """Which value of an enclosing trace an input stands for."""
    outer: dict[Value, Value] = {}
    scope: Trace | None = trace
    while scope is not None:
        outer |= {inner: value for value, inner in scope.builder.captured.items()} | scope.local[EnteredValues]
        scope = scope.parent
    return outer


def _needed(
    values: Sequence[Value], known: dict[Value, Array], outer: dict[Value, Value], trace: Trace
) -> Iterator[Node | Value]:
    """The nodes and inputs that the values depend on, each after what it depends on itself."""
    maker = trace.builder.producer
    done: set[Node | Value] = set()
    stack: list[tuple[Node | Value, bool]] = [(maker(v) or v, False) for v in reversed(values) if v not in known]
    while stack:
        step, is_ready = stack.pop()
        if step in done:
            continue
        if is_ready:
            done.add(step)
            yield step
            continue
        stack.append((step, True))
        before: list[Value] = []
        if isinstance(step, Node):
            before = [*step.inputs, *(trace.sizes.values[sym] for sym in step.syms)]
        elif step in outer:
            before = [outer[step]]
        stack += [(maker(v) or v, False) for v in before if v not in known]


def _example_known(value: Value, env: dict[Value, Array], known: dict[Value, Array]) -> Array:
    return env[value] if value in env else known[value]


def _example_of_node(trace: Trace, node: Node, env: dict[Value, Array], known: dict[Value, Array]) -> list[Array]:
    """What a node makes in this call."""
    if _reserves_much(node):
        raise NoExample
    sizes = {sym: int(_example_known(trace.sizes.values[sym], env, known)) for sym in node.syms}
    params = {name: resolve(param, sizes) for name, param in node.params.items()}
    return run_whole(trace.root, node, [_example_known(v, env, known) for v in node.inputs], params)


def run_whole(root: Trace, node: Node, operands: Sequence[Array], params: dict[str, Any], most: int = _MOST_WORK) -> list[Array]:
    """What a node makes, with all iterations of the loops in it as long as there is time for them.

    Args:
        most: nodes that may have been run in all.

    Raises:
        TooLong: that is not enough.
    """
    if not node.bodies:
        return _examples_of_node(node, operands, params)

    concrete = root.call[Concrete]

    def spend(nodes: int) -> None:
        concrete.work += nodes
        if concrete.work > most:
            raise TooLong

    try:
        with watched(_limited(spend)):
            loops = (inner for inner in node.walk() if inner.op in (ops.loop, ops.while_))
            if all(body.nodes for loop in loops for body in loop.bodies.values()):
                return _examples_of_node(node, operands, params)
    except TooLong:
        pass
    if node.syms:
        raise TooLong
    graph = Graph(tuple(dict.fromkeys(node.inputs)), (node,), node.outputs)
    with to_python.metered(spend), np.errstate(all="ignore"):
        results = to_python.straight(graph)(*dict(zip(node.inputs, operands)).values())
    return [np.array(x, v.dtype) for v, x in zip(node.outputs, results)]


def _limited(spend: Callable[[int], None]) -> Watch:
    """A watch that ends what is better not interpreted."""
    work = 0

    def see(node: Node, inputs: Sequence[Array], outputs: Sequence[Array]) -> None:
        nonlocal work
        nodes = 1 + sum(x.size for x in (*inputs, *outputs)) // to_python.WORK_OF_A_NODE
        work += nodes
        spend(_INTERPRETED * nodes)
        if work > _FEW_NODES:
            raise TooLong

    return see


def _examples_of_node(node: Node, operands: Sequence[Array], params: dict[str, Any]) -> list[Array]:
    """What a node makes of these operands, by NumPy."""
    results = node.op.run(tuple(operands), params)
    return [np.asarray(x, v.dtype) for v, x in zip(node.outputs, results if isinstance(results, tuple) else (results,))]


def _reserves_much(node: Node) -> bool:
    """Whether it makes memory for a size so large that it must not be copied: compiled code touches what is used of it."""
    avals = (inner.output.aval for inner in node.walk() if inner.op is ops.empty)
    return any(aval.is_static and aval.nbytes > _MOST_BYTES for aval in avals)


def _example_of_input(trace: Trace, value: Value) -> Array:
    """An input of the root trace: what the caller passed, or the function found outside itself."""
    root = trace.root
    if value in root.inputs.scalars:
        return np.asarray(root.inputs.scalars[value][1], value.dtype)
    if value in root.builder.inputs:
        entry = root.inputs.origins[root.builder.inputs.index(value)]
        array = root.inputs.arrays.get(entry)
        if array is not None:
            shown = fetch(array) if type(array) is DeviceView else array
            return native_copy(shown).reshape(-1 if value.ndim == 1 else array.shape)
    raise NoExample
