"""Machine facts for the check of a GPU: what is there, and of what is needed, what is not.

    python -m gpu.machine

prints them as JSON, in a process of its own: a driver that hangs, or a library that ends the process, is a fact too.
"""

from __future__ import annotations

import glob
import importlib.util
import json
import os
import platform
import shutil
import subprocess
import sys
import time
from importlib.metadata import PackageNotFoundError, version
from typing import Any

PACKAGES = {  # import name -> distributions that bring it
    "numpy": ("numpy",),
    "scipy": ("scipy",),
    "llvmlite": ("llvmlite",),
    "optree": ("optree",),
    "pytest": ("pytest",),
    "hypothesis": ("hypothesis",),
    "cuda.bindings": ("cuda-bindings",),
    "cuda.core": ("cuda-core",),
    "torch": ("torch",),
    "triton": ("triton",),
    "cupy": ("cupy-cuda13x", "cupy-cuda12x", "cupy"),
    "jax": ("jax",),
    "numba": ("numba",),
    "matplotlib": ("matplotlib",),
}
TOOLS = ("compute-sanitizer", "ncu", "nvdisasm", "cuobjdump", "g++")
_FOLDERS = ("/usr/local/cuda/bin", "/usr/local/cuda/compute-sanitizer", "/opt/nvidia/nsight-compute/*")


def tool(name: str) -> str | None:
    """Where a program is: on the path, or where CUDA's toolkit puts it."""
    return shutil.which(name) or shutil.which(name, path=os.pathsep.join(folder for f in _FOLDERS for folder in glob.glob(f)))


def facts() -> dict[str, Any]:
    """Versions, the driver's figures, back ends, tools; what raises is the error's text."""
    found: dict[str, Any] = {
        "date": time.strftime("%Y-%m-%d %H:%M"),
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        "cores": os.cpu_count(),
        "packages": {name: _version(name) for name in PACKAGES},
        "tools": {name: tool(name) for name in TOOLS},
    }
    for name, ask in (("device", _device), ("nvrtc", _nvrtc), ("backends", _backends), ("clocks", _clocks)):
        try:
            found[name] = ask()
        except Exception as error:  # an absent driver, a package of another version: that is the fact
            found[name] = f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"
    return found


def _version(name: str) -> str:
    try:
        if importlib.util.find_spec(name) is None:
            return "absent"
    except ModuleNotFoundError:
        return "absent"
    for distribution in PACKAGES[name]:
        try:
            return version(distribution)
        except PackageNotFoundError:
            continue
    return "there"


def _device() -> dict[str, Any]:
    from cuda.bindings import driver

    def ask(function: Any, *args: Any) -> Any:
        error, *values = function(*args)
        if int(error):
            raise RuntimeError(f"{function.__name__}: {error}")
        return values[0] if len(values) == 1 else values

    ask(driver.cuInit, 0)
    device = ask(driver.cuDeviceGet, 0)

    def attribute(name: str) -> int | None:
        try:
            return int(
                ask(driver.cuDeviceGetAttribute, getattr(driver.CUdevice_attribute, f"CU_DEVICE_ATTRIBUTE_{name}"), device)
            )
        except Exception:  # a figure that this version does not have is no reason to say that there is no device
            return None

    name = ask(driver.cuDeviceGetName, 128, device)
    return {
        "count": int(ask(driver.cuDeviceGetCount)),
        "name": name.split(b"\0")[0].decode() if isinstance(name, bytes) else str(name),
        "driver": int(ask(driver.cuDriverGetVersion)),
        "capability": [attribute("COMPUTE_CAPABILITY_MAJOR"), attribute("COMPUTE_CAPABILITY_MINOR")],
        "multiprocessors": attribute("MULTIPROCESSOR_COUNT"),
        "l2 bytes": attribute("L2_CACHE_SIZE"),
        "shared bytes, opt in": attribute("MAX_SHARED_MEMORY_PER_BLOCK_OPTIN"),
        "memory bytes": int(ask(driver.cuDeviceTotalMem, device)),
    }


def _nvrtc() -> list[int]:
    from cuda.bindings import nvrtc

    error, major, minor = nvrtc.nvrtcVersion()
    if int(error):
        raise RuntimeError(str(error))
    return [int(major), int(minor)]


def _backends() -> list[str]:
    from jitml.config import BACKENDS

    return list(BACKENDS)


def _clocks() -> str:
    asked = "name,driver_version,clocks.sm,clocks.max.sm,clocks.mem,power.limit,temperature.gpu,memory.used,persistence_mode"
    command = ["nvidia-smi", f"--query-gpu={asked}", "--format=csv,noheader"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=10, check=True)
    return done.stdout.strip()


def absent(found: dict[str, Any], backend: str) -> dict[str, str]:
    """Needs of parts that are not met: need -> why."""
    packages = found.get("packages", {})
    why = {name: f"no Python package {name}" for name, at in packages.items() if at == "absent"}
    why |= {f"tool:{name}": f"no {name}" for name, at in found.get("tools", {}).items() if at is None}
    if not isinstance(found.get("device"), dict):
        why["device"] = f"no GPU ({found.get('device')})"
    if not isinstance(found.get("nvrtc"), list):
        why["nvrtc"] = f"no NVRTC ({found.get('nvrtc')})"
    backends = found.get("backends")
    if not isinstance(backends, list):
        why["backend"] = why["jitml"] = f"jitml cannot be imported ({backends})"
    elif backend not in backends:
        why["backend"] = f"jitml has no back end {backend}"
    return why


if __name__ == "__main__":
    json.dump(facts(), sys.stdout)
