"""Kernel interpreter: what should a kernel's answer be?

Run it on NumPy arrays, with every index checked: the oracle of the emitters.

The kernel is written as a Python function and compiled once. Scalars are NumPy scalars, so dtypes are kept exactly and
the functions of `Apply` mean what the ops of `jitml.ir` mean. A vector loop without branches, or an innermost thread loop,
runs all its lanes at once as NumPy vectors, which gives the same as one lane after the other for every kernel that `verify`
accepts; sums over the lanes associate as NumPy's do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from math import prod
from typing import Any

import numpy as np

import jitml.ir.ops  # noqa: F401  # fills OPS
from jitml.errors import LoweringError
from jitml.ir.op import OPS
from jitml.ir.ops.random import DISTRIBUTIONS, routine
from jitml.ir.ops.regions import exception_named, failed_check
from jitml.ir.types import DType
from jitml.kernels.ir import (
    INFIX,
    Alloc,
    Apply,
    Buffer,
    Cell,
    Check,
    Const,
    Draw,
    Expr,
    If,
    Kernel,
    Let,
    Load,
    Loop,
    Observe,
    Stmt,
    Store,
    Update,
    Var,
    While,
    walk,
)

Array = np.ndarray[Any, Any]
_COMBINE: dict[str, np.ufunc] = {
    "add": np.add,
    "mul": np.multiply,
    "max": np.maximum,
    "min": np.minimum,
    "or": np.bitwise_or,
    "and": np.bitwise_and,
}


def interpret(kernel: Kernel, arrays: Mapping[str, Array]) -> None:
    """Run a kernel; what it writes is in `arrays` afterwards.

    Args:
        arrays: by parameter name. An array of the parameter's shape is used as it is, with its own strides; any other
            is taken as memory that starts with the parameter's first element.

    Raises:
        IndexError: an access is outside its buffer (a bug in the kernel), or whatever a failing `Check` names.
    """
    compile_kernel(kernel)({b.name: view_as(arrays[b.name], b) for b in kernel.params})


def view_as(array: Array, buffer: Buffer) -> Array:
    """The array's memory seen with the buffer's shape and strides; writes go through."""
    if array.dtype != buffer.dtype:
        raise TypeError(f"{buffer.name} is {buffer.dtype}, not {array.dtype}")
    if array.shape == buffer.shape:
        return array
    if array.size < buffer.reach:
        raise ValueError(f"{buffer.name} does not fit into {array.size} elements")
    steps = tuple(s * array.itemsize for s in buffer.element_strides)
    return np.lib.stride_tricks.as_strided(array, buffer.shape, steps)


KernelFunction = Callable[[Mapping[str, Array]], None]


def write_kernel(kernel: Kernel) -> tuple[str, Mapping[str, Any]]:
    """The kernel as the text of a Python function, and the values of the names in it."""
    writer = _KernelToPython(kernel)
    return "\n".join(writer.lines), writer.namespace


def compile_kernel(kernel: Kernel) -> KernelFunction:
    """The kernel as a Python function of its parameters' arrays (each of its parameter's shape)."""
    return load_kernel(*write_kernel(kernel))


def load_kernel(text: str, values: Mapping[str, Any]) -> KernelFunction:
    """The function that `write_kernel` has written."""
    namespace = dict(values)
    exec(text, namespace)
    function = namespace["kernel"]

    def run(arrays: Mapping[str, Array]) -> None:
        with np.errstate(all="ignore"):
            function(arrays)

    return run


# ------------------------------------------------------------------------------------ what the written code calls


def _load(name: str, array: Array, *at: Any) -> Any:
    _check_bounds(name, array, at)
    return array[at]


def _store(name: str, array: Array, at: tuple[Any, ...], value: Any, combine: np.ufunc | None) -> None:
    _check_bounds(name, array, at)
    if isinstance(value, np.ndarray) and value.ndim and not any(map(np.ndim, at)):
        value = value[-1]  # one element: there is but one lane, or the verifier would have seen a race
    if combine is None:
        array[at] = value
    else:
        combine.at(array, at, value)


def _check_bounds(name: str, array: Array, at: tuple[Any, ...]) -> None:
    for axis, (k, n) in enumerate(zip(at, array.shape, strict=True)):
        low, high = (int(k.min()), int(k.max())) if isinstance(k, np.ndarray) else (int(k),) * 2  # to compare is Python's
        if low < 0 or high >= n:
            raise IndexError(f"{name}: index {low}..{high} is outside axis {axis} of {list(array.shape)}")


def _apply(dtype: DType, evaluate: Callable[..., Any], *args: Any) -> Any:
    """An op on scalars or lanes; some ops return 0-d arrays for scalars, or another dtype."""
    result = evaluate(*args)
    return result.astype(dtype) if np.ndim(result) else dtype.type(result)


def _fold(combine: np.ufunc, cell: Any, value: Any, lanes: int) -> Any:
    """A cell after every lane has been combined into it."""
    if not lanes:
        return cell
    total = combine.reduce(np.broadcast_to(value, (lanes,)), dtype=cell.dtype)
    return combine(cell, total, dtype=cell.dtype)


def _require(condition: Any, error: str, message: str, *values: Any) -> None:
    if np.all(condition) or issubclass(exception_named(error), Warning):
        return
    first = int(np.argmin(condition))
    shown = [int(v[first]) if np.ndim(v) else int(v) for v in values]
    raise failed_check(error)(message.format(*shown))


def _draw(name: str, dtype: DType, *args: Any) -> Any:
    legacy = name.startswith("jitml_legacy_")
    (distribution,) = (d for d in DISTRIBUTIONS if routine(d, legacy, dtype) == name)
    _, number = OPS["random"].evaluate(*args, distribution=distribution, legacy=legacy, shape=(), dtype=dtype)
    return number[()]


def _scratch(shape: tuple[int, ...], dtype: DType) -> Array:
    """Memory full of garbage, so that reading before writing shows."""
    return np.full(prod(shape) * dtype.itemsize, 0xA5, np.uint8).view(dtype).reshape(shape)


def _indices(start: Any, stop: Any, step: int) -> Iterator[Any]:
    return map(np.int64, range(int(start), int(stop), step))


_RUNTIME = {f.__name__: f for f in (_load, _store, _apply, _fold, _require, _draw, _scratch, _indices)} | {"np": np}


# -------------------------------------------------------------------------------------------------- writing Python


class _KernelToPython:
    """A kernel as Python source; the objects that the source mentions go into `namespace`.

    `lanes` is the name of the index of the vector loop that is being written lane by lane at once, and `own` the cells
    that each of its lanes has for itself.
    """

    def __init__(self, kernel: Kernel) -> None:
        self.namespace: dict[str, Any] = dict(_RUNTIME)
        self.lines = ["def kernel(arrays):"]
        self.lanes: str | None = None
        self.own: set[str] = set()
        for buffer in kernel.params:
            self.line(1, f"b_{buffer.name} = arrays[{buffer.name!r}]")
        self.line(1, "pass")
        self.body(kernel.body, 1)

    def line(self, depth: int, text: str) -> None:
        self.lines.append("    " * depth + text)

    def share(self, value: Any) -> str:
        name = f"k{len(self.namespace)}"
        self.namespace[name] = value
        return name

    def body(self, statements: Sequence[Stmt], depth: int) -> None:
        self.line(depth, "pass")
        for stmt in statements:
            self.statement(stmt, depth)

    def statement(self, stmt: Stmt, depth: int) -> None:
        match stmt:
            case Loop():
                self.loop(stmt, depth)
            case If(condition, then, orelse):
                self.line(depth, f"if {self.expr(condition)}:")
                self.body(then, depth + 1)
                self.line(depth, "else:")
                self.body(orelse, depth + 1)
            case While(test, condition, body):
                self.line(depth, "while True:")
                self.body(test, depth + 1)
                self.line(depth + 1, f"if not {self.expr(condition)}: break")
                self.body(body, depth + 1)
            case Alloc(buffer, body):
                self.line(depth, f"b_{buffer.name} = _scratch({buffer.shape}, {self.share(buffer.dtype)})")
                self.body(body, depth)
            case Store(buffer, at, value, combine):
                ufunc = f"np.{_COMBINE[combine].__name__}" if combine else "None"
                self.line(depth, f"_store({buffer!r}, b_{buffer}, ({self.list(at)}), {self.expr(value)}, {ufunc})")
            case Let(name, value):
                self.line(depth, f"v_{name} = {self.expr(value)}")
            case Draw(name, routine, args, dtype):
                self.line(depth, f"v_{name} = _draw({routine!r}, {self.share(dtype)}, {self.list(args)})")
            case Cell(name, init):
                self.own.add(name)
                self.line(depth, f"v_{name} = {self.expr(init)}")
            case Update():
                self.line(depth, self.update(stmt))
            case Check(condition, error, message, values):
                self.line(depth, f"_require({self.expr(condition)}, {error!r}, {message!r}, {self.list(values)})")
            case Observe(value):
                self.line(depth, self.expr(value))
            case _:
                raise LoweringError(f"the kernel interpreter cannot run {type(stmt).__name__}")

    def update(self, stmt: Update) -> str:
        cell, value = f"v_{stmt.cell}", self.expr(stmt.value)
        if stmt.combine is None:
            return f"{cell} = {value}"
        ufunc = f"np.{_COMBINE[stmt.combine].__name__}"
        if self.lanes and stmt.cell not in self.own:
            return f"{cell} = _fold({ufunc}, {cell}, {value}, v_{self.lanes}.size)"
        return f"{cell} = {ufunc}({cell}, {value}, dtype={self.share(stmt.value.dtype)})"

    def loop(self, loop: Loop, depth: int) -> None:
        limits = f"{self.expr(loop.start)}, {self.expr(loop.stop)}, {loop.step}"
        if not _runs_in_lanes(loop) or self.lanes:
            self.line(depth, f"for v_{loop.index} in _indices({limits}):")
            self.body(loop.body, depth + 1)
            return
        self.line(depth, f"v_{loop.index} = np.arange({limits}, dtype=np.int64)")
        self.line(depth, f"if v_{loop.index}.size:")
        own, self.own, self.lanes = self.own, set(), loop.index
        self.body(loop.body, depth + 1)
        self.own, self.lanes = own, None

    def list(self, exprs: Sequence[Expr]) -> str:
        return "".join(f"{self.expr(e)}, " for e in exprs)

    def expr(self, expr: Expr) -> str:
        match expr:
            case Const(value, dtype):
                return self.share(dtype.type(value))
            case Var(name):
                return f"v_{name}"
            case Load(buffer, at):
                return f"_load({buffer!r}, b_{buffer}, {self.list(at)})"
            case Apply("convert", (x,), dtype):
                return f"{self.expr(x)}.astype({self.share(dtype)})"
            case Apply(fn, (x, y)) if fn in INFIX and fn not in ("floor_divide", "remainder"):
                return f"({self.expr(x)} {INFIX[fn][0]} {self.expr(y)})"
            case Apply(fn, args, dtype):
                return f"_apply({self.share(dtype)}, {self.share(OPS[fn].evaluate)}, {self.list(args)})"
        raise LoweringError(f"the kernel interpreter cannot evaluate {type(expr).__name__}")


def _runs_in_lanes(loop: Loop) -> bool:
    """Whether a loop may run as NumPy vectors: no lane branches, allocates, or loops on its own."""
    if loop.kind not in ("vector", "thread") or any(isinstance(s, (If, While, Alloc)) for s in walk(loop.body)):
        return False
    if loop.kind == "thread":
        return not any(isinstance(s, Loop) for s in walk(loop.body))
    return not any(isinstance(s, Loop) and s.kind != "serial" and s.kind != "unroll" for s in walk(loop.body))
