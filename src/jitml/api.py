"""`jitml.jit`: the decorator, and `jitml.explain`."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from operator import is_not
from types import FunctionType
from typing import TYPE_CHECKING, Any, Literal

from jitml.diagnostics.tracebacks import entry
from jitml.functions import require_function
from jitml.jitted import Jit

if TYPE_CHECKING:
    from typing import Unpack, overload

    from numpy import ufunc

    from jitml.kernels.schedule import Schedule
    from jitml.options import Options
    from jitml.outline import Explanation
    from jitml.typing import JitOptions, Jitted
    from jitml.typing.functions import P, R

_USUAL = (None, (), (), None, False, None, True, "allow", None, None, None)  # options

if TYPE_CHECKING:

    @overload
    def jit(function: ufunc, /, **options: Unpack[JitOptions]) -> Jitted[..., Any]: ...
    @overload
    def jit(function: Callable[P, R], /, **options: Unpack[JitOptions]) -> Jitted[P, R]: ...
    @overload
    def jit(function: None = None, /, **options: Unpack[JitOptions]) -> Callable[[Callable[P, R]], Jitted[P, R]]: ...


@entry
def jit(
    function: Callable[..., Any] | None = None,
    /,
    *,
    device: str | None = None,
    static_argnums: int | Iterable[int] = (),
    static_argnames: str | Iterable[str] = (),
    dynamic: bool | None = None,
    fastmath: bool | Iterable[str] = False,
    threads: int | None = None,
    cache: bool = True,
    host_calls: Literal["allow", "error"] = "allow",
    verify: Literal["first", "always", "never"] | int | None = None,
    schedules: Mapping[str, str] | None = None,
    strict: bool | None = None,
) -> Any:
    """Compile a function that is written with NumPy. Call what it returns in place of the function: the answer is the same.

    Args:
        function: without it, `jit` is a decorator with options: `@jit(threads=1)`.
        static_argnums: positions of arguments that the compiled code may take for constant; they must have a hash. You rarely
            need it: jitml finds out what has to be constant.
        static_argnames: the same, by name.
        fastmath: False computes as IEEE 754 says. True allows the compiler to change the order of operations, and to assume
            that there is no NaN: all of LLVM's fast-math flags. Or some of the flags, by name. "tf32" has to be named: on a GPU,
            products of float32 matrices may then be computed from factors of 11 bits, by its tensor cores. "bf16" is the same
            with bfloat16's 8 bits, which is faster. Sums stay float32. "atomics" has to be named, too: floats that go to places
            of an array (`np.add.at`) may then be added in any order, another one in each run.
        threads: the most threads that a call may use. Default: JITML_NUM_THREADS, else the cores of this process.
        host_calls: what happens to NumPy and SciPy functions that are not compiled. "allow": the compiled program calls them at
            that point. "error": they raise `UnsupportedError`.
        dynamic: whether one compilation serves calls of many sizes. None: sizes that change from one call to the next are left
            open. True: the lengths of all arrays are left open from the first call on. False: each size is compiled anew.
        verify: which answers are compared with the plain function's: "first" (of each compiled variant), "always", "never", or a
            number n for each n-th call. Default: JITML_VERIFY, else "first". If an answer differs, there is a
            `WrongResultWarning`, and you get NumPy's answer. Functions that print, say, are not checked (docs/verification.md).
        schedules: how the loops of kernels run, by the kernels' names, in place of what jitml chooses (docs/schedules.md).
        device: where it runs: "cpu", "cuda" (docs/gpu.md), or None for where its arrays are. NumPy arrays are copied to the
            device for the call, and results and changes are copied back. A `jitml.Array` stays there, and then results do, too.
        cache: True, the only value: machine code is kept on disk for later processes (JITML_CACHE_DIR, JITML_CACHE_BYTES).
        strict: whether a function that cannot be compiled whole raises `UnsupportedError`, at the first statement that cannot.
            Otherwise such statements run as Python, and those between them are compiled (docs/sections.md). Default:
            JITML_STRICT, else False.

    Raises:
        ScheduleError: a schedule cannot be read. In a call: it does not fit its kernel, or there is no such kernel.
        UnsupportedError: there is no such device, or an option that has no effect yet. With `strict`: a generator or coroutine,
            and, in a call, what cannot be compiled.
        NoDeviceError: in a call: the device is not on this machine, or cannot be used.
        TypeError: an option of Numba, JAX or PyTorch, or a signature; the message says what to write in its place.
            In a call: a static argument that has no hash (an array, a list).

    >>> import numpy as np
    >>> @jit
    ... def scale(x, factor=2.0):
    ...     return x * factor
    >>> scale(np.arange(3.0))
    array([0., 2., 4.])
    """
    given = (device, static_argnums, static_argnames, dynamic, fastmath, threads, cache, host_calls, verify, schedules, strict)
    is_usual = not any(map(is_not, given, _USUAL)) and "jitml.config" not in sys.modules  # which the environment brings
    options = None if is_usual else _options_of(*given)
    return partial(_wrap, options=options) if function is None else _wrap(function, options)


def _options_of(
    device: str | None,
    static_argnums: int | Iterable[int],
    static_argnames: str | Iterable[str],
    dynamic: bool | None,
    fastmath: bool | Iterable[str],
    threads: int | None,
    cache: bool,
    host_calls: str,
    verify: str | int | None,
    schedules: Mapping[str, str] | None,
    strict: bool | None,
) -> Options:
    from jitml import options as of  # most programs ask for the usual ones
    from jitml.config import CONFIG, cadence
    from jitml.errors import UnsupportedError

    if cache is not True:
        raise UnsupportedError(
            f"jit(cache={cache!r}) is not supported yet",
            remedy="Leave cache out; JITML_CACHE_BYTES=0 keeps no machine code on disk.",
        )
    return of.Options(
        of.several("static_argnums", static_argnums, int, "a position, or several"),
        of.several("static_argnames", static_argnames, str, "a name, or several"),
        of.fastmath_flags(fastmath),
        of.thread_count(threads),
        of.host_calls_allowed(host_calls),
        of.dynamic_choice(dynamic),
        cadence(CONFIG.verify if verify is None else verify),
        () if schedules is None else _parsed(schedules),
        _device_choice(device),
        of.strictness(strict) or not of.host_calls_allowed(host_calls),
    )


def _parsed(schedules: Mapping[str, str]) -> tuple[tuple[str, Schedule], ...]:
    from jitml.kernels.schedule import parse_schedules  # few need it

    return parse_schedules(schedules)


def _device_choice(device: str | None) -> str | None:
    if device is not None:
        from jitml.device.registry import CPU, require_known  # few need it

        if device != CPU:
            require_known(device)
    return device


@entry
def _wrap(function: Callable[..., Any], options: Options | None) -> Jit:
    if type(function) is not FunctionType:
        if "numba" in sys.modules or not callable(function):
            from jitml.diagnostics.foreign_habits import foreign_signature  # few need it

            if (error := foreign_signature(function)) is not None:
                raise error
        require_function("jit", function)
        if isinstance(function, type):
            what = f"not the class {function.__qualname__}: decorate its methods, each for itself"
            raise TypeError(f"jit compiles functions, {what}")
    if options is not None and options.strict:
        _require_whole(function)
    return Jit(function, options)


def _require_whole(function: Callable[..., Any]) -> None:
    from jitml import options as of
    from jitml.errors import Source, UnsupportedError

    if what := of.resumed(function):
        code = inspect.unwrap(function).__code__
        raise UnsupportedError(
            f"{of.name_of(function)} is {what}, which cannot be compiled as a whole",
            source=Source(code.co_filename, code.co_firstlineno, code.co_name),
            remedy="Compile the numeric part as a plain function and call it from there.",
        )


@entry
def explain(function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Explanation:
    """What the compiler does with `function(*args, **kwargs)`, as a report. The function is not run.

    The report shows how many operations there are, and which loops (kernels) and library calls they became, with your lines. It
    says which operations are computed together, and why; how many bytes are moved, and the least possible; what a call takes
    for granted (guards); and the variants that have been compiled so far. Lines that run as Python are named, with the reason.
    It is a text, which notebooks show as HTML. "Reading `explain`" in docs/guide/performance.md goes through one.

    Args:
        function: a jitted function, or one that `jit` accepts.

    >>> import numpy as np
    >>> print(explain(lambda x: np.exp(x) + 1, np.ones(1000)).splitlines()[2])
      4 nodes traced, 3 after the passes
    """
    jitted = function if isinstance(function, Jit) else jit(function)
    try:
        return jitted.explain(*args, **kwargs)
    except TypeError as error:
        if not args and not kwargs and " missing " in str(error):
            error.add_note("explain takes the arguments of a call, too: jitml.explain(f, x)")
        raise


__all__ = ["Jit", "explain", "jit"]
