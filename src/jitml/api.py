"""`jitml.jit`: the decorator, and `jitml.explain`."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from operator import is_not
from types import FunctionType
from typing import TYPE_CHECKING, Any, Literal, Never

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
    **elsewhere: Never,
) -> Any:
    """Compile a function that is written with NumPy. The answer stays NumPy's; see docs/architecture.md for the promises.

    Args:
        static_argnums: positions of arguments that the compiled code may depend on as Python values; hashable.
        static_argnames: the same, by name.
        fastmath: False keeps IEEE arithmetic; True allows all of LLVM's fast-math flags; or some of them by name.
        threads: the most threads a call may use; default JITML_NUM_THREADS, else the cores of this process.
        host_calls: what to do with NumPy and SciPy functions that are not compiled: let the compiled program call them at
            that point, or raise `UnsupportedError`.
        dynamic: whether sizes of arguments are left open, so that one compilation serves calls of many sizes: None opens those
            that change from one call to the next, True the lengths of all arrays from the first call on, False none.
        verify: which answers are compared with the plain function's, run beside the compiled one on the same state: the first of
            each compiled variant, all, none, or each n-th; default JITML_VERIFY, else the first. A difference gives
            `WrongResultWarning` and NumPy's answer. Functions that print, say, are not checked (docs/verification.md).
        schedules: how the loops of kernels run, by the kernels' names, in place of what jitml chooses, which
            `f.lower(x).schedules` shows (docs/schedules.md).
        device: where it runs: `cpu`, `cuda` (docs/gpu.md), or None for where its arrays are. NumPy arrays are copied to a device
            for the call, and what it returns and changes is copied back; a `jitml.Array` stays there, and so do results then.
        cache: True, the only value: machine code is kept on disk for later processes (JITML_CACHE_DIR, JITML_CACHE_BYTES).
        strict: whether what cannot be compiled whole is refused, by `UnsupportedError` at the first statement that breaks.
            Otherwise such statements run as Python, and those between them as compiled sections (docs/sections.md); default
            JITML_STRICT, else False.

    Raises:
        ScheduleError: a schedule cannot be read; in a call, it does not fit its kernel, or there is no such kernel.
        UnsupportedError: a device that there is not, an option that has no effect yet; with `strict`, a generator or coroutine,
            and in a call what cannot be compiled.
        NoDeviceError: in a call, the device is not on this machine, or cannot be used.
        TypeError: an option of Numba, JAX or PyTorch, or a signature; the message says what to write in its place.
            In a call, a static argument that has no hash (an array, a list).

    >>> import numpy as np
    >>> @jit
    ... def scale(x, factor=2.0):
    ...     return x * factor
    >>> scale(np.arange(3.0))
    array([0., 2., 4.])
    """
    if elsewhere:
        from jitml.diagnostics.elsewhere import foreign_option  # few need it

        raise foreign_option(
            [name for name, p in inspect.signature(jit).parameters.items() if p.kind is p.KEYWORD_ONLY], elsewhere
        )
    given = (device, static_argnums, static_argnames, dynamic, fastmath, threads, cache, host_calls, verify, schedules, strict)
    is_usual = not any(map(is_not, given, _USUAL)) and "jitml.config" not in sys.modules  # which the environment brings
    options = None if is_usual else _chosen(*given)
    return partial(_wrap, options=options) if function is None else _wrap(function, options)


def _chosen(
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
            from jitml.diagnostics.elsewhere import foreign_signature  # few need it

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
    """What the compiler does with `function(*args, **kwargs)`, as a report; nothing is run.

    The graph's size, the kernels and library calls with the user's lines and the bytes they move, the decisions of fusion and
    their reasons, bytes and flops beside the least possible, the memory plan, the guards, and the variants compiled so far
    with the reason for each. It is a text, which notebooks show as HTML.

    Args:
        function: a jitted function, or one that `jit` accepts.

    >>> import numpy as np
    >>> print(explain(lambda x: np.exp(x) + 1, np.ones(1000)).splitlines()[2])
      4 nodes traced, 3 after the passes
    """
    jitted = function if isinstance(function, Jit) else jit(function)
    return jitted.explain(*args, **kwargs)


__all__ = ["Jit", "explain", "jit"]
