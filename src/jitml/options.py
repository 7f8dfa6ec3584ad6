"""Options of `jit`: how a function is compiled, and whether what is given for them can be meant."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, TypeVar

from jitml.config import CONFIG, at_most_threads, cadence
from jitml.records import dataclass, field, replace

if TYPE_CHECKING:
    from jitml.kernels.schedule import Schedule

T = TypeVar("T")
CPU = "cpu"
FASTMATH_FLAGS = ("nnan", "ninf", "nsz", "arcp", "contract", "afn", "reassoc")
COARSE_FLAGS = ("tf32", "bf16", "atomics")  # which cost digits, or bits that are the same in each run: they have to be named


@dataclass(frozen=True, slots=True)
class Options:
    """How a function is compiled; see `jit`."""

    static_argnums: tuple[int, ...] = ()
    static_argnames: tuple[str, ...] = ()
    fastmath: frozenset[str] = frozenset()
    threads: int | None = None
    host_calls: bool = True
    dynamic: bool | None = None
    verify: int = field(default_factory=lambda: cadence(CONFIG.verify))
    schedules: tuple[tuple[str, Schedule], ...] = ()
    device: str | None = None
    strict: bool = field(default_factory=lambda: CONFIG.strict)

    @property
    def is_asked(self) -> bool:
        """Whether somebody asks for what only compiled code has."""
        return bool(self.strict or self.schedules or self.verify > 0 or self.device not in (None, CPU))

    @property
    def takes_memory(self) -> bool:
        """Whether programs run where memory that is reserved is taken, wherever their arrays are: on a device."""
        return self.device not in (None, CPU) or CONFIG.backend == "cuda"

    def of_part(self) -> Options:
        """Those of what a function consists of: sections, and functions that it calls."""
        return replace(self, static_argnums=(), static_argnames=(), schedules=())

    @property
    def is_rented(self) -> bool:
        """Whether plain Python answers until a compilation is paid for, and nothing is to be said of the arguments before."""
        return CONFIG.trial and not (self.is_asked or self.static_argnums or self.static_argnames)


def static_names(function: Callable[..., Any], options: Options) -> tuple[frozenset[int], frozenset[str]] | None:
    if not (options.static_argnums or options.static_argnames):
        return None
    parameters = list(inspect.signature(function).parameters)
    for name in options.static_argnames:
        if name not in parameters:
            raise ValueError(f"static_argnames: {name_of(function)} has no parameter {name!r}")
    for number in options.static_argnums:
        if not -len(parameters) <= number < len(parameters):
            raise ValueError(f"static_argnums: {name_of(function)} has {len(parameters)} parameters, not one at {number}")
    positions = {n % len(parameters) for n in options.static_argnums} | {parameters.index(n) for n in options.static_argnames}
    return frozenset(positions), frozenset(parameters[n] for n in positions)


def several(option: str, given: Any, kind: type[T], what: str) -> tuple[T, ...]:
    """An option that is one of a kind, or several."""
    items = (given,) if isinstance(given, kind) else tuple(given) if isinstance(given, Iterable) else (None,)
    if not all(isinstance(item, kind) for item in items):
        raise TypeError(f"{option}={given!r} is not {what}")
    return items


def fastmath_flags(flags: bool | Iterable[str]) -> frozenset[str]:
    if isinstance(flags, bool):
        return frozenset(FASTMATH_FLAGS if flags else ())
    chosen = frozenset(several("fastmath", flags, str, "a truth, or names of flags"))
    known = (*FASTMATH_FLAGS, *COARSE_FLAGS)
    if unknown := chosen.difference(known):
        raise ValueError(f"fastmath: no such flag: {', '.join(sorted(unknown))}; there are {', '.join(known)}")
    return chosen


def thread_count(threads: int | None) -> int | None:
    if threads is not None and (not isinstance(threads, int) or isinstance(threads, bool) or threads < 1):
        raise ValueError(f"threads={threads!r} is not a number of threads")
    return threads if threads is None else at_most_threads(threads, f"threads={threads}", frames=6)


def dynamic_choice(choice: bool | None) -> bool | None:
    if choice not in (None, True, False):
        raise ValueError(f"dynamic={choice!r} is neither True, False nor None")
    return choice


def strictness(choice: bool | None) -> bool:
    if choice not in (None, True, False):
        raise ValueError(f"strict={choice!r} is neither True, False nor None")
    return CONFIG.strict if choice is None else choice


def host_calls_allowed(choice: str) -> bool:
    if choice not in ("allow", "error"):
        raise ValueError(f"host_calls={choice!r} is neither 'allow' nor 'error'")
    return choice == "allow"


def resumed(function: Callable[..., Any]) -> str:
    """What a function is that goes on where it has stopped; empty for others."""
    inspected: dict[str, Callable[[object], bool]] = {
        "a generator": inspect.isgeneratorfunction,
        "a coroutine": inspect.iscoroutinefunction,
        "an async generator": inspect.isasyncgenfunction,
    }
    return next((what for what, holds in inspected.items() if holds(function)), "")


def is_resumed(function: Callable[..., Any]) -> bool:
    return bool(resumed(function))


def name_of(function: Callable[..., Any]) -> str:
    return str(getattr(function, "__qualname__", function))
