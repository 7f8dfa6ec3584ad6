"""The environment variables of jitml: this file is their manual. Each is read once, when jitml is imported.

JITML_NUM_THREADS   the most threads that a compiled program may use. Default: the cores that this process may run on.
                    `jit(threads=...)` wins over it. The limit is 256, or four for each core if that is more.
JITML_DUMP          stages that are printed to stderr as programs are compiled: a comma-separated list of `graph`,
                    `schedules`, `kernels`, `memory`, `llvm`, `asm`, or `all`. The interpreter also has `python`, a GPU
                    `cuda`, `launches`, `ptx`, `sass`. Default: none.
JITML_LOG           events that are told on stderr as they happen: a comma-separated list of `compile`, `recompile`,
                    `refuse`, `cache`, or `all` (docs/debugging.md). If the program has handlers of its own for `logging`,
                    they get the events instead. Default: none.
JITML_PROGRESS      `0`: do not show, on a terminal or in a notebook, that a compilation takes longer than a second.
JITML_CHECK         `1`: the compiler checks its own work after each stage, and calls are answered by machine code alone after the
                    first few. That makes it slower. The tests of jitml do so.
JITML_MAX_UNROLL    the most iterations of a loop that are written out one by one, if it cannot stay a loop. Default: 1000.
JITML_TRACE_SECONDS the most seconds of the processor that loops and calls may take which run while a function is traced:
                    those over Python numbers and containers. Default: 3.
JITML_MAX_PATHS     the most programs for one kind of arguments. If branches cannot be merged, each way through them needs a
                    program. So does each size, where that saves a host call. Default: 16.
JITML_SAVED_BYTES   the most bytes that the loops of a derivative may save, if it is not known beforehand how often they run.
                    At first 64 MiB are reserved. A loop that runs out of them gets four times as many, and so on. Default: a
                    quarter of the memory that this process may have: of the machine's, or of a limit by a control group or
                    `ulimit -v`.
JITML_KEPT_BYTES    the most bytes that are kept for new results when nobody holds an earlier large result any more. The
                    system takes longer to hand out memory than a kernel to fill it. Default: a thirty-second of the memory
                    that this process may have, at most 256 MiB; `0` gives all of it back at once.
JITML_STRICT        `1`: what cannot be compiled is refused by an error, at the first statement, and nothing runs as Python.
                    It is `jit(strict=True)` for all functions, and for transforms.
JITML_DISABLE       `1`: jitted functions run as plain Python, as under `jitml.disable()` (docs/debugging.md).
JITML_TRACEBACK     whose functions the traceback of an error shows: `short`, those of your code (the default), or `full`,
                    those of jitml, too (docs/debugging.md).
JITML_SITE          where these pages are: the address of a site that `make docs` has built. Messages then give the addresses of
                    pages there. Default: the site of the project. As long as it has none, messages name a command that
                    prints the page (docs/policy.md).
JITML_DEBUG_NANS    `1`: transforms run operation by operation and raise at the first NaN, as under `jitml.debug_nans()`.
JITML_VERIFY        which answers of compiled code are compared with plain NumPy's: `first` (of each variant; the default),
                    `always`, `never`, or a number n (each n-th). `jit(verify=...)` wins over it (docs/verification.md).
JITML_VERIFY_BYTES  the most bytes that may be copied for a comparison. A call that can reach more, by its arguments and
                    globals, is not checked. Default: a sixteenth of the memory that this process may have, at most 1 GiB.
JITML_VERIFY_SECONDS seconds that the plain function may take when a first answer is checked. If it takes longer, it is
                    stopped, and the answer counts as not checked. Default: 5. There is no limit if each n-th answer is
                    checked.
JITML_TRIAL         `0`: what can be compiled is compiled at its first call, and stays so, however fast it is. Otherwise
                    functions run as Python until compiling pays. Then the compiled code is timed against plain Python, and
                    the slower one is dropped (docs/sections.md). `0` is for tests and benchmarks.
JITML_BACKEND       what runs compiled programs: `llvm` (machine code; the default), `cuda` (an NVIDIA GPU: arrays are copied
                    there and back at each call), or `interpreter` (Python and NumPy: slow; for finding faults of the
                    compiler). The last two do not notice floating-point errors.
JITML_DEVICE_BYTES  the most bytes of a GPU's memory that this process may use. Default: all that the GPU has.
JITML_CACHE_DIR     the folder that keeps compiled programs, rewritten functions and GPU code for later processes. Several
                    processes may use it at once. Default: `jitml` in the user's folder for caches (`$XDG_CACHE_HOME`,
                    `~/.cache`; on macOS `~/Library/Caches`, on Windows `%LOCALAPPDATA%`). If it cannot be written, nothing
                    is kept.
JITML_CACHE_BYTES   the most bytes in that folder. What has not been used for longest is removed. Default: 268435456; `0`
                    keeps nothing.
JITML_TIER          how machine code is first made: `auto` (the default: in a hurry where that pays, and then with care by a
                    thread in the background, whose code takes over; `jitml.settle()` waits for it), `full` (with care at
                    once), or `quick` (in a hurry, and so it stays: for finding faults of the compiler).
JITML_CPU           the name of a processor to compile for, as LLVM calls it: `x86-64-v3`, `znver4`. Default: the one that is
                    found. It is for tests, and for making the code of another machine. Code for a processor that has more
                    instructions than this one ends the process by SIGILL.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from warnings import warn

from jitml.errors import JitmlError, default_site
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
        *("BACKEND", "DEVICE_BYTES", "CACHE_DIR", "CACHE_BYTES", "CPU", "SITE", "TIER"),
    )
)
# Back ends: where `BACKEND` is, which is imported only if it is asked for and brings its compiler, and the texts that it has.
BACKENDS = {
    "llvm": ("jitml.codegen.llvm.runtime.backend", ("llvm", "asm")),
    "interpreter": ("jitml.codegen.interpreted", ("python",)),
    "cuda": ("jitml.codegen.cuda.runtime.backend", ("cuda", "launches", "ptx", "sass")),
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
    device_bytes: int = _MOST
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
    site: str = field(default_factory=default_site)
    tier: str = "auto"


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
        device_bytes=_count("JITML_DEVICE_BYTES", "bytes", environment, _MOST),
        backend=_backend(environment.get("JITML_BACKEND", "")),
        cache_dir=environment.get("JITML_CACHE_DIR") or None,
        cache_bytes=_count("JITML_CACHE_BYTES", "bytes", environment, 256 << 20, least=0),
        site=_site(environment.get("JITML_SITE", "")),
        tier=_tier(environment.get("JITML_TIER", "")),
    )


def _site(text: str) -> str:
    if text and "://" not in text:
        raise ConfigError(
            f"JITML_SITE={text!r} is no address", remedy="Set it to one such as https://docs.your-company.com/jitml/."
        )
    return f"{text.rstrip('/')}/" if text else default_site()


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


def _tier(text: str) -> str:
    if text not in ("", "auto", "quick", "full"):
        raise ConfigError(f"JITML_TIER={text!r} is neither auto, quick nor full", remedy="Set it to one of them, or unset it.")
    return text or "auto"


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
