"""What becomes of a call that others see: `print`, `logging`, `warnings.warn`?  It is made at every call, once nothing can fail.

The program hands over the values; what is done with them waits until the call has succeeded (`ir/ops/host.py`), in the order of
the program, for a call that NumPy answers after all prints for itself.
"""

from __future__ import annotations

import builtins
import functools
import sys
import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from jitml.errors import FailedCheck
from jitml.imports.late import late, late_class
from jitml.ir import ops
from jitml.ir.ops.host import HostFunction
from jitml.ir.run_state import postpone
from jitml.trace.host_calls.rules import HostCallRules, require_allowed
from jitml.trace.record.recording import active_trace, current_trace, unsupported, user_source
from jitml.trace.record.user_code import caller, namespace
from jitml.trace.values.registry import full_name, implements

if TYPE_CHECKING:
    from jitml.trace.host_calls import call as host_call
else:
    host_call = late("jitml.trace.host_calls.call")


LOGGERS = (late_class("logging", "Logger"), late_class("logging", "LoggerAdapter"))


class OutputStream:
    """`sys.stdout` or `sys.stderr`, whichever that is as the program runs: others redirect it.

    What is not converted would write to it once, while a function is traced, and is refused.
    """

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def write(self, text: str) -> Any:
        return self._running().write(text)

    def flush(self) -> None:
        self._running().flush()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self._running(), name)

    def _running(self) -> Any:
        if current_trace() is not None:
            message = f"code that is not converted writes to sys.{self.name}, or looks into it"
            unsupported(message, "Print it: print() happens at every call.")
        return getattr(sys, self.name)


STREAMS = {name: OutputStream(name) for name in ("stdout", "stderr")}


def effect_of(function: Any) -> Callable[..., None] | None:
    """How a function that is called for its effect is called in a trace; None if it is not one of these."""
    owner = getattr(function, "__self__", None)
    module = getattr(function, "__module__", None) or ""
    name = getattr(function, "__name__", "")
    of_logger = isinstance(owner, LOGGERS) and name not in _ANSWERS
    of_root = name in _LOGGING and getattr(sys.modules.get("logging"), name, None) is function
    logs = module == "logging" and (of_root or of_logger)
    if type(owner) is OutputStream and name in ("write", "flush"):
        return functools.partial(postponed, function)
    writes = (name in ("write", "flush") and (owner is sys.stdout or owner is sys.stderr)) or (name, module) in _WRITING
    if logs:
        return functools.partial(_logged, function)
    return functools.partial(postponed, function) if writes else None


_WRITING = {("pprint", "pprint"), ("pp", "pprint"), ("dump", "json"), ("dump", "_pickle")}
_LOGGING = {"debug", "info", "warning", "error", "critical", "log", "exception"}
_ANSWERS = {  # methods of loggers that give something
    *("isEnabledFor", "getEffectiveLevel", "hasHandlers", "getChild", "getChildren", "makeRecord", "findCaller", "filter"),
    *("process",),
}
_OF_FRAMES = ("exc_info", "stack_info", "stacklevel")  # what records show of who calls, and of the exception at hand


def postponed(function: Callable[..., Any], *args: Any, **kwargs: Any) -> None:
    """Record that the program calls a function with these arguments, which may be traced, and ignores what it returns."""
    _record(full_name(function), lambda *args, **kwargs: postpone(functools.partial(function, *args, **kwargs)), args, kwargs)


def _logged(function: Callable[..., Any], *args: Any, **kwargs: Any) -> None:
    """Records name the user's line. Tracebacks and lines further out are Python's alone to tell, which answers such a call."""
    name, call = full_name(function), caller()

    def write(*args: Any, **kwargs: Any) -> None:
        postpone(functools.partial(call, function, args, kwargs))

    def leave() -> None:
        raise FailedCheck(f"{name}: it shows frames of the function")

    if getattr(function, "__name__", "") == "exception" or any(kwargs.get(option) for option in _OF_FRAMES):
        _record(name, leave, (), {})
    else:
        _record(name, write, args, kwargs)


def _record(name: str, act: Callable[..., None], args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Record that the program calls `act` when it gets here."""
    require_allowed(name, "Leave it out.")
    form, operands = host_call.take_apart(name, args, kwargs)

    def run(*arrays: np.ndarray[Any, Any]) -> tuple[()]:
        given, named = form.plain([np.array(x) for x in arrays])
        act(*given, **named)
        return ()

    ops.host_call(*operands, function=HostFunction(name, run, (), postpones=True))


@implements(builtins.print)
def _print(*args: Any, **kwargs: Any) -> None:
    postponed(print, *args, **kwargs)


@implements(warnings.warn)
def _warn(message: Any, category: Any = None, stacklevel: int = 1, **kwargs: Any) -> None:
    """Comes from the user's own line, which filters and registries know; a filter that raises leaves the call to Python."""
    place = user_source()
    if stacklevel != 1 or place is None or kwargs:
        unsupported("warnings.warn with a stacklevel names a line outside the jitted function", "Leave stacklevel out.")
    if warnings.filters is not active_trace().call[HostCallRules].filters:
        unsupported(
            "warnings.catch_warnings would be entered only once, while the function is traced, and not at every call",
            "Put the `with` around the call of the jitted function.",
        )
    kind = type(message) if isinstance(message, Warning) else category or UserWarning
    space = namespace()

    def warn(message: Any) -> None:
        if any(action == "error" for action, *_ in warnings.filters):
            raise FailedCheck("warnings.warn: a filter makes errors of warnings")
        registry = space.setdefault("__warningregistry__", {})
        name = space.get("__name__", "<unknown>")
        postpone(functools.partial(warnings.warn_explicit, message, kind, place.file, place.line, name, registry))

    _record("warnings.warn", warn, (message,), {})
