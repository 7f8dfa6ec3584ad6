"""One program, eagerly and compiled: do they agree?  In results, arguments, globals, aliasing, exceptions and warnings."""

from __future__ import annotations

import ast
import io
import linecache
import operator
import re
import sys
import types
import warnings
import zlib
from collections.abc import Callable
from contextlib import redirect_stdout
from dataclasses import dataclass, field
from itertools import count
from traceback import walk_tb
from typing import Any

import numpy as np

import jitml
from jitml.api import Jit
from jitml.codegen.backend import backend_named, chosen_backend
from jitml.codegen.run.generators import state_keeper
from jitml.dispatch.entry import interpreted
from jitml.errors import FailedCheck, UncompiledWarning
from jitml.ir import run_state
from jitml.ir.analysis.generators import generators_in
from jitml.ir.graph import Graph
from jitml.ir.ops import host, indexed
from jitml.ir.types import F64
from jitml.options import Options
from jitml.pipeline import compile_graph
from jitml.trace.traced import Traced
from jitml.verification.rounding import precision
from programs.comparing import ROUNDING, Close, within
from programs.drawn.conditioning import nudged, nudging
from programs.drawn.fences import fenced
from programs.drawn.inputs import CALLS
from programs.likeness import Likeness
from sections.forced_breaks import drawn_breaks, in_sections
from support.alarms import Alarm, alarms

LAYERS = ("machine", "graph", "program", "sections")
_OF_THE_TEXT = (types.ModuleType, types.FunctionType, types.BuiltinFunctionType, Jit)
_NUDGES = 5
_MOST_SECONDS = 20  # for what NumPy does in no time, unless a drawn number says how often
_files = count()
# `maximum.at` compares by a scalar loop, in which a nan leaves a flag; that of arrays, and that of other processors, does not.
_ACCIDENTAL = ("invalid value encountered in maximum", "invalid value encountered in minimum")
# Where a sum has a nan and both infinities, whether the infinities meet first depends on the order of addition.
_ACCIDENTAL_WITH_ALL = ("invalid value encountered in reduce", "invalid value encountered in accumulate")
# Kernels of BLAS leave a flag where an operand has an infinity, though no product and no sum of elements is invalid: those of
# AVX2 for float32, those of AVX512 for float64 too, older ones never.
_ACCIDENTAL_WITH_INFINITY = ("invalid value encountered in matmul", "invalid value encountered in dot")
_MAKES_INFINITY = ("divide by zero", "overflow")
# Which of two zeros NumPy chooses depends on the processor and on where in the array they stand.
_CHOOSING = re.compile(r"max|min|clip|sort|unique|ptp")
_NEGATIVE_ZERO = re.compile(r"-(?=0(\.0*)?(?![\d.]))")


@dataclass(frozen=True)
class Verdict:
    """How a program went.

    kind: "equal", "refused" (jitml says that it cannot compile it), "uncompiled" (it ran as Python, with a warning), "different",
        "invalid": eager Python misses a name, as in a program that lost a statement, or takes for ever; or "sensitive": inexact
        numbers differ, and NumPy's own do as far where it rounds otherwise. `detail`: the reason or the difference.
    host_calls: calls into NumPy that compiled code makes; replays: calls that NumPy answered after all.
    """

    kind: str
    detail: str = ""
    host_calls: int = 0
    replays: int = 0
    raised: int = 0


@dataclass
class Outcome:
    """What one call did."""

    result: Any = None
    exception: BaseException | None = None
    warnings: list[tuple[type[Warning], str]] = field(default_factory=list)
    arguments: tuple[Any, ...] = ()
    held_all: bool = False  # whether an array may have held a nan and both infinities: an argument, or as warnings tell
    met_infinity: bool = False  # whether an argument held one, or a warning tells of one
    globals: dict[str, Any] = field(default_factory=dict)
    output: str = ""


class Layered(Jit):
    """A jitted function that an interpreter of an upper layer runs; NumPy answers where a check fails."""

    layer = "graph"

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.engine._compile = self._compile  # type: ignore[method-assign]

    def _compile(self, traced: Traced) -> Callable[..., Any]:
        if self.layer == "program":
            interpreter = backend_named("interpreter")
            return compile_graph(traced.graph, interpreter, aliases=traced.aliases, strides=traced.strides)
        execute, generators = interpreted(traced), generators_in(traced.graph)

        def checked(*inputs: Any) -> Any:
            restore = [state_keeper(run_state.generator_at(inputs[n])) for n in generators]
            try:
                return execute(*inputs)
            except Exception as error:
                for function in restore:
                    function()
                if isinstance(error, FailedCheck) or not _is_check(error):
                    raise
                raise FailedCheck(str(error)) from error

        return checked


def _is_check(error: BaseException) -> bool:
    """Whether the interpreter raised it where the graph has a check, or will have one: index arrays, a call of NumPy."""
    *outer, code = [frame.f_code for frame, _ in walk_tb(error.__traceback__)]
    if code.co_name == "_evaluate_check" or code.co_filename == indexed.__file__:
        return True
    return any(c.co_filename == host.__file__ for c in outer)


def module(text: str) -> dict[str, Any]:
    """The names of a program's text, as of a file of its own: its source can be found, its globals belong to nobody else."""
    name = f"<drawn program {next(_files)}>"
    linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
    made = types.ModuleType(f"drawn_{next(_files)}")
    sys.modules[made.__name__] = made  # where dataclasses look for their own
    exec(compile(text, name, "exec"), vars(made))
    return vars(made)


def call(function: Callable[..., Any], namespace: dict[str, Any], number: int, *, fences: bool = False) -> Outcome:
    """One call, and what it left behind; between fences, it crashes if it touches what lies beside its arguments."""
    arguments = namespace["arguments"](number)
    kept = [v for n, v in namespace.items() if not n.startswith("_")]
    objects = [v for v in kept if isinstance(v, types.FunctionType) or not isinstance(v, (*_OF_THE_TEXT, type))]  # defaults
    outcome = Outcome(arguments=fenced(arguments, objects, behind=number != 1) if fences else arguments)
    floats = [x for x in arguments if isinstance(x, np.ndarray) and x.dtype.kind in "fc"]
    with_all_from_the_start = any(map(_holds_all, floats))
    infinite_from_the_start = any(np.isinf(x).any() for x in floats)
    printed = io.StringIO()
    with warnings.catch_warnings(record=True) as caught, redirect_stdout(printed):
        warnings.simplefilter("always")
        try:
            outcome.result = function(*outcome.arguments)
        except Exception as error:
            outcome.exception = error
    outcome.warnings = [(w.category, str(w.message)) for w in caught]
    makes_infinity = any(m.startswith(_MAKES_INFINITY) for _, m in outcome.warnings)
    makes_nan = any(m.startswith("invalid value") and m not in _ACCIDENTAL_WITH_ALL for _, m in outcome.warnings)
    outcome.met_infinity = infinite_from_the_start or makes_infinity
    outcome.held_all = with_all_from_the_start or (makes_infinity and makes_nan)
    outcome.globals = {n: v for n, v in namespace.items() if not n.startswith("_") and not isinstance(v, _OF_THE_TEXT)}
    outcome.output = printed.getvalue()
    return outcome


class _Apart(ast.NodeTransformer):
    """Has every array that is assigned to a part of an array copied first."""

    def visit_Assign(self, node: ast.Assign) -> ast.Assign:
        for target in node.targets:
            if isinstance(target, ast.Subscript):
                target.value = ast.Call(ast.Name("_Writer", ast.Load()), [target.value], [])
        return node

    def visit_Call(self, node: ast.Call) -> ast.Call:
        if ast.unparse(node.func) == "np.copyto":
            node.args[1] = ast.Call(ast.Name("_copied", ast.Load()), [node.args[1]], [])
        return node


class _Writer:
    def __init__(self, whole: Any) -> None:
        self.whole = whole

    def __setitem__(self, where: Any, value: Any) -> None:
        self.whole[where] = _copied(value) if isinstance(self.whole, np.ndarray) else value


def _copied(x: Any) -> Any:
    return x.copy() if isinstance(x, np.ndarray) else x


def judge(text: str, exact: bool, layer: str = "machine") -> Verdict:
    """Run a program both ways, all of its calls.

    NumPy assigns a row to a part of the same array that lies on other steps (`x[2] = x[:, -1]`) element by element, so that it
    reads some that it has just written. What differs is looked at again, compared with NumPy that copies first. Where inexact
    numbers alone differ, it is asked whether NumPy itself would give others if it rounded otherwise.
    """
    verdict = _judge(module(text), text, exact, layer)
    if verdict.kind != "different":
        return verdict
    if not exact and _judge(module(text), text, exact, layer, close=anything).kind == "equal" and is_sensitive(text):
        return Verdict("sensitive", verdict.detail)
    copying = module(ast.unparse(_Apart().visit(ast.parse(text))))
    copying |= {"_Writer": _Writer, "_copied": _copied}
    again = _judge(copying, text, exact, layer)
    return verdict if again.kind == "different" else again


def is_sensitive(text: str) -> bool:
    """Whether NumPy's own answers differ as far, if results of some functions are a unit in the last place apart."""
    traced, plain, other = module(text), module(text), module(nudged(text))
    jitted = jitml.jit(traced["program"])
    for number in range(CALLS):
        call(jitted, traced, number)
        close = within(ROUNDING[F64], precision(v.traced.graph for v in jitted.all_variants))
        expected = call(plain["program"], plain, number)
        for seed in range(_NUDGES):
            other |= {"_nudge": nudging(seed), "_operator": operator}
            if compare(call(other["program"], other, number), expected, close):
                return True
    return False


def _judge(eager: dict[str, Any], text: str, exact: bool, layer: str, close: Close | None = None) -> Verdict:
    traced = module(text)
    jitted: Any = jitml.jit(traced["program"])
    if layer == "sections":
        jitted = in_sections(traced["program"], drawn_breaks(zlib.crc32(text.encode()), 0.3))
    elif layer != "machine":
        # A program whose sizes are open has memory for the largest ones, which an interpreter would have to fill.
        jitted = Layered(traced["program"], Options(dynamic=None if layer == "graph" else False))
        jitted.layer = layer
    given, close = close, close or (equal if _CHOOSING.search(text) else identical)
    raised = 0
    for number in range(CALLS):
        with alarms() as alarm:
            alarm(_MOST_SECONDS)
            try:
                expected = call(eager["program"], eager, number)
            except Alarm:
                return Verdict("invalid", f"call {number} takes NumPy more than {_MOST_SECONDS} seconds")
        misses_a_name = isinstance(expected.exception, NameError) and "is not defined" in str(expected.exception)
        if misses_a_name or isinstance(expected.exception, MemoryError):  # fused, none is needed
            return Verdict("invalid", repr(expected.exception))
        got = call(jitted, traced, number, fences=layer in ("machine", "sections") and sys.platform != "win32")
        raised += expected.exception is not None
        if isinstance(got.exception, jitml.UnsupportedError):
            touched = Likeness(identical).difference(got.arguments, traced["arguments"](number), "argument")
            if touched:
                return Verdict("different", f"call {number}: refused, but changed {touched}")
            return Verdict("refused", str(got.exception).split("\n")[0], raised=raised)
        uncompiled = [text for category, text in got.warnings if category is UncompiledWarning]
        got.warnings = [(category, text) for category, text in got.warnings if category is not UncompiledWarning]
        if not exact and given is None:
            close = within(ROUNDING[F64], precision(v.traced.graph for v in jitted.all_variants))
        if layer in ("graph", "program") or chosen_backend().name != "llvm":
            got.warnings = expected.warnings  # interpreters are silent, and so are graphics processors
        if _CHOOSING.search(text):
            got.output, expected.output = (_NEGATIVE_ZERO.sub("", outcome.output) for outcome in (got, expected))
        if apart := compare(got, expected, close):
            return Verdict("different", f"call {number}: {apart}", raised=raised)
        if uncompiled:
            return Verdict("uncompiled", f"call {number}: {uncompiled[0]}", raised=raised)
    variants = jitted.all_variants
    hosts = sum(host_calls(v.traced.graph) for v in variants)
    return Verdict("equal", "", hosts, sum(v.replays.total() for v in variants), raised)


def compare(got: Outcome, expected: Outcome, close: Close) -> str | None:
    """The first difference between two outcomes, in words."""
    like = Likeness(close)
    apart = like.difference(got.arguments, expected.arguments, "argument")
    apart = apart or like.difference(got.globals, expected.globals, "global")
    if got.exception is not None or expected.exception is not None:
        if not _is_such(got.exception, expected.exception):
            return f"raised {got.exception!r}, NumPy {expected.exception!r}"
    else:
        apart = like.difference(got.result, expected.result) or aliasing(got, expected) or apart
    if apart:
        return apart
    if got.output != expected.output:
        return f"output {got.output!r}, NumPy {expected.output!r}"
    accidental = _ACCIDENTAL + (_ACCIDENTAL_WITH_ALL if expected.held_all else ())
    accidental += _ACCIDENTAL_WITH_INFINITY if expected.met_infinity else ()
    mine, theirs = (sorted((c.__name__, m) for c, m in o.warnings if m not in accidental) for o in (got, expected))
    return None if mine == theirs else f"warnings {mine}, NumPy {theirs}"


def _is_such(got: BaseException | None, expected: BaseException | None) -> bool:
    """Whether it is of the class that was expected, or of one that is written in the same place of the program."""
    if got is None or expected is None:
        return False
    names = {c.__qualname__ for c in type(got).__mro__}
    return isinstance(got, type(expected)) or (
        type(expected).__module__.startswith("drawn_") and type(expected).__qualname__ in names
    )


def _holds_all(x: np.ndarray[Any, Any]) -> bool:
    return all(bool(np.any(test(x.real))) for test in (np.isnan, np.isposinf, np.isneginf))


def aliasing(got: Outcome, expected: Outcome) -> str | None:
    """Whether results share memory with arguments and each other as in NumPy, and may be written."""
    mine, theirs = _memory(got), _memory(expected)
    if mine != theirs:
        return f"memory shared {mine}, NumPy {theirs}"
    lost = [n for n, (m, t) in enumerate(zip(_same(got), _same(expected))) if t - m]
    return f"results {lost} are no longer the arguments, or other results, themselves" if lost else None


def _memory(outcome: Outcome) -> list[Any]:
    results = list(_arrays(outcome.result))
    arguments = [a for a in outcome.arguments if isinstance(a, np.ndarray)]
    shared = [[np.shares_memory(r, a) for a in (*results[:n], *arguments)] for n, r in enumerate(results)]
    return [shared, [r.flags.writeable for r in results]]


def _same(outcome: Outcome) -> list[set[int]]:
    """Which arguments and results before it each result is, as an object. A view of all of an argument may be that itself."""
    arguments = [a for a in outcome.arguments if isinstance(a, np.ndarray)]
    alone = [a for a in arguments if sum(np.shares_memory(a, b) for b in arguments) == 1]
    results = list(_arrays(outcome.result))
    return [{n for n, a in enumerate((*alone, *results[:k])) if r is a} for k, r in enumerate(results)]


def _arrays(result: Any) -> Any:
    if isinstance(result, (tuple, list)):
        for item in result:
            yield from _arrays(item)
    elif isinstance(result, dict):
        yield from _arrays(list(result.values()))
    elif isinstance(result, np.ndarray):
        yield result


def anything(got: np.ndarray[Any, Any], expected: np.ndarray[Any, Any]) -> bool:
    """Any numbers."""
    return True


def equal(got: np.ndarray[Any, Any], expected: np.ndarray[Any, Any]) -> bool:
    """The same numbers."""
    return bool(np.all((got == expected) | np.isnan(got) & np.isnan(expected)))


def identical(got: np.ndarray[Any, Any], expected: np.ndarray[Any, Any]) -> bool:
    """The same bits, but for those of nan."""
    same = (got == expected) & (np.signbit(got) == np.signbit(expected)) | np.isnan(got) & np.isnan(expected)
    return bool(np.all(same))


def host_calls(graph: Graph) -> int:
    """Calls into NumPy, those in regions included."""
    inside = sum(host_calls(body) for node in graph.nodes for body in node.bodies.values())
    return inside + sum(node.op.name == "host_call" for node in graph.nodes)
