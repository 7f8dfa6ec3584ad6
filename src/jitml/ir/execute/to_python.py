"""Python code generation: how is a graph run without a compiler, and without looking at it again?

As one Python function of NumPy calls.

`interpret` is the oracle: it asks each node what it is, each time. Here that is done once: the graph becomes Python source, a
line a node, in which constants are made already, broadcasts are left to NumPy where it does them by itself, and bodies of
regions are functions of their own. Transforms that are called outside `jit` run their graphs so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial
from math import prod
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from jitml.interrupts import unset
from jitml.ir import ops
from jitml.ir.dims import Sym, bound, resolve
from jitml.ir.execute.in_place import UPDATES, Owned, additions, in_place
from jitml.ir.graph import Graph, Node, Value
from jitml.ir.op import Op
from jitml.ir.ops.contraction import free_axes
from jitml.ir.ops.indexed import COMBINE
from jitml.ir.types import DTYPES

Array = np.ndarray[Any, Any]
Run = Callable[..., Sequence[Array]]

_LARGE = 1 << 15  # bytes

WORK_OF_A_NODE = 1 << 12  # elements that take as long as what each node costs

_known: WeakKeyDictionary[Graph, dict[tuple[Owned, bool], Run]] = WeakKeyDictionary()
_meter: ContextVar[Callable[[int], None] | None] = ContextVar("jitml_meter", default=None)


@contextmanager
def metered(meter: Callable[[int], None]) -> Iterator[None]:
    """Let functions that are made inside the block tell `meter`, each time before they run, about how many nodes that takes."""
    token = _meter.set(meter)
    try:
        yield
    finally:
        unset(_meter, token)


def straight(graph: Graph, owned: Owned = frozenset()) -> Run:
    """The graph as a function of arrays, one for each input; made once per graph.

    Its results may be inputs, constants, or views of either: whoever hands them out copies them.

    Args:
        owned: the inputs that it may write to.

    >>> from jitml.ir.text.parser import parse
    >>> straight(parse("graph(a: f64[2]) { b: f64[2] = exp a; return b }"))(np.zeros(2))
    (array([1., 1.]),)
    """
    runs = _known.setdefault(graph, {})
    kind = (owned, _meter.get() is not None)
    if kind not in runs:
        runs[kind] = _GraphToPython(graph, owned).function()
    return runs[kind]


# What a call costs beside the arithmetic is mostly Python around it: these go to NumPy by the shortest way.
_REDUCE: dict[Op, np.ufunc] = {
    ops.reduce_sum: np.add,
    ops.reduce_prod: np.multiply,
    ops.reduce_max: np.maximum,
    ops.reduce_min: np.minimum,
    ops.reduce_all: np.logical_and,
    ops.reduce_any: np.logical_or,
}


class _GraphToPython:
    """Writes the source of one graph."""

    def __init__(self, graph: Graph, owned: Owned) -> None:
        self.graph, self.in_place = graph, in_place(graph, owned)
        self.lines: list[str] = []
        self.names: dict[str, Any] = {}
        self.code: dict[Value, str] = {v: f"a{n}" for n, v in enumerate(graph.inputs)}
        # Values that are not made before somebody needs the whole of them: what broadcasts to them.
        self.thin: dict[Value, str] = {}
        self.held: set[str] = set()  # variables that those are made of
        self.makers = graph.producers()
        self.added = additions(graph, self.in_place)
        self.last = {v: n for n, node in enumerate(graph.nodes) for v in (*node.inputs, *self.added.get(node, ())[2:])}
        self.last |= dict.fromkeys(graph.outputs, len(graph.nodes))

    def function(self) -> Run:
        if _meter.get() is not None:
            self.lines.append(f"{self._name(_meter.get)}()({self._work()})")
        early = [node for node in self.graph.nodes if node.op is ops.bind and node.inputs[0] in self.code]
        if any(node.op is ops.bind for node in self.graph.nodes):
            self.lines.append("sizes = {}")
        for node in early:
            self._bind(node)
        needless = {node for read, total, _ in self.added.values() for node in (read, total)}.union(early)
        for n, node in enumerate(self.graph.nodes):
            if node not in needless:
                self._node(node)
            self._forget(n, node)
        results = "".join(f"{self._whole(v)}, " for v in self.graph.outputs)
        arguments = ", ".join(f"a{n}" for n in range(len(self.graph.inputs)))
        source = "".join(f"    {line}\n" for line in (*self.lines, f"return ({results})"))
        exec(compile(f"def run({arguments}):\n{source}", "<jitml graph>", "exec"), self.names)
        run: Run = self.names["run"]
        return run

    def _work(self) -> int:
        made = [v for node in self.graph.nodes if node not in self.in_place.updates for v in node.outputs]
        return 1 + len(self.graph.nodes) + sum(prod(map(bound, v.shape)) for v in made) // WORK_OF_A_NODE

    def _name(self, thing: object) -> str:
        name = f"k{len(self.names)}"
        self.names[name] = thing
        return name

    def _set(self, value: Value, expression: str) -> None:
        self.code[value] = f"v{len(self.code)}"
        self.lines.append(f"{self.code[value]} = {expression}")

    def _forget(self, n: int, node: Node) -> None:
        """Drop what nobody reads any more: memory is given back as by the interpreter."""
        dead = [v for v in dict.fromkeys((*node.inputs, *node.outputs)) if self.last.get(v, -1) <= n]
        # What is thin may be needed as a whole later; it is small.
        names = [self.code[v] for v in dead if v in self.code and self.code[v][0] == "v" and self.code[v] not in self.held]
        if names:
            self.lines.append(f"del {', '.join(names)}")

    def _whole(self, value: Value) -> str:
        if value not in self.code:
            node = self.makers[value]
            if not node.inputs:
                with np.errstate(all="ignore"):
                    self.code[value] = self._name(_frozen(node.op.evaluate(**node.params)))
            else:
                self._set(value, f"{self._name(np.broadcast_to)}({self.thin[value]}, {self._name(value.shape)})")
        return self.code[value]

    def _copy(self, value: Value) -> str:
        """Memory of its own with a value's elements; a number that fills it is not filled in twice."""
        maker = self.makers.get(value)
        if maker is not None and maker.op is ops.full and not value.aval.syms:
            return f"{self._name(partial(maker.op.evaluate, **maker.params))}()"
        return f"{self._whole(value)}.copy()"

    def _node(self, node: Node) -> None:
        if node.op is ops.bind:
            self._bind(node)
        elif node.syms and not self._needs_no_sizes(node):
            self._sized(node)
        elif node.op in _WRITERS:
            _WRITERS[node.op](self, node)
        elif not node.inputs and not node.op.has_effect:
            pass  # a constant, made where it is asked for
        elif node.op.is_pointwise:
            self._pointwise(node)
        else:
            self._call(node)

    def _needs_no_sizes(self, node: Node) -> bool:
        """Bodies bind the sizes that they mention, and how much an update writes is seen from what it writes."""
        return (
            bool(node.bodies)
            or node.op is ops.scatter
            or (node.op is ops.dynamic_update_slice and set(node.params["step"]) <= {1})
        )

    def number(self, value: Value) -> int | str:
        """A number that is known, or the code of one that is not."""
        maker = self.makers.get(value)
        return int(maker.params["value"]) if maker is not None and maker.op is ops.full else self._whole(value)

    def _bind(self, node: Node) -> None:
        self.lines.append(f"sizes[{self._name(node.params['sym'])}] = int({self._whole(node.inputs[0])})")

    def _call(self, node: Node) -> None:
        """Whatever the op does."""
        arguments = [self._whole(v) for v in node.inputs] + [f"{word}={self._name(x)}" for word, x in node.params.items()]
        self._results(node, f"{self._name(node.op.evaluate)}({', '.join(arguments)})")

    def _results(self, node: Node, expression: str) -> None:
        if len(node.outputs) == 1 and not isinstance(node.op.aval(*(v.aval for v in node.inputs), **node.params), tuple):
            self._set(node.outputs[0], expression)
            return
        for v in node.outputs:
            self.code[v] = f"v{len(self.code)}"
        self.lines.append(f"{''.join(self.code[v] + ', ' for v in node.outputs) or '_'} = {expression}")

    def _sized(self, node: Node) -> None:
        """A node whose shapes are known when it runs."""
        arguments = "".join(f", {self._whole(v)}" for v in node.inputs)
        params = self._name(node.params)
        made = ".copy()" if node in self.in_place.copied else ""
        self._results(node, f"{self._name(_resolved)}({self._name(node.op)}, {params}, sizes{arguments}){made}")

    def _pointwise(self, node: Node) -> None:
        operands = node.inputs
        wide = [v for v in operands if v in self.code or v not in self.thin]
        code = [self._whole(v) if not wide or v not in self.thin or v in self.code else self.thin[v] for v in operands]
        product = self._power(node, code)
        expression = product or f"{self._name(node.op.evaluate)}({', '.join(code)})"
        keeps_dtype = product or isinstance(node.op.evaluate, np.ufunc) or node.op is ops.select
        if node.output.dtype == DTYPES["f16"] or not keeps_dtype:
            expression = f"{self._name(np.asarray)}({expression}, {self._name(node.output.dtype)})"
        self._set(node.output, expression)

    def _power(self, node: Node, operands: Sequence[str]) -> str | None:
        """A power that is a product of two or three, as in compiled code; NumPy takes a hundred times as long for a cube."""
        if node.op is not ops.pow or node.output.dtype.kind != "f" or node.inputs[1] not in self.thin:
            return None
        exponent = self.names.get(self.thin[node.inputs[1]])
        if exponent not in (2, 3):
            return None
        x, times = operands[0], self._name(np.multiply)
        square = f"{times}({x}, {x})"
        return square if exponent == 2 else f"{times}({square}, {x})"


def _frozen(x: Any) -> Array:
    array = np.asarray(x)
    array.flags.writeable = False
    return array


def _resolved(op: Op, params: Any, sizes: dict[Sym, int], *args: Any) -> Any:
    return op.evaluate(*args, **{name: resolve(param, sizes) for name, param in params.items()})


# ------------------------------------------------------------------------------------------ ops with a way of their own


def _full(w: _GraphToPython, node: Node) -> None:
    w.thin[node.output] = w._name(node.output.dtype.type(node.params["value"]))


def _broadcast(w: _GraphToPython, node: Node) -> None:
    (x,), axes = node.inputs, node.params["axes"]
    if x in w.thin and not w.makers[x].inputs:
        w.thin[node.output] = w.thin[x]
        return
    sizes = dict(zip(axes, x.shape))
    first = axes[0] if axes else len(node.output.shape)
    thin = tuple(sizes.get(a, 1) for a in range(first, node.output.ndim))
    source = x
    if thin != x.shape and x.shape != ():  # NumPy adds axes in front by itself
        w._set(source := Value(x.aval.with_shape(thin)), f"{w._whole(x)}.reshape({thin})")
    w.thin[node.output] = w._whole(source)
    w.held.add(w._whole(source))


def _method(pattern: Callable[[Node], str]) -> Callable[[_GraphToPython, Node], None]:
    def write(w: _GraphToPython, node: Node) -> None:
        w._set(node.output, f"{w._whole(node.inputs[0])}{pattern(node)}")

    return write


def _slice(w: _GraphToPython, node: Node) -> None:
    p = node.params
    w._set(node.output, f"{w._whole(node.inputs[0])}[{w._name(tuple(map(slice, p['start'], p['stop'], p['step'])))}]")


def _reduce(w: _GraphToPython, node: Node) -> None:
    reduce = w._name(_REDUCE[node.op].reduce)
    w._set(node.output, f"{reduce}({w._whole(node.inputs[0])}, {node.params['axes']}, {w._name(node.output.dtype)})")


def _nothing(w: _GraphToPython, node: Node) -> None:
    """Of a node that is there for floating-point errors, which nobody hears of."""


def _same(w: _GraphToPython, node: Node) -> None:
    w._set(node.output, w._whole(node.inputs[0]))


def _convert(w: _GraphToPython, node: Node) -> None:
    if node.inputs[0].dtype.kind == "c":  # NumPy would warn of imaginary parts that are lost
        w._call(node)
        return
    w._set(node.output, f"{w._whole(node.inputs[0])}.astype({w._name(node.output.dtype)})")


def _gather(w: _GraphToPython, node: Node) -> None:
    x, *indices = map(w._whole, node.inputs)
    w._set(node.output, f"{x}[{', '.join([':'] * node.params['axis'] + indices)}]")


def _concat(w: _GraphToPython, node: Node) -> None:
    parts = "".join(f"{w._whole(v)}, " for v in node.inputs)
    w._set(node.output, f"{w._name(np.concatenate)}(({parts}), {node.params['axis']})")


def _dot(w: _GraphToPython, node: Node) -> None:
    """Vectors and matrices as `np.dot` has them; outer products; the rest as rows by columns."""
    (x, y), (xb, yb), (xc, yc) = node.inputs, node.params["batch"], node.params["contract"]
    if not xb and max(x.ndim, y.ndim) <= 2 and len(xc) <= 1 and x.dtype.kind in "fc":
        if not xc:
            w._set(node.output, f"{w._name(np.multiply.outer)}({w._whole(x)}, {w._whole(y)})")
            return
        left = w._whole(x) + (".T" if xc[0] != x.ndim - 1 else "")
        right = w._whole(y) + (".T" if yc[0] != 0 else "")
        # Of what is large, `dot` spends more on zeros in the result than `matmul` on everything else.
        times = w._name(np.dot if node.output.aval.nbytes < _LARGE or 1 in (x.ndim, y.ndim) else np.matmul)
        w._set(node.output, f"{times}({left}, {right})")
        return
    xf, yf = free_axes(x.ndim, xb, xc), free_axes(y.ndim, yb, yc)
    batch = [x.shape[a] for a in xb]
    rows, depth, columns = (prod(v.shape[a] for a in axes) for v, axes in ((x, xf), (x, xc), (y, yf)))
    left = _viewed(w, x, (*xb, *xf, *xc), (*batch, rows, depth))
    right = _viewed(w, y, (*yb, *yc, *yf), (*batch, depth, columns))
    product = f"{w._name(np.matmul)}({left}, {right})"
    shape = node.output.shape
    w._set(node.output, product if shape == (*batch, rows, columns) else f"{product}.reshape({shape})")


def _viewed(w: _GraphToPython, x: Value, perm: tuple[int, ...], shape: tuple[int, ...]) -> str:
    """Its axes in another order, then in another shape."""
    code = w._whole(x)
    if perm != tuple(range(x.ndim)):
        code += f".transpose({perm})"
    return code if shape == tuple(x.shape[a] for a in perm) else f"{code}.reshape({shape})"


def _empty(w: _GraphToPython, node: Node) -> None:
    w._set(node.output, f"{w._name(np.empty)}({node.output.shape}, {w._name(node.output.dtype)})")


def _update(w: _GraphToPython, node: Node) -> None:
    """`x[place] = v`, into `x` itself if nobody else sees it."""
    if not node.output.ndim:
        w._call(node)
        return
    (x, v), starts = node.inputs[:2], node.inputs[2:]
    w._set(node.output, w._whole(x) if node in w.in_place.updates else w._copy(x))
    into = w.code[node.output]
    if node.op is ops.scatter:
        places = ["slice(None)"] * node.params["axis"] + [w._whole(start) for start in starts]
        if node.params["combine"] != "set":
            at = w._name(COMBINE[node.params["combine"]].at)
            w.lines.append(f"{at}({into}, ({', '.join(places)},), {w._whole(v)})")
            return
        place = ", ".join(places).replace("slice(None)", ":")
    else:
        place = _place(w, node.params["start"] if node.op is ops.update_slice else starts, v, node.params["step"], x)
    if node in w.added:
        # A window of what is written to, whatever was read of it before.
        w.lines.append(f"part = {into}[{place}]")
        w.lines.append(f"{w._name(np.add)}(part, {w._whole(w.added[node][2])}, part)")
    else:
        w.lines.append(f"{into}[{place}] = {w._whole(v)}")


def _place(w: _GraphToPython, starts: Sequence[Value | int], part: Value, step: Sequence[int], whole: Value) -> str:
    """A window as an index; nothing is computed of what is known, and axes at the end that it has all of are left out."""
    axes = []
    for k, (a, n, s, most) in enumerate(zip(starts, part.shape, step, whole.shape)):
        first = a if isinstance(a, int) else w.number(a)
        length = f"({w._whole(part)}.shape[{k}]-1)*{s}+1" if type(n) is not int else (n - 1) * s + 1
        if n == 0:
            axes.append(":0")
        elif (first, n, s) == (0, most, 1):
            axes.append(":")
        else:
            end = first + length if isinstance(first, int) and isinstance(length, int) else f"{first}+{length}"
            axes.append(f"{first}:{end}" + (f":{s}" if s != 1 else ""))
    while axes[1:] and axes[-1] == ":":
        axes.pop()
    return ", ".join(axes)


def _window(w: _GraphToPython, node: Node) -> None:
    x, starts = node.inputs[0], node.inputs[1:]
    place = _place(w, starts, node.output, node.params["step"], x) if starts else "()"
    w._set(node.output, f"{w._whole(x)}[{place}]{'.copy()' if node in w.in_place.copied else ''}")


def _loop(w: _GraphToPython, node: Node) -> None:
    given = frozenset(k + 1 for k in w.in_place.given[node])
    body, carried = w._name(straight(node.params["body"], given)), node.params["carried"]
    trip, captured = w._whole(node.inputs[0]), [w._whole(v) for v in node.inputs[1 + carried :]]
    state = _state(w, node, node.inputs[1 : 1 + carried])
    arguments = ", ".join([f"{w._name(np.int64)}(i)", *_held(w, node), *captured])
    w.lines.append(f"for i in range(int({trip})): {state}= {body}({arguments})")


def _while(w: _GraphToPython, node: Node) -> None:
    test, body = w._name(straight(node.params["test"])), w._name(straight(node.params["body"], w.in_place.given[node]))
    carried = node.params["carried"]
    captured = [w._whole(v) for v in node.inputs[carried:]]
    state = _state(w, node, node.inputs[:carried])
    arguments = ", ".join([*_held(w, node), *captured])
    w.lines.append(f"while {test}({arguments})[0]: {state}= {body}({arguments})")


def _cond(w: _GraphToPython, node: Node) -> None:
    then, orelse = (w._name(straight(node.params[name], w.in_place.given[node])) for name in ("then", "orelse"))
    which, *operands = map(w._whole, node.inputs)
    arguments = ", ".join(operands)
    for v in node.outputs:
        w.code[v] = f"v{len(w.code)}"
    state = "".join(f"{name}, " for name in _held(w, node)) or "_ "
    w.lines.append(f"{state}= {then}({arguments}) if {which} else {orelse}({arguments})")


def _state(w: _GraphToPython, node: Node, initial: Sequence[Value]) -> str:
    """Variables for what is carried, set; as the target of an assignment."""
    copied = w.in_place.given[node] - w.in_place.moved[node]
    for k, (v, x) in enumerate(zip(node.outputs, initial)):
        w._set(v, w._copy(x) if k in copied else w._whole(x))
    return "".join(f"{name}, " for name in _held(w, node)) or "_ "


def _held(w: _GraphToPython, node: Node) -> list[str]:
    return [w.code[v] for v in node.outputs]


_WRITERS: dict[Op, Callable[[_GraphToPython, Node], None]] = {
    **dict.fromkeys(_REDUCE, _reduce),
    ops.full: _full,
    ops.broadcast: _broadcast,
    ops.transpose: _method(lambda node: f".transpose({node.params['perm']})"),
    ops.reshape: _method(lambda node: f".reshape({node.params['shape']})"),
    ops.slice: _slice,
    ops.convert: _convert,
    ops.stop_gradient: _same,
    ops.gather: _gather,
    ops.concat: _concat,
    ops.dot_general: _dot,
    ops.empty: _empty,
    **dict.fromkeys(UPDATES, _update),
    ops.dynamic_slice: _window,
    ops.observe: _nothing,
    ops.loop: _loop,
    ops.while_: _while,
    ops.cond: _cond,
}
