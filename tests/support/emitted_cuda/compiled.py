"""What NVRTC makes of CUDA C++, for several architectures: registers, spills, shared memory; and limits that every kernel keeps.

The compiler's log alone tells spills from other local memory: reports are kept on disk, as code is.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import astuple, dataclass
from typing import Any

import jitml
from jitml.codegen.cuda.compiler import OPTIONS, compile_cubin, disassemble, nvrtc_version
from jitml.codegen.cuda.cubin import Cubin, Resources
from jitml.codegen.cuda.runtime.backend import BACKEND
from jitml.codegen.cuda.target import THREADS
from jitml.disk_cache import DiskCache, disk_cache
from jitml.pipeline import lower

ARCHS = ("sm_80", "sm_90", "sm_100")
_VERBOSE = (*OPTIONS, "--ptxas-options=-v")
_KERNEL = re.compile(
    r"Function properties for (\w+)\n.*?(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads", re.S
)
# Of one multiprocessor, and of one block without asking for more.
_REGISTERS, _SHARED, _PARAMETERS = 65536, 48 << 10, 4096


@dataclass(frozen=True)
class KernelReport:
    """
    Args:
        spills: bytes that are stored and loaded for want of registers.
    """

    resources: Resources
    spills: int

    @property
    def excess(self) -> str:
        """Which limit it does not keep."""
        r = self.resources
        if self.spills:
            return f"{self.spills} bytes of registers are spilled"
        if r.registers * THREADS > _REGISTERS:
            return f"{r.registers} registers are too many for {THREADS} threads"
        if r.shared > _SHARED:
            return f"{r.shared} bytes of shared memory"
        return f"{sum(r.parameters)} bytes of parameters" if sum(r.parameters) > _PARAMETERS else ""


def reports(source: str, arch: str) -> dict[str, KernelReport]:
    """Of each kernel of a text, as kept from before.

    Raises:
        CompilerError: NVRTC refuses it.
    """
    cache = disk_cache()
    key = cache.key("report", [source, arch, *_VERBOSE, str(nvrtc_version())])
    kept = cache.get(key)
    if kept is not None:
        return {name: KernelReport(Resources(*of[:3], tuple(of[3])), of[4]) for name, of in json.loads(kept).items()}
    found = fresh_reports(source, arch)
    content = {name: [*astuple(report.resources), report.spills] for name, report in found.items()}
    cache.put(key, json.dumps(content).encode())
    return found


def fresh_reports(source: str, arch: str) -> dict[str, KernelReport]:
    """Of each kernel of a text, which is compiled for it."""
    cubin = compile_cubin(source, arch, _VERBOSE, cache=DiskCache(None, 0))
    spills = _spills(cubin)
    return {name: KernelReport(resources, spills[name]) for name, resources in cubin.resources.items()}


def _spills(cubin: Cubin) -> dict[str, int]:
    found = {name: int(stores) + int(loads) for name, _, stores, loads in _KERNEL.findall(cubin.log)}
    assert found.keys() >= cubin.resources.keys(), cubin.log
    return {name: found[name] for name in cubin.resources}


def excesses(source: str, arch: str) -> dict[str, str]:
    """Kernels of a text that do not keep a limit, and which one."""
    return {name: report.excess for name, report in reports(source, arch).items() if report.excess}


def accesses(source: str, arch: str) -> Mapping[str, list[str]]:
    """The instructions of each kernel that access memory, as the disassembler writes them: `LDG.E.128`.

    Raises:
        UnsupportedError: there is no disassembler.
    """
    found: dict[str, list[str]] = {}
    for part in disassemble(compile_cubin(source, arch)).split(".text.")[1:]:
        kernel = re.match(r"\w+", part)
        names = re.findall(r"\b((?:LD|ST|ATOM|RED)[A-Z]*(?:\.[\w.]+)?)\s", part)
        if kernel:
            found.setdefault(kernel[0], []).extend(names)
    return found


def cuda_text(function: Callable[..., Any], *args: Any) -> str:
    """The CUDA C++ of a function for such arguments; whatever back end runs it here."""
    return lower(jitml.jit(function).lower(*args).traced, BACKEND).text("cuda")
