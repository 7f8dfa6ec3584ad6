"""`jitml.jit`: the decorator, where all layers meet: trace, compile, dispatch."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal
from warnings import warn

from jitml.config import CONFIG
from jitml.device.convert import is_foreign, ours
from jitml.device.on_host import on_host
from jitml.device.operations import compile_by
from jitml.dispatch.entry import MISS
from jitml.dispatch.on_device import compile_programs_by, copies_of, counted, device_for, on_device
from jitml.dispatch.specialize import CallArguments, Specializer, Untraced, Variant
from jitml.dispatch.variants import Tries, Variants
from jitml.errors import (
    FailedCheck,
    RaisingBranch,
    Source,
    SourceNotFound,
    StarvedError,
    UncompiledWarning,
    UnsupportedError,
)
from jitml.forks import lock
from jitml.headroom import require_compiler
from jitml.interrupts import contained, uninterrupted
from jitml.ir.execute.debug_nans import runs_as_python
from jitml.options import (
    Options,
    device_choice,
    dynamic_choice,
    fastmath_flags,
    host_calls_allowed,
    name_of,
    several,
    static_names,
    thread_count,
)
from jitml.trace.asynchronous import is_aside
from jitml.trace.environment.arguments import Static, require_countable
from jitml.trace.environment.pickling import reduced
from jitml.trace.environment.transformed import FunctionLike
from jitml.trace.hooks.convert import convert, require_function
from jitml.trace.record.pytree import flatten, is_nested
from jitml.trace.record.recording import current_trace, outside_trace
from jitml.trace.results import told_by_flags
from jitml.trace.rewrite.source_texts import keep
from jitml.trace.trace import Traced, trace
from jitml.verification.verification import cadence, have_checked

if TYPE_CHECKING:
    from optree import PyTreeSpec

    from jitml.kernels.schedule import Schedule
    from jitml.pipeline import Lowered


class Jit(FunctionLike):
    """A function that is compiled for the kinds of arguments it is called with.

    It keeps the function's name, signature and docstring, works as a method, pickles as a function does and may be called from
    many threads at once.
    """

    def __init__(self, function: Callable[..., Any], options: Options) -> None:
        functools.update_wrapper(self, function)
        self.function = function
        self.options = options
        keep(function)
        self._variants = Variants[Variant](making=lock())
        made = partial(have_checked, function, name_of(function), options.verify, bool(options.fastmath))
        self._specializer = Specializer(function, self._variants, made, dynamic=options.dynamic, host_calls=options.host_calls)
        self._statics = static_names(function, options)
        self._is_unread = False  # whether it, or what it calls, has no source

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if current_trace() is not None:  # called inside another trace: part of that one
            if not is_aside():
                return convert(self.function)(*args, **kwargs)
            with outside_trace():
                return self(*args, **kwargs)
        if self._is_unread or runs_as_python():
            return self.function(*args, **kwargs)
        branch, why = None, ""
        try:
            return self._call_compiled(args, kwargs)
        except RaisingBranch as failure:
            branch = failure
        except FailedCheck:
            pass
        except SourceNotFound as error:
            self._is_unread, why = True, error.message
        except StarvedError as error:
            why = f"was not compiled: {error.message}; each call tries again"
        except Untraced as error:
            why = f"was not compiled: tracing it raised {error.__cause__!r}; each call tries again"
        # The arguments are as they were: NumPy itself raises, or answers. What it raises has no exception of ours behind it.
        args, kwargs = ours(args, kwargs)
        if self._is_unread:
            warn(f"{name_of(self.function)} runs as plain Python from now on: {why}", UncompiledWarning, stacklevel=2)
            return self.function(*args, **kwargs)
        if branch is not None:
            return self._replay(branch, args, kwargs)
        result = self.function(*args, **kwargs)
        if why:
            warn(f"{name_of(self.function)} {why}", UncompiledWarning, stacklevel=2)
        return result

    def _replay(self, failure: RaisingBranch, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Let plain Python answer a call that takes a branch which raises.

        Should it return, the function handles the exception, and the next such call has that path compiled.
        """
        result = self.function(*args, **kwargs)
        if why := self._specializer.handles(failure):
            said = f"{name_of(self.function)} ran as plain Python in this call: {failure.message}; it was not compiled: {why}"
            warn(said, UncompiledWarning, stacklevel=3)
        return result

    def _call_compiled(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if self._statics:
            args, kwargs = self._mark_static(args, kwargs)
        key, leaves = _plain(args, kwargs) if kwargs else (len(args), args)
        result = self._variants.call(key, leaves)
        return result if result is not MISS else self._call_slowly(key, args, kwargs)

    def _call_slowly(self, key: Hashable, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if any(map(is_foreign, (*args, *kwargs.values()))):
            return self._call_compiled(*ours(args, kwargs))
        leaves, spec = self._taken_apart(args, kwargs)
        if is_nested(spec):
            key = spec
            leaves.append((args, kwargs))
            result = self._variants.call(key, leaves)
            if result is not MISS:
                return result

        def make(others: tuple[Variant, ...], tries: Tries[Variant]) -> Variant:
            require_compiler()
            call = CallArguments(key, args, kwargs, leaves)
            return contained(partial(self._specializer.make, call, self._compile, others, tries))

        return self._variants.make(key, leaves, make, Tries())

    def _taken_apart(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[list[Any], PyTreeSpec]:
        if not self._variants:  # later calls do not pay for it
            require_countable(self.function, args, kwargs)
        return flatten((args, kwargs))

    def _compile(self, traced: Traced) -> Callable[..., Any]:
        options = self.options

        def compile_graph() -> Callable[..., Any]:
            from jitml import pipeline  # brings llvmlite, which `import jitml` must not

            device = device_for(traced, options.device, name_of(self.function))
            executable = pipeline.compile_graph(
                traced.graph,
                None if device is None else pipeline.backend_named(device.backend),
                aliases=traced.aliases,
                strides=traced.strides,
                threads=options.threads,
                fastmath=options.fastmath,
                schedules=dict(options.schedules),
                watch=True,
            )
            return executable if device is None else (on_device if traced.device else counted)(traced, device, executable)

        return uninterrupted(compile_graph)

    @property
    def traced_as(self) -> Callable[..., Any]:
        return self.function

    def lower(self, *args: Any, **kwargs: Any) -> Lowered:
        """Every stage of this function for these arguments, as text and data: of the variant that answers them, if there is one.

        Nothing is run and nothing is cached.
        """
        traced = contained(partial(self._trace, args, kwargs))
        options = self.options

        def lower() -> Lowered:
            from jitml import pipeline  # as in _compile

            device = device_for(traced, options.device, name_of(self.function))
            return pipeline.lower(
                traced.graph,
                None if device is None else pipeline.backend_named(device.backend),
                aliases=traced.aliases,
                strides=traced.strides,
                threads=options.threads,
                fastmath=options.fastmath,
                schedules=dict(options.schedules),
            )

        return uninterrupted(lower)

    def explain(self, *args: Any, **kwargs: Any) -> str:
        """See `jitml.explain`."""
        from jitml import report  # as in _compile

        traced = contained(partial(self._trace, args, kwargs))
        flagged = told_by_flags(traced.results, traced.out_specs[-1], traced.graph)
        device = device_for(traced, self.options.device, name_of(self.function))
        copies = [] if device is None else copies_of(traced, device)
        lowered, guards = self.lower(*args, **kwargs), traced.host.summary()
        return report.explain_program(repr(self), lowered, flagged, copies, guards, self.variants)

    def _trace(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Traced:
        if self._statics:
            args, kwargs = self._mark_static(args, kwargs)
        args, kwargs = ours(args, kwargs)
        leaves, spec = self._taken_apart(args, kwargs)
        if is_nested(spec):
            leaves.append((args, kwargs))
        known = self._variants.fitting(*_plain(args, kwargs)) or self._variants.fitting(spec, leaves)
        if known is not None:
            return known.traced
        return trace(self.function, args, kwargs, host_calls=self.options.host_calls, rooted=True)

    @property
    def variants(self) -> tuple[Variant, ...]:
        """The compiled specialisations, each with the reason for its compilation."""
        return tuple(self._variants)

    def clear_cache(self) -> None:
        """Forget every specialisation."""
        self._variants.clear()
        self._specializer.forget()
        self._is_unread = False

    def _mark_static(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        positions, names = self._statics or ((), ())
        args = tuple(self._static(a, n) if n in positions else a for n, a in enumerate(args))
        return args, {name: self._static(value, name) if name in names else value for name, value in kwargs.items()}

    def _static(self, value: Any, place: int | str) -> Static:
        try:
            hash(value)
        except TypeError:
            name = place if isinstance(place, str) else [*inspect.signature(self.function).parameters][place]
            raise TypeError(
                f"{name} of {name_of(self.function)} is a static argument, and a {type(value).__qualname__} could change unseen: "
                "it has no hash. Pass a tuple of numbers, say, or do not declare it static."
            ) from None
        return Static(value)

    def __reduce__(self) -> Any:
        return reduced(self, Jit, self.function, self.options)

    def __repr__(self) -> str:
        count = len(self.variants)
        return f"<jit {name_of(self.function)}, {count} variant{'' if count == 1 else 's'}>"


def _plain(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Hashable, Sequence[Any]]:
    """The key and the leaves of arguments none of which is a container."""
    if not kwargs:
        return len(args), args
    return (len(args), *kwargs), (*args, *kwargs.values())


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
        cache: has only its default value yet.

    Raises:
        ScheduleError: a schedule cannot be read; in a call, it does not fit its kernel, or there is no such kernel.
        UnsupportedError: a generator, a coroutine, a device that there is not, or an option that has no effect yet.
        NoDeviceError: in a call, the device is not on this machine, or cannot be used.
        TypeError: in a call, a static argument that has no hash (an array, a list).

    >>> import numpy as np
    >>> @jit
    ... def scale(x, factor=2.0):
    ...     return x * factor
    >>> scale(np.arange(3.0))
    array([0., 2., 4.])
    """
    if cache is not True:
        raise UnsupportedError(f"jit(cache={cache!r}) is not supported yet", remedy="Leave cache out.")
    options = Options(
        several("static_argnums", static_argnums, int, "a position, or several"),
        several("static_argnames", static_argnames, str, "a name, or several"),
        fastmath_flags(fastmath),
        thread_count(threads),
        host_calls_allowed(host_calls),
        dynamic_choice(dynamic),
        cadence(CONFIG.verify if verify is None else verify),
        () if schedules is None else _parsed(schedules),
        device_choice(device),
    )
    if function is None:
        return lambda f: _wrap(f, options)
    return _wrap(function, options)


def _parsed(schedules: Mapping[str, str]) -> tuple[tuple[str, Schedule], ...]:
    from jitml.kernels.schedule import parse_schedules  # few need it

    return parse_schedules(schedules)


def _wrap(function: Callable[..., Any], options: Options) -> Jit:
    require_function("jit", function)
    if isinstance(function, type):
        raise TypeError(f"jit compiles functions, not the class {function.__qualname__}: decorate its methods, each for itself")
    inspected: dict[str, Callable[[object], bool]] = {
        "a generator": inspect.isgeneratorfunction,
        "a coroutine": inspect.iscoroutinefunction,
        "an async generator": inspect.isasyncgenfunction,
    }
    for what, holds in inspected.items():
        if holds(function):
            code = inspect.unwrap(function).__code__
            raise UnsupportedError(
                f"{name_of(function)} is {what}, which cannot be compiled",
                source=Source(code.co_filename, code.co_firstlineno, code.co_name),
                remedy="Compile the numeric part as a plain function and call it from there.",
            )
    return Jit(function, options)


def explain(function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> str:
    """What the compiler does with `function(*args, **kwargs)`, as a report; nothing is run.

    The graph's size, the kernels and library calls with the user's lines and the bytes they move, the decisions of fusion and
    their reasons, bytes and flops beside the least possible, the memory plan, the guards, and the variants compiled so far
    with the reason for each.

    Args:
        function: a jitted function, or one that `jit` accepts.

    >>> import numpy as np
    >>> print(explain(lambda x: np.exp(x) + 1, np.ones(1000)).splitlines()[2])
      4 nodes traced, 3 after the passes
    """
    jitted = function if isinstance(function, Jit) else jit(function)
    text: str = jitted.explain(*args, **kwargs)
    return text


def _compile_transform(traced: Traced) -> Callable[..., Any]:
    """What runs the program of a transform outside `jit` on the device of its arrays."""

    def compile_graph() -> Callable[..., Any]:
        from jitml import pipeline  # as in Jit._compile

        assert traced.device is not None
        backend = pipeline.backend_named(traced.device.backend)
        executable = pipeline.compile_graph(traced.graph, backend, aliases=traced.aliases, strides=traced.strides)
        return on_device(traced, traced.device, executable)

    return uninterrupted(compile_graph)


compile_programs_by(_compile_transform)
compile_by(jit, on_host, lambda: import_module("jitml.numpy"))

__all__ = ["Jit", "explain", "jit"]
