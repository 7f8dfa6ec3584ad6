"""NVRTC: CUDA C++ text in, a cubin for one architecture out; neither a GPU nor a driver is needed.

Texts include no header: those of CUDA take longer to read than our kernels to compile. Cubins, and not PTX, are what is loaded:
a driver that is older than the compiler cannot translate its PTX. They are kept on disk, for this version of the compiler.
"""

from __future__ import annotations

import re
import subprocess
import tempfile
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from shutil import which
from types import ModuleType
from typing import Any

from jitml.codegen.cuda.cubin import Cubin
from jitml.disk_cache import DiskCache, disk_cache
from jitml.errors import CompilerError, NoDeviceError, UnsupportedError

# Products and sums are rounded apart, as NumPy rounds them.
OPTIONS = ("--std=c++17", "--fmad=false")
_NAME = "jitml.cu"
_AROUND = 2  # lines of the source that a message shows above and below the one that it is about


def compile_cubin(source: str, arch: str, options: Sequence[str] = OPTIONS, *, cache: DiskCache | None = None) -> Cubin:
    """The machine code of a text, compiled or kept from before.

    Args:
        arch: `sm_80`, `sm_90`, `sm_90a`, ...
        cache: another one than the user's.

    Raises:
        NoDeviceError: NVRTC is not installed.
        UnsupportedError: it knows no such architecture.
        CompilerError: it refuses the text.
    """
    cache = cache or disk_cache()
    key = cache.key("cubin", [source, arch, *options, ".".join(map(str, nvrtc_version()))])
    kept = cache.get(key)
    if kept is not None:
        return Cubin(kept, arch)
    code, log = _compile(source, arch, options, "CUBIN")
    cubin = Cubin(code, arch, log)
    cache.put(key, code)
    return cubin


def compile_ptx(source: str, arch: str, options: Sequence[str] = OPTIONS) -> str:
    """The text in PTX, which people can read.

    Raises:
        NoDeviceError, UnsupportedError, CompilerError: as `compile_cubin`.
    """
    code, _ = _compile(source, arch.replace("sm_", "compute_"), options, "PTX")
    return code.rstrip(b"\0").decode()


def nvrtc_version() -> tuple[int, int]:
    """
    Raises:
        NoDeviceError: NVRTC is not installed.
    """
    major, minor = _call(_nvrtc().nvrtcVersion)
    return major, minor


def known_archs() -> tuple[str, ...]:
    """Architectures that NVRTC compiles for, but for those that bind code to one device (`sm_90a`)."""
    return tuple(f"sm_{arch}" for arch in _call(_nvrtc().nvrtcGetSupportedArchs))


def disassemble(cubin: Cubin) -> str:
    """The instructions of a cubin.

    Raises:
        UnsupportedError: there is no disassembler.
    """
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "jitml.cubin"
        path.write_bytes(cubin.code)
        done = subprocess.run([nvdisasm(), "--print-code", str(path)], capture_output=True, text=True, check=False)
    if done.returncode:
        raise CompilerError(f"nvdisasm has failed: {done.stderr.strip()}")
    return done.stdout


def nvdisasm() -> str:
    """The path of the disassembler.

    Raises:
        UnsupportedError: there is none.
    """
    try:
        found: str | None = import_module("cuda.pathfinder").find_nvidia_binary_utility("nvdisasm")
    except (ImportError, AttributeError):  # it is not there, or older than this function of its own
        found = which("nvdisasm")
    if found is None:
        raise UnsupportedError("there is no disassembler for GPU code", remedy="pip install nvidia-cuda-nvdisasm")
    return found


def _nvrtc() -> ModuleType:
    """NVRTC's functions, whose library has been found."""
    try:
        nvrtc = import_module("cuda.bindings.nvrtc")
        nvrtc.nvrtcVersion()
    except (ImportError, OSError, RuntimeError) as error:  # RuntimeError: the package is there, and the library is not
        missing = "cuda-bindings" if isinstance(error, ImportError) else "nvidia-cuda-nvrtc"
        raise NoDeviceError(
            f"the compiler of GPU code, NVRTC, is not there: {str(error).splitlines()[0]}",
            remedy=f"pip install 'jitml[cuda]' brings it ({missing} is missing); python -m jitml info shows what there is.",
        ) from error
    return nvrtc


def _call(function: Any, *arguments: Any) -> Any:
    """Call a function of NVRTC's: its results, without the status.

    Raises:
        CompilerError: the status is not success.
    """
    status, *results = function(*arguments)
    if status.value:
        raise CompilerError(f"NVRTC has failed: {function.__name__} says {status.name}")
    return results[0] if len(results) == 1 else results


def _compile(source: str, arch: str, options: Sequence[str], kind: str) -> tuple[bytes, str]:
    """Code of a kind that NVRTC has a getter for, and the log."""
    nvrtc = _nvrtc()
    _check_arch(arch)
    program = _call(nvrtc.nvrtcCreateProgram, source.encode(), _NAME.encode(), 0, [], [])
    try:
        arguments = [option.encode() for option in (f"--gpu-architecture={arch}", *options)]
        (status,) = nvrtc.nvrtcCompileProgram(program, len(arguments), arguments)
        log = _bytes(nvrtc, program, "ProgramLog").rstrip(b"\0").decode(errors="replace").strip()
        if status.value:
            raise _refusal(source, log or status.name)
        return _bytes(nvrtc, program, kind), log
    finally:
        nvrtc.nvrtcDestroyProgram(program)


def _check_arch(arch: str) -> None:
    number = re.sub(r"\D", "", arch)
    if f"sm_{number}" not in known_archs():
        major, minor = nvrtc_version()
        package = "nvidia-cuda-nvrtc" if major >= 13 else f"nvidia-cuda-nvrtc-cu{major}"
        raise UnsupportedError(
            f"NVRTC {major}.{minor} does not compile for {arch}",
            remedy=f"It knows {', '.join(known_archs())}. There may be a newer one: pip install --upgrade {package}",
        )


def _bytes(nvrtc: ModuleType, program: Any, kind: str) -> bytes:
    buffer = bytearray(_call(getattr(nvrtc, f"nvrtcGet{kind}Size"), program))
    _call(getattr(nvrtc, f"nvrtcGet{kind}"), program, buffer)
    return bytes(buffer)


def _refusal(source: str, log: str) -> CompilerError:
    """An error that shows the lines around the first one which the log complains of, and the log."""
    lines = source.splitlines()
    place = re.search(rf"{re.escape(_NAME)}\((\d+)\): (?:catastrophic )?error: (.*)", log)
    shown = []
    if place:
        at = int(place[1])
        first, last = max(at - _AROUND, 1), min(at + _AROUND, len(lines))
        shown = [f"  {'>' if n == at else ' '}{n:5} | {lines[n - 1]}" for n in range(first, last + 1)]
    what = f"line {place[1]}: {place[2]}" if place else log.splitlines()[0]
    text = "\n".join([*shown, "NVRTC's log:", *(f"  {line}" for line in log.splitlines())])
    return CompilerError(
        f"NVRTC refuses the CUDA C++ of a program: {what}",
        remedy=f"{text}\nThis is a bug in jitml: please report it, with the function and this text.",
    )
