"""The environment variables of jitml: this file is their manual. Each is read once, when jitml is imported.

JITML_NUM_THREADS   threads a compiled program may use; default: the cores this process may run on.
                    `jit(threads=...)` wins over it. More than 256, and than four for each core, are taken for as many.
JITML_DUMP          stages printed to stderr as programs are compiled: a comma-separated list of `graph`, `schedules`,
                    `kernels`, `memory`, `llvm`, `asm` (of the interpreter `python`, of a GPU `cuda`, `ptx`, `sass`), or `all`.
                    Default: none.
JITML_LOG           what is told on stderr, as it happens: a comma-separated list of `compile`, `recompile`, `refuse`, `cache`, or
                    `all` (docs/debugging.md). Where a program has handlers of its own for `logging`, they get it. Default: none.
JITML_PROGRESS      `0`: do not say on a terminal, or in a notebook, that a compilation takes longer than a second.
JITML_CHECK         `1`: verify each layer's data after each stage (slower to compile; always on in jitml's tests).
JITML_MAX_UNROLL    iterations of a loop that may be traced one by one where it cannot stay a loop. Default: 1000.
JITML_TRACE_SECONDS seconds (of the processor) that loops over Python numbers and containers, and calls, may take which are run
                    while a function is traced. Default: 3.
JITML_MAX_PATHS     programs that may be compiled for the same kind of arguments where branches cannot be merged, each for
                    other outcomes of their conditions, or where a host call is spared by one for each size. Default: 16.
JITML_SAVED_BYTES   bytes that the loops of a derivative may save whose limit is not known. At first 64 MiB are reserved, then
                    four times as many for a loop that runs out of them, and so on. Default: a quarter of the memory that
                    this process may have: the machine's, or less, by a control group or `ulimit -v`.
JITML_KEPT_BYTES    bytes of large results that nobody holds any more, kept for new ones: the system takes longer to hand out
                    memory than a kernel to fill it. Default: a thirty-second of that memory, at most 256 MiB; `0`
                    gives all of it back at once.
JITML_STRICT        `1`: what cannot be captured as a whole is refused, at the first statement that breaks, and no part of it
                    runs as Python: `jit(strict=True)` for all functions, and for transforms.
JITML_DISABLE       `1`: jitted functions run as plain Python, as under `jitml.disable()` (docs/debugging.md).
JITML_TRACEBACK     whose frames the traceback of an error shows: `short`, those of your code (the default), or `full`, those
                    of jitml, too (docs/debugging.md).
JITML_DEBUG_NANS    `1`: transforms run op by op and raise at the first NaN, as under `jitml.debug_nans()`.
JITML_VERIFY        which answers of compiled code are compared with plain NumPy's: `first` (of each compiled variant; the
                    default), `always`, `never`, or a number n (each n-th). `jit(verify=...)` wins over it.
JITML_VERIFY_BYTES  bytes that may be copied for it, of what a call can reach; a call that reaches more is not checked. Default:
                    a sixteenth of the memory that this process may have, at most 1 GiB.
JITML_VERIFY_SECONDS seconds that the plain function may take when a first answer is checked. If it takes longer, it is stopped,
                    and the answer counts as not checked. Default: 5. Where each n-th answer is checked, there is no limit.
JITML_TRIAL         `0`: what can be compiled is, at its first call, and stays, however fast it is; else functions run as Python
                    until a compilation is paid for, and what has been compiled is timed against plain Python, and the
                    slower one is dropped (docs/sections.md). For tests and benchmarks.
JITML_BACKEND       what runs compiled programs: `llvm` (machine code; the default), `cuda` (an NVIDIA GPU: arrays are copied
                    there and back at each call), or `interpreter` (Python and NumPy: slow; it tells what is wrong before
                    machine code is made). The last two hear of no floating-point errors.
JITML_CACHE_DIR     folder in which compiled programs, rewritten functions and GPU code are kept for later processes;
                    several may use it at once.
                    Default: `jitml` in the user's folder for caches (`$XDG_CACHE_HOME`, `~/.cache`; on macOS
                    `~/Library/Caches`, on Windows `%LOCALAPPDATA%`). A folder that cannot be written keeps nothing.
JITML_CACHE_BYTES   bytes that it may have; what has not been used longest is removed. Default: 268435456; `0` keeps nothing.
JITML_CPU           compile for this LLVM CPU name (`x86-64-v3`, `znver4`) in place of the one found, with the features
                    that its name implies. For tests and for reproducing another machine's code: code for a CPU that
                    has more than this one dies with SIGILL.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from warnings import warn

from jitml.errors import JitmlError
from jitml.records import dataclass, field

try:
    import resource
except ImportError:  # Windows
    resource = None  # type: ignore[assignment]

FIRST, NEVER = 0, -1  # cadences of checked answers
_MOST = (1 << 63) - 1  # what an int64 holds

NAMES = tuple(
    f"JITML_{name}"
    for name in (
        *("NUM_THREADS", "DUMP", "LOG", "CHECK", "MAX_UNROLL", "TRACE_SECONDS", "MAX_PATHS", "SAVED_BYTES", "KEPT_BYTES"),
        *("PROGRESS", "STRICT", "TRIAL", "DISABLE", "TRACEBACK", "DEBUG_NANS", "VERIFY", "VERIFY_BYTES", "VERIFY_SECONDS"),
        *("BACKEND", "CACHE_DIR", "CACHE_BYTES", "CPU"),
    )
)
# Back ends: where `BACKEND` is, which is imported only if it is asked for and brings its compiler, and the texts that it has.
BACKENDS = {
    "llvm": ("jitml.codegen.llvm.runtime.backend", ("llvm", "asm")),
    "interpreter": ("jitml.codegen.interpreted", ("python",)),
    "cuda": ("jitml.codegen.cuda.runtime.backend", ("cuda", "ptx", "sass")),
}
LOG_KINDS = ("compile", "recompile", "refuse", "cache")
STAGES = ("graph", "schedules", "kernels", "memory", *(stage for _, texts in BACKENDS.values() for stage in texts))


class ConfigError(JitmlError, ValueError):
    """An environment variable of jitml has a value that means nothing."""

    own_code = "JM209"


def _quarter_of_memory() -> int:
    """Of what this process may have, in bytes; a guess where the system does not say."""
    return min((_physical_memory(), _address_space(), *_group_limits()), default=1 << 32) // 4


def _physical_memory() -> int:
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return 1 << 32


def _address_space() -> int:
    """What `ulimit -v` allows: memory that is only reserved counts, too."""
    if resource is None:
        return _MOST
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    return _MOST if limit == resource.RLIM_INFINITY else limit


def _group_limits(groups: str = "/proc/self/cgroup", mount: str = "/sys/fs/cgroup") -> Iterator[int]:
    """What Linux allows the control groups that this process is in (a container, a batch job), in bytes.

    Args:
        groups: lines `number:controllers:path`; of version 2 without controllers. In a container the path may be that outside.
        mount: where their files are.
    """
    for line in _lines(groups):
        _, controllers, path = line.split(":", 2)
        if controllers and "memory" not in controllers.split(","):
            continue
        top, name = (f"{mount}/memory", "memory.limit_in_bytes") if controllers else (mount, "memory.max")
        parts = path.strip("/").split("/")
        for n in range(len(parts) + 1):
            for limit in _lines("/".join([top, *parts[:n], name])):
                if limit.isdecimal():
                    yield int(limit)


def _lines(path: str) -> list[str]:
    try:
        with open(path) as file:
            return file.read().splitlines()
    except OSError:
        return []


def _some_to_keep(quarter: int | None = None) -> int:
    return min((_quarter_of_memory() if quarter is None else quarter) // 8, 256 << 20)


def _some_to_copy(quarter: int | None = None) -> int:
    return min((_quarter_of_memory() if quarter is None else quarter) // 4, 1 << 30)


@dataclass(frozen=True, slots=True)
class Config:
    """What the environment asks for; None or empty where it is silent."""

    num_threads: int | None = None
    dump: frozenset[str] = frozenset()
    check: bool = False
    cpu: str | None = None
    max_unroll: int = 1000
    trace_seconds: int = 3
    max_paths: int = 16
    saved_bytes: int = field(default_factory=_quarter_of_memory)
    debug_nans: bool = False
    strict: bool = False
    disable: bool = False
    full_traceback: bool = False
    kept_bytes: int = field(default_factory=_some_to_keep)
    verify: str | int = "first"
    verify_bytes: int = field(default_factory=_some_to_copy)
    verify_seconds: int = 5
    trial: bool = True
    backend: str = "llvm"
    cache_dir: str | None = None
    cache_bytes: int = 256 << 20
    log: frozenset[str] = frozenset()
    progress: bool = True


def read(environment: Mapping[str, str]) -> Config:
    """The configuration that these variables ask for.

    Names that begin as ours do and mean nothing are warned of.

    Raises:
        ConfigError: a value cannot be understood; the message names the variable.

    >>> read({"JITML_NUM_THREADS": "2", "JITML_DUMP": "graph,llvm"}).num_threads
    2
    """
    if unknown := sorted(name for name in environment if name.startswith("JITML_") and name not in NAMES):
        warn(f"jitml has no variable {', '.join(unknown)}; there are {', '.join(NAMES)}", stacklevel=2)
    quarter = _quarter_of_memory()
    return Config(
        num_threads=_threads(environment.get("JITML_NUM_THREADS", "")),
        dump=_several("JITML_DUMP", "stage", STAGES, environment),
        log=_several("JITML_LOG", "kind of event", LOG_KINDS, environment),
        progress=_switch("JITML_PROGRESS", environment, usual=True),
        check=_switch("JITML_CHECK", environment),
        debug_nans=_switch("JITML_DEBUG_NANS", environment),
        strict=_switch("JITML_STRICT", environment),
        disable=_switch("JITML_DISABLE", environment),
        full_traceback=_full_traceback(environment.get("JITML_TRACEBACK", "")),
        max_unroll=_count("JITML_MAX_UNROLL", "iterations", environment, 1000),
        trace_seconds=_count("JITML_TRACE_SECONDS", "seconds", environment, 3),
        max_paths=_count("JITML_MAX_PATHS", "programs", environment, 16),
        saved_bytes=_count("JITML_SAVED_BYTES", "bytes", environment, quarter),
        kept_bytes=_count("JITML_KEPT_BYTES", "bytes", environment, _some_to_keep(quarter), least=0),
        verify=_verify(environment.get("JITML_VERIFY", "")),
        verify_bytes=_count("JITML_VERIFY_BYTES", "bytes", environment, _some_to_copy(quarter), least=0),
        verify_seconds=_count("JITML_VERIFY_SECONDS", "seconds", environment, 5),
        trial=_switch("JITML_TRIAL", environment, usual=True),
        cpu=environment.get("JITML_CPU") or None,
        backend=_backend(environment.get("JITML_BACKEND", "")),
        cache_dir=environment.get("JITML_CACHE_DIR") or None,
        cache_bytes=_count("JITML_CACHE_BYTES", "bytes", environment, 256 << 20, least=0),
    )


def _threads(text: str) -> int | None:
    if not text:
        return None
    if not text.isdecimal() or int(text) < 1:
        raise ConfigError(f"JITML_NUM_THREADS={text!r} is not a number of threads", remedy="Set it to 1 or more, or unset it.")
    return at_most_threads(int(text), f"JITML_NUM_THREADS={text}")


def at_most_threads(count: int, asked: str, frames: int = 4) -> int:
    """So many threads as a machine may have a use for: each has a stack, and the system has an end of them.

    Args:
        frames: from here to the line that is warned of.

    >>> at_most_threads(4, "threads=4")
    4
    """
    most = max(256, 4 * (os.cpu_count() or 1))
    if count > most:
        warn(f"{asked} is more than this machine has a use for; {most} threads are used at the most", stacklevel=frames)
    return min(count, most)


def _backend(text: str) -> str:
    if text not in ("", *BACKENDS):
        raise ConfigError(f"JITML_BACKEND={text!r} is no back end", remedy=f"There are {', '.join(BACKENDS)}.")
    return text or "llvm"


def _verify(text: str) -> str | int:
    if text in ("", "first", "always", "never"):
        return text or "first"
    if text.isdecimal() and int(text):
        return int(text)
    raise ConfigError(
        f"JITML_VERIFY={text!r} is neither first, always, never nor a number of calls",
        remedy="Set it to one of them, or unset it.",
    )


def cadence(option: str | int) -> int:
    """Each how many calls an answer is checked; 0 for the first one alone, -1 for none.

    Raises:
        ValueError: no such choice.

    >>> cadence("always"), cadence(10)
    (1, 10)
    """
    named = {"first": FIRST, "always": 1, "never": NEVER}
    if isinstance(option, str) and option in named:
        return named[option]
    if isinstance(option, int) and not isinstance(option, bool) and option > 0:
        return option
    raise ValueError(f"verify={option!r} is neither 'first', 'always', 'never' nor a number of calls")


def _full_traceback(text: str) -> bool:
    if text not in ("", "short", "full"):
        raise ConfigError(f"JITML_TRACEBACK={text!r} is neither short nor full", remedy="Set it to one of them, or unset it.")
    return text == "full"


def _count(name: str, of: str, environment: Mapping[str, str], usual: int, least: int = 1) -> int:
    text = environment.get(name, "")
    if not text:
        return usual
    if not text.isdecimal() or not least <= int(text) <= _MOST:
        raise ConfigError(f"{name}={text!r} is not a number of {of}", remedy=f"Set it to {least} or more, or unset it.")
    return int(text)


def _switch(name: str, environment: Mapping[str, str], *, usual: bool = False) -> bool:
    text = environment.get(name, "") or str(int(usual))
    if text not in ("0", "1"):
        raise ConfigError(f"{name}={text!r} is neither 0 nor 1", remedy="Set it to one of them, or unset it.")
    return text == "1"


def _several(name: str, what: str, known: tuple[str, ...], environment: Mapping[str, str]) -> frozenset[str]:
    """Some of these names, or `all`."""
    names = frozenset(part.strip() for part in environment.get(name, "").split(",") if part.strip())
    if "all" in names:
        return frozenset(known)
    if unknown := names.difference(known):
        raise ConfigError(
            f"{name} names no such {what}: {', '.join(sorted(unknown))}",
            remedy=f"There are {', '.join(known)}, and all.",
        )
    return names


CONFIG = read(os.environ)
