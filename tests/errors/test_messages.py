"""What users see when they get it wrong: exceptions of ours, which name the line and the remedy. Nothing half-written."""

from __future__ import annotations

import builtins
import json
import os
import pickle
import random
import subprocess
import threading
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.io

import jitml
from jitml.errors import CompilerError, JitmlError, UnsupportedError
from jitml.trace.record.recording import Trace, activate
from jitml.trace.values.boxing import lift

pytestmark = pytest.mark.every_row

Array = np.ndarray[Any, Any]
X = np.arange(6.0).reshape(2, 3)
CONFIG = {"w": np.ones(3), "items": [1, 2]}
KEPT: list[Any] = []
SEEN = bytearray()
ONE: list[Any] = [1.0]
ONE_RNG = np.random.default_rng(0)


@dataclass
class Box:
    value: Any


class Series:
    def __init__(self, values: Array) -> None:
        self.values = values

    def __array__(self, dtype: Any = None, copy: Any = None) -> Array:
        return np.asarray(self.values, dtype)


class Thing:
    value: Any = None


def holds_a_lock(x: Array, lock: Any) -> Array:
    with lock:
        return x * 2


def catches_a_warning(x: Array) -> Array:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.warn("m", stacklevel=1)
    return x


def prints_briefly(x: Array) -> Array:
    with np.printoptions(precision=2):
        print(x)
    return x


def swallowed(x: Array) -> Any:
    try:
        return x * len(pickle.dumps(x))
    except Exception:
        pass
    return x * 2


def made_inside(x: Array) -> Any:
    @jitml.custom_vjp
    def square(v: Array) -> Any:
        return v * v

    return square(x).sum()


def assigns_global(x: Array) -> Any:
    def inner(y: Array) -> Any:
        global KEPT
        KEPT = y
        return y.sum()

    return jitml.grad(inner)(x)


def appends_to_one_of_two(xs: list[Any], ys: list[Any]) -> Any:
    xs.append(ys[0])


def deletes_attribute(x: Array) -> Any:
    del Thing.value
    return x


def into_global(x: Array) -> Any:
    SEEN.append(1)
    return x


# (what, function, arguments, first line of the message, remedy)
OURS: list[tuple[str, Callable[..., Any], tuple[Any, ...], str, str]] = [
    (
        "an except", swallowed, (X,),
        "exceptions may be handled in the jitted function", "Ask for the condition, with an `if` or np.where.",
    ),
    (
        ".tolist()", lambda x: x.tolist(), (np.ones((2000, 2)),),
        ".tolist() makes a Python number of every element (f64[2000,2])", "Work on the array itself.",
    ),
    (
        "a text as a key", lambda x: {f"{x}": 1}, (X,),
        "a text that holds traced values is needed before they are computed",
        "Such a text can be printed, logged, raised in an exception or returned.",
    ),
    (
        "a text made elsewhere", lambda x: json.dumps(x, default=str), (X,),
        "something that is not converted makes a text of a traced value (f64[2,3])",
        "f-strings, str(), format() and print() in the jitted function itself are fine.",
    ),
    (
        "a warning for another line", lambda x: warnings.warn("m", stacklevel=2) or x, (X,),
        "warnings.warn names a line outside the jitted function", "Leave stacklevel out.",
    ),
    (
        "input", lambda x: input("?") or x, (X,),
        "input() would run only once, while the function is traced, and not at every call",
        "Call it outside the jitted function and pass its result as an argument.",
    ),
    (
        "another source of random numbers", lambda x: x + random.uniform(0, 1), (X,),
        "random.uniform() would run only once, while the function is traced, and not at every call",
        "Call it outside the jitted function and pass its result as an argument.",
    ),
    (
        "the time", lambda x: x + time.perf_counter(), (X,),
        "time.perf_counter() would run only once, while the function is traced, and not at every call",
        "Call it outside the jitted function and pass its result as an argument.",
    ),
    *(
        (
            what, f, (X,),
            f"{name}() would run only once, while the function is traced, and not at every call",
            "Call it outside the jitted function and pass its result as an argument.",
        )
        for what, f, name in [
            ("a file of NumPy's", lambda x: x + np.load("x.npy"), "np.load"),
            ("a table", lambda x: x + np.loadtxt("x.txt"), "np.loadtxt"),
            ("memory of a file", lambda x: x + np.memmap("x.bin"), "np.memmap"),
            ("a file of SciPy's", lambda x: x + scipy.io.loadmat("x.mat")["x"], "scipy.io.matlab.loadmat"),
            ("a path's text", lambda x: x + float(Path("x").read_text()), "pathlib.read_text"),
            ("whether there is a path", lambda x: x if os.path.exists("x") else -x, "genericpath.exists"),
            ("another program", lambda x: x + len(subprocess.check_output(["date"])), "subprocess.check_output"),
            ("a thread", lambda x: threading.Thread(target=print).start() or x, "threading.Thread"),
            ("how arrays print", lambda x: np.set_printoptions(precision=3) or x, "np.set_printoptions"),
        ]
    ),
    (
        "a breakpoint", lambda x: breakpoint() or x, (X,),
        "breakpoint() would run only once, while the function is traced, and not at every call",
        "Debug the function as plain Python: without jit, or f.__wrapped__ of a jitted f.",
    ),
    (
        "a lock", holds_a_lock, (X, threading.RLock()),
        "`with` enters a RLock, only once, while the function is traced, and not at every call",
        "Put the `with` around the call of the jitted function.",
    ),
    (
        "a warning that is caught", catches_a_warning, (X,),
        "warnings.catch_warnings() would run only once, while the function is traced, and not at every call",
        "Call it outside the jitted function and pass its result as an argument.",
    ),
    (
        "how arrays print, for a while", prints_briefly, (X,),
        "`with` enters a _GeneratorContextManager, only once, while the function is traced, and not at every call",
        "Put the `with` around the call of the jitted function.",
    ),
    (
        "assigning a global in what is differentiated", assigns_global, (X,),
        "the jitted function assigns the global or nonlocal name 'KEPT'", "Return the value instead.",
    ),
    (
        "a list that is two arguments", appends_to_one_of_two, (ONE, ONE),
        "xs is changed, and ys is the same list",
        "Return the new value instead.",
    ),
    (
        "deleting an attribute of a class", deletes_attribute, (X,),
        "Thing (type) is from outside the jitted function and is changed in it",
        "Return the new value instead; writing into an array that it holds, as in obj.w -= g or obj.w[...] = v, is fine.",
    ),
    (
        "adding to a global bytearray", into_global, (X,),
        "SEEN, a builtins.bytearray, is asked for its append",
        "Take what is needed of it, numbers and arrays, outside of the jitted function.",
    ),
    (
        "object arrays", lambda x: x, (np.array([1, None], object),),
        "x: an array of object is not supported: only numbers are compiled", "Do this part outside the jitted function.",
    ),
    (
        "arrays of strings", lambda x: x, (np.array(["a"]),),
        "x: an array of <U1 is not supported: only numbers are compiled", "Do this part outside the jitted function.",
    ),
    (
        "structured arrays", lambda x: x, (np.zeros(2, "i4,f4"),),
        "x: an array of [('f0', '<i4'), ('f1', '<f4')] is not supported: only numbers are compiled",
        "Do this part outside the jitted function.",
    ),
    (
        "long numbers", lambda x: x, (np.zeros(2, np.longdouble),),
        f"x: dtype {np.dtype(np.longdouble)} is not supported: jitml compiles bool, integers, float16, float32, float64, "
        "complex64 and complex128",
        "Convert the array with .astype(...) before the jitted call, or leave this part outside jit.",
    ),
    (
        "matrices", lambda x: x, (X.view(np.matrix),),
        "x: arrays of numpy.matrix are not supported", "Use np.asarray(x).",
    ),
    (
        "strings among arguments", lambda x, weights: x, (X, {"w": [np.array(["a"])]}),
        "weights['w'][0]: an array of <U1 is not supported: only numbers are compiled",
        "Do this part outside the jitted function.",
    ),
    (
        "a generator from outside in a transform", lambda x, rng: jitml.vmap(lambda v: v + rng.random())(x), (X, ONE_RNG),
        "a generator from outside draws random numbers inside a function that is being transformed",
        "Draw them outside of it, and pass them to it.",
    ),
    (
        "a function without a rule, made inside", lambda x: jitml.grad(made_inside)(x[0]), (X,),
        "made_inside.<locals>.square is to be differentiated, and has no rule", "Set it with made_inside.<locals>.square.defvjp.",
    ),
    (
        "a bytearray", lambda x, s: x, (X, bytearray(b"1")),
        "argument s is a bytearray, which is not supported",
        "Arguments are NumPy arrays, numbers, strings, and tuples, lists, dicts and dataclasses of them.",
    ),
    (
        "an array of another library's", lambda x, t: x * t, (X, Series(X)),
        "argument t is a Series, which is not supported",
        "Pass np.asarray(t): arguments are NumPy arrays, not what others make arrays of.",
    ),
    (
        "an odd result", lambda x: iter([x]), (X,),
        "the function returns a list_iterator, which cannot be compiled",
        "Return arrays, numbers, strings, and tuples, lists, dicts and dataclasses of them.",
    ),
    (
        "an odd attribute", lambda box, x: setattr(box, "value", iter([x])), (Thing(), X),
        "box.value becomes a list_iterator, which cannot be compiled",
        "Keep arrays, numbers, strings, and tuples, lists, dicts and dataclasses of them.",
    ),
    (
        "two results in one place", lambda x: np.modf(x, out=(x, x[::-1])), (X,),
        "np.modf: into two arrays that share memory",
        "Let it make new arrays, and store one after the other.",
    ),
    (
        "a function that is not supported", lambda x: np.save("x", x), (X,),
        "np.save is not supported in jitted code",
        "Move this call out of the jitted function, or write it with functions that are supported (docs/supported.md).",
    ),
    (
        "a file that is written once", lambda x: np.savetxt("x", [1.0]) or x, (X,),
        "np.savetxt is not supported in jitted code",
        "Move this call out of the jitted function, or write it with functions that are supported (docs/supported.md).",
    ),
]  # fmt: skip


@pytest.mark.parametrize("what, f, args, message, remedy", OURS, ids=[row[0] for row in OURS])
def test_our_errors(what: str, f: Callable[..., Any], args: tuple[Any, ...], message: str, remedy: str) -> None:
    before = X.copy(), list(CONFIG["items"])
    with pytest.raises(JitmlError) as caught:
        jitml.jit(f)(*args)
    assert caught.value.message == message
    assert caught.value.remedy == remedy
    assert caught.value.source is not None and caught.value.source.file == __file__
    np.testing.assert_array_equal(X, before[0])
    assert CONFIG["items"] == before[1]


def timed(x: Array) -> Any:
    started = time.perf_counter()
    return x.sum(), time.perf_counter() - started


def test_an_error_reads_as_a_whole() -> None:
    with pytest.raises(UnsupportedError) as caught:
        jitml.jit(timed)(X)
    line = timed.__code__.co_firstlineno + 1
    assert str(caught.value) == (
        "time.perf_counter() would run only once, while the function is traced, and not at every call\n"
        f"  {__file__}:{line} in timed\n"
        "    started = time.perf_counter()\n"
        "Call it outside the jitted function and pass its result as an argument.\n"
        "JM106: python -m jitml help JM106"
    )
    assert isinstance(caught.value, NotImplementedError)


def test_a_leaked_value_is_refused() -> None:
    leaked: list[Any] = []

    def leaks(x: Array) -> Array:
        keep = leaked.extend
        keep([x, x.sum()])
        return x

    result = jitml.jit(leaks)(X)
    assert leaked[0] is result is X
    assert leaked[1] == X.sum()

    recording = Trace()
    with activate(recording):
        value = lift(X)
    with pytest.raises(jitml.TraceError, match="used after its trace has ended"):
        value + 1
    with pytest.raises(jitml.TraceError, match="used after its trace has ended"):
        jitml.jit(lambda x: x + value)(X)


@pytest.mark.parametrize("held", [(), ("__builtins__",)], ids=["as ever", "builtins that hold themselves"])
def test_what_has_no_source_says_so(held: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    """`exec` in the namespace of builtins makes it hold itself."""
    for name in held:
        monkeypatch.setitem(vars(builtins), name, vars(builtins))
    scope: dict[str, Any] = {"np": np}
    exec("def unseen(x):\n    y = np.zeros(3)\n    y[0] = x[0, 0]\n    return y.sum()", scope)
    reason = "it was made by exec from a text, <string>, that nobody keeps"
    said = f"the source of unseen was not found, so that it cannot be traced: {reason}"
    for program in (lambda: jitml.grad(scope["unseen"])(X), lambda: jitml.vmap(lambda x: 2 * scope["unseen"](x))(X[None])):
        with pytest.raises(UnsupportedError) as caught:
            program()
        lines = str(caught.value).splitlines()
        assert (lines[0], lines[-2].partition(",")[0], lines[-1][:5]) == (said, "Define it in a file", "JM114")
        assert "test_messages.py" in lines[1]


@pytest.mark.parametrize("kind", ["def f(x):\n    yield x", "async def f(x):\n    return x", "async def f(x):\n    yield x"])
def test_generators_and_coroutines(kind: str) -> None:
    scope: dict[str, Any] = {}
    exec(kind, scope)
    with pytest.raises(UnsupportedError, match=r"f is an? (async )?(generator|coroutine), which cannot be compiled"):
        jitml.jit(scope["f"])


NO_FUNCTIONS: list[tuple[Callable[[], Any], str]] = [
    (lambda: jitml.jit(5), "jit takes a function, not 5: jit(f)(x) and not jit(f(x))"),
    (lambda: jitml.jit(static_argnums=0)(X), "jit takes a function, not a ndarray"),
    (lambda: jitml.jit(Box), "jit compiles functions, not the class Box: decorate its methods"),
    (
        lambda: jitml.jit(staticmethod(timed)),
        "jit takes a function, not a staticmethod: write @staticmethod above @jit",
    ),
    (lambda: jitml.grad(property(timed)), "grad takes a function, not a property: write @property above @grad"),
    (lambda: jitml.grad(X), "grad takes a function, not a ndarray: grad(f)(x) and not grad(f(x))"),
    (lambda: jitml.value_and_grad(1.5), "value_and_grad takes a function, not 1.5"),
    (lambda: jitml.jacfwd(X), "jacfwd takes a function"),
    (lambda: jitml.hessian(X), "hessian takes a function"),
    (lambda: jitml.vmap(X), "vmap takes a function"),
    (lambda: jitml.vjp(X, X), "vjp takes a function"),
    (lambda: jitml.jvp(X, (X,), (X,)), "jvp takes a function"),
    (lambda: jitml.linearize(X, X), "linearize takes a function"),
    (lambda: jitml.hvp(X, (X,), (X,)), "hvp takes a function"),
    (lambda: jitml.checkpoint(X), "checkpoint takes a function"),
    (lambda: jitml.custom_jvp(X), "custom_jvp takes a function"),
    (lambda: jitml.custom_jvp(timed).defjvp(1), "defjvp: a rule is a function, not 1"),
    (lambda: jitml.custom_jvp(timed).defjvps(None, 1), "defjvps: a rule is a function, not 1"),
    (lambda: jitml.custom_vjp(timed).defvjp(timed, 1), "defvjp: a rule is a function, not 1"),
]


@pytest.mark.parametrize(("call", "message"), NO_FUNCTIONS, ids=[e[1][:30] for e in NO_FUNCTIONS])
def test_not_a_function(call: Callable[[], Any], message: str) -> None:
    with pytest.raises(TypeError) as caught:
        call()
    assert str(caught.value).startswith(message)


def test_options_are_checked() -> None:
    with pytest.raises(ValueError, match="no such flag: fast"):
        jitml.jit(timed, fastmath="fast")
    for threads in (0, True, "2"):
        with pytest.raises(ValueError, match=f"threads={threads!r} is not a number of threads"):
            jitml.jit(timed, threads=threads)
    with pytest.raises(ValueError, match="dynamic='no' is neither True, False nor None"):
        jitml.jit(timed, dynamic="no")
    for option, value, what in [
        ("static_argnums", "x", "a position, or several"),
        ("static_argnums", [0.0], "a position, or several"),
        ("static_argnames", 1, "a name, or several"),
        ("fastmath", None, "a truth, or names of flags"),
    ]:
        with pytest.raises(TypeError) as caught:
            jitml.jit(timed, **{option: value})
        assert str(caught.value) == f"{option}={value!r} is not {what}"


def test_a_fault_of_the_compiler_is_not_taken_for_the_programs(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(graph: object, **options: object) -> None:
        raise KeyError("v0")

    monkeypatch.setattr("jitml.pipeline.fuse", fails)
    with pytest.raises(CompilerError, match=r"failed to compile this program: KeyError: 'v0' \(test_messages.py") as error:
        jitml.jit(lambda x: x + 1)(X)
    assert "please report it" in str(error.value)
    assert isinstance(error.value.__cause__, KeyError)


@pytest.mark.parametrize("transform", [jitml.jit, jitml.grad, jitml.value_and_grad, jitml.hessian], ids=lambda f: f.__name__)
@pytest.mark.parametrize(
    ("given", "name"),
    [
        ((2.0, np.array(["a"])), "y"),
        ((2.0, [1.0, {"k": np.array(["a"])}]), "y[1]['k']"),
        ((2.0, 3.0, 4.0, np.array(["a"])), "rest[1]"),
    ],
)
def test_arguments_have_the_names_that_the_function_gives_them(transform: Any, given: tuple[Any, ...], name: str) -> None:
    def f(x, y, *rest, **kwargs):  # type: ignore[no-untyped-def]
        return x

    with pytest.raises(jitml.UnsupportedError) as caught:
        transform(f)(*given)
    assert caught.value.message.startswith(f"{name}: an array of ")
