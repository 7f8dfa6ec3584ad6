"""Log: what is compiled and why again, what is refused, and what the disk keeps, as records of Python's `logging`.

The logger is `jitml`, with a child for each kind of event. Programs configure it as any other. `JITML_LOG` is for those that do
not: it attaches a handler, which keeps silent where the program has handlers of its own.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from jitml.config import CONFIG
from jitml.errors import JitmlError

_DEBUG, _INFO = 10, 20  # levels of `logging`
_MOST = 8  # arguments that are shown

Function = Callable[..., Any]


def show(kinds: frozenset[str]) -> None:
    """Have these kinds of events written to stderr."""
    if not kinds:
        return
    import logging  # few need it

    class OwnHandler(logging.StreamHandler):  # type: ignore[type-arg]  # its stream is sys.stderr, whatever that is
        """Writes to stderr what no handler of the program's gets."""

        def emit(self, record: logging.LogRecord) -> None:
            if not logging.getLogger().handlers:
                super().emit(record)

    handler = OwnHandler()
    handler.setFormatter(logging.Formatter("%(name)s: %(message)s"))
    logging.getLogger("jitml").addHandler(handler)
    for kind in kinds:
        logging.getLogger(f"jitml.{kind}").setLevel(logging.DEBUG)


def _logger(kind: str, level: int = _INFO) -> Any:
    """The logger of such events, if anybody may hear of them: who has not imported `logging` has asked for nothing."""
    get = getattr(sys.modules.get("logging"), "getLogger", None)
    logger = None if get is None else get(f"jitml.{kind}")
    return logger if logger is not None and logger.isEnabledFor(level) else None


def compiled(
    function: Function, args: Sequence[Any], kwargs: Mapping[str, Any], seconds: float, why: str, *, number: int, is_part: bool
) -> None:
    """A program has been compiled for such arguments, the function's first or a further one."""
    logger = _logger("compile" if number == 1 else "recompile")
    if logger is not None:
        what = f"{'a section of ' if is_part else ''}{described(function)}"
        again = "" if number == 1 else f", its program {number}"
        logger.info("compiled %s for (%s) in %.3f s%s: %s", what, kinds(args, kwargs), seconds, again, why)


def traced(
    transform: str, function: Function, args: Sequence[Any], kwargs: Mapping[str, Any], seconds: float, number: int
) -> None:
    """A transform outside `jit` has been traced, to be run by NumPy."""
    logger = _logger("compile" if number == 1 else "recompile")
    if logger is not None:
        what = f"{transform} of {described(function)}"
        logger.info("traced %s for (%s) in %.3f s, program %d", what, kinds(args, kwargs), seconds, number)


def refused(function: Function, what: str, error: BaseException) -> None:
    """A function, or a part of it, is not compiled.

    Args:
        what: becomes of it: `line 12 runs as Python`.
    """
    if (logger := _logger("refuse")) is not None:
        why, remedy = reason(error)
        logger.info("%s: %s: %s%s", described(function), what, why, f" {remedy}" if remedy else "")


def told(function: Function, what: str) -> None:
    """A warning says something of a function, once."""
    if (logger := _logger("refuse")) is not None:
        logger.info("%s: %s", described(function), what.replace("\n", " "))


def kept(event: str, key: str, *details: object) -> None:
    """The disk cache has been asked for something, or has been given it."""
    if (logger := _logger("cache", _DEBUG)) is not None:
        logger.debug("%s: %s%s", event, key, "".join(f", {detail}" for detail in details))


def reason(error: BaseException) -> tuple[str, str]:
    """What an error says in one line, its cause with it, and its remedy."""
    if isinstance(error, JitmlError):
        place = f" ({error.source})" if error.source is not None else ""
        return f"{error.message}{place} [{error.code} {error.cause}]", error.remedy
    first, *_ = str(error).splitlines() or [""]
    return f"tracing it raised {type(error).__name__}: {first}", ""


def described(function: Function) -> str:
    """A function by its name and place: `step (model.py:12)`."""
    name = getattr(function, "__qualname__", repr(function))
    code = getattr(inspect.unwrap(function), "__code__", None)
    return name if code is None else f"{name} ({code.co_filename}:{code.co_firstlineno})"


def kinds(args: Sequence[Any], kwargs: Mapping[str, Any]) -> str:
    """What arguments are.

    >>> kinds([np.zeros((2, 3)), 1.0], {"names": ["a", "b"]})
    'float64[2, 3], float, names=list of 2'
    """
    shown = [*map(_kind, args), *(f"{name}={_kind(x)}" for name, x in kwargs.items())]
    return ", ".join([*shown[:_MOST], "..."] if len(shown) > _MOST else shown)


def _kind(x: Any) -> str:
    if isinstance(x, (list, tuple, dict)):
        return f"{type(x).__name__} of {len(x)}"
    if isinstance(x, np.ndarray):
        return f"{x.dtype}[{', '.join(map(str, x.shape))}]"
    return type(x).__name__


show(CONFIG.log)

__all__ = ["compiled", "described", "kept", "kinds", "reason", "refused", "told", "traced"]
