"""Inventory of what a GPU needs: packages, compiler, driver, devices; and which package brings what is missing.

A driver may hang, so a process of its own asks for all this, and is given up after some seconds.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from importlib.metadata import PackageNotFoundError, version

from jitml.codegen.cuda.compiler import known_archs, nvdisasm, nvrtc_version
from jitml.codegen.cuda.runtime.driver import bindings
from jitml.codegen.cuda.runtime.gpu import Gpu
from jitml.disk_cache import disk_cache
from jitml.errors import JitmlError
from jitml.memory.report import bytes_text

_SECONDS = 30.0
# Packages, by the names that they have for CUDA 13 and for CUDA 12, and what they are for.
_NEEDED = {"cuda-bindings": "the driver from Python", "cuda-pathfinder": "finding libraries", "nvidia-cuda-nvrtc": "compiling"}
_OPTIONAL = ("nvidia-cuda-nvdisasm", "nvidia-cublas", "nvidia-cusolver")
_ASK = "import sys; sys.path[:] = {path!r}; from {module} import print_facts; print_facts()"


def gpu_facts(seconds: float = _SECONDS) -> dict[str, str]:
    """One fact a line, by its name; never raises, and never takes longer than so many seconds."""
    command = [sys.executable, "-c", _ASK.format(path=sys.path, module=__name__)]
    try:
        asked = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    except OSError as error:
        return {"GPU": f"not asked for: no process of its own can be started ({error})"}
    try:
        told, complaint = asked.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        asked.kill()  # and is not waited for: a process whose driver hangs may not even die
        return {"GPU": f"the driver has not answered for {seconds:g} seconds; see what `nvidia-smi` says"}
    try:
        facts: dict[str, str] = json.loads(told.splitlines()[-1])
    except (ValueError, IndexError):
        return {"GPU": f"asking for it has failed ({asked.returncode}): {(complaint.splitlines() or ['no words'])[-1]}"}
    return facts


def print_facts() -> None:
    """What `gpu_facts` reads."""
    facts = {"GPU packages": _packages(), "GPU libraries": _libraries()}
    facts["GPU compiler"] = _told(lambda: f"NVRTC {'.'.join(map(str, nvrtc_version()))} for {', '.join(known_archs())}")
    facts["disassembler"] = _told(nvdisasm)
    facts["disk cache"] = _cache()
    print(json.dumps(facts | _devices()))


def _packages() -> str:
    found = {name: _version(name) for name in _NEEDED}
    missing = [f"{name} ({_NEEDED[name]})" for name, text in found.items() if not text]
    texts = [f"{name} {text}" for name, text in found.items() if text]
    if missing:
        texts.append(f"missing: {', '.join(missing)}; pip install 'jitml[cuda]' brings them")
    return "; ".join(texts)


def _libraries() -> str:
    """What is used if it is there."""
    return "; ".join(f"{name} {_version(name) or 'not installed'}" for name in _OPTIONAL)


def _version(name: str) -> str:
    for known in (name, f"{name}-cu13", f"{name}-cu12"):
        try:
            return version(known) + known.removeprefix(name).replace("-", " ")
        except PackageNotFoundError:
            continue
    return ""


def _told(ask: Callable[[], str]) -> str:
    """An answer, or why there is none."""
    try:
        return ask()
    except JitmlError as error:
        return _reason(error)


def _reason(error: JitmlError) -> str:
    return "; ".join(filter(None, (error.message, error.remedy)))


def _cache() -> str:
    cache = disk_cache()
    if cache.folder is None:
        return "none (JITML_CACHE_DIR, JITML_CACHE_BYTES)"
    return f"{cache.folder}, {bytes_text(cache.taken())} of {bytes_text(cache.limit)} (JITML_CACHE_DIR, JITML_CACHE_BYTES)"


def _devices() -> dict[str, str]:
    try:
        driver = bindings()
    except JitmlError as error:
        return {"GPU": _reason(error)}
    _, number = driver.cuDriverGetVersion()
    _, count = driver.cuDeviceGetCount()
    facts = {"GPU driver": f"CUDA {number // 1000}.{number % 1000 // 10}"}
    return facts | {f"GPU {ordinal}": _told(partial(_device, ordinal)) for ordinal in range(count)}


def _device(ordinal: int) -> str:
    gpu = Gpu(ordinal)
    return f"{gpu.name}, {gpu.arch}, {gpu.multiprocessors} multiprocessors, {bytes_text(gpu.memory()[1])}"
