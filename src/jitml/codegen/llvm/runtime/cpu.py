"""Host CPU: what is this machine?  The host as a `Cpu`, its caches and usable cores, and LLVM's target machines for it.

The processor's name alone can mislead (a virtual machine may report an older model than its features), so that the
feature string always goes with it.
"""

from __future__ import annotations

import os
import platform
import sys
import threading
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jitml.codegen.llvm.ir.cpu import Cpu
from jitml.config import CONFIG
from jitml.errors import CompilerError
from jitml.forks import hold_at_fork
from jitml.records import dataclass

if TYPE_CHECKING:
    import llvmlite.binding as llvm


@cache
def llvm_binding() -> Any:
    """llvmlite's binding, with this machine as its target; imported at the first compilation, for it takes 30 ms."""
    import llvmlite.binding as llvm

    _share_lock(llvm.ffi.lib)
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    return llvm


def _share_lock(library: Any) -> None:
    """Let llvmlite take its lock by C code, and forks wait for it.

    Its own way is in Python: an exception that comes just when the lock is taken leaves it so, and nothing is compiled any more.
    """
    own = getattr(getattr(library, "_lock", None), "_lock", None)
    if not isinstance(own, type(threading.RLock())):
        return
    if not library._lock._cblist:  # of Numba, if that was imported before
        for function in [*library._fntab.values()]:  # another thread may add some
            function._lock = own
    hold_at_fork(own)


@cache
def host_cpu() -> Cpu:
    """The CPU this process runs on, or the one that JITML_CPU names."""
    llvm = llvm_binding()
    triple = llvm.get_process_triple()
    if CONFIG.cpu is not None:
        _require_known(CONFIG.cpu, triple)
        return Cpu(triple, CONFIG.cpu, "", thread_limit())
    return Cpu(triple, llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten(), thread_limit())


def _require_known(cpu: str, triple: str) -> None:
    """LLVM says of a CPU that it does not know to stderr, and ends the process: so another process asks it.

    Raises:
        CompilerError: it does not know this one.
    """
    import subprocess  # few need it

    program = "import sys, llvmlite.binding as llvm; llvm.initialize_all_targets(); llvm.initialize_all_asmprinters(); "
    program += "llvm.Target.from_triple(sys.argv[1]).create_target_machine(cpu=sys.argv[2])"
    asked = subprocess.run([sys.executable, "-c", program, triple, cpu], check=False, capture_output=True, text=True)
    if "not a recognized processor" in asked.stderr:
        raise CompilerError(
            f"JITML_CPU={cpu!r} is no processor that LLVM knows", remedy="Set it to a name of LLVM's, or unset it."
        )


def usable_cores() -> int:
    """Cores this process may run on: what the scheduler grants, not what the machine has."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def thread_limit() -> int:
    """The most threads a program uses unless `threads=` says otherwise."""
    return CONFIG.num_threads or usable_cores()


@dataclass(frozen=True, slots=True)
class Caches:
    """Bytes of the data caches that one core sees."""

    l1: int = 32 << 10
    l2: int = 1 << 20
    l3: int = 8 << 20


def _entries(folder: str) -> list[str]:
    try:
        return sorted(os.path.join(folder, name) for name in os.listdir(folder) if name.startswith("index"))
    except OSError:
        return []


def _line(path: str) -> str:
    with open(path) as file:
        return file.readline().strip()


@cache
def host_caches() -> Caches:
    """Cache sizes as Linux reports them; a modest guess elsewhere."""
    sizes: dict[str, int] = {}
    for entry in _entries("/sys/devices/system/cpu/cpu0/cache"):
        try:
            kind, level, size = (_line(os.path.join(entry, name)) for name in ("type", "level", "size"))
        except OSError:
            continue
        if kind != "Instruction" and size.endswith("K"):
            sizes[f"l{level}"] = int(size[:-1]) << 10
    known = {name: size for name, size in sizes.items() if name in ("l1", "l2", "l3")}
    return Caches(**known)


@cache
def target_machine(cpu: Cpu, opt: int, aside: bool = False) -> llvm.TargetMachine:
    """LLVM's target machine; kept, because the first code made with one costs 2 ms of tables.

    Args:
        aside: whether it is the background thread's, which shares none: they remember what they have seen.
    """
    binding = llvm_binding()
    binding.initialize_all_targets()  # programs from the disk are for this machine, and do without
    binding.initialize_all_asmprinters()
    return binding.Target.from_triple(cpu.triple).create_target_machine(cpu=cpu.cpu, features=cpu.features, opt=opt, jit=True)


def processor_name() -> str:
    """The processor as its maker calls it, for reports."""
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()
