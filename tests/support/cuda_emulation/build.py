"""Building emulated kernels: sources of CUDA C++ in, one shared library out, kept by its content for all tests to come."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import pytest

from support.cuda_emulation.launch import EmulatedModule, load_machine

HEADERS = Path(__file__).with_name("headers")
_OPTIONS = (
    *("-std=c++20", "-fPIC", "-w", "-fno-strict-aliasing", "-fno-exceptions", "-U_FORTIFY_SOURCE"),
    # As the device computes: products and sums are rounded apart, and integers wrap.
    *("-ffp-contract=off", "-fwrapv"),
    # Every access calls a function of races.cpp; of the sanitizer's library nothing is taken.
    *("-fsanitize=thread", "--param=tsan-instrument-func-entry-exit=0"),
    *("-g1", "-gdwarf-4"),  # lines, for messages; in the fifth version, tools take the file of the first function for another
    "-fstack-clash-protection",  # a large frame touches each of its pages, so that none steps over the one that guards the stack
    # A trap needs no library of the sanitizer's: the launch hears of the signal.
    *("-fsanitize=alignment,bounds,shift-exponent,null", "-fsanitize-undefined-trap-on-error"),
)
_KERNEL = re.compile(r'extern\s+"C"\s+__global__\s+([^{;]*?)\b(\w+)\s*(?=\((?!\s*\d+\s*[,)]))')
_DYNAMIC_SHARED = re.compile(r"extern\s+__shared__\s+(?:__align__\(\s*\d+\s*\)\s+)?([\w:\s]+?)\s*(\w+)\s*\[\s*\]\s*;")


class BuildError(RuntimeError):
    """The host's compiler refuses a source; the message is its log."""


@cache
def has_compiler() -> bool:
    return shutil.which(_compiler()) is not None


def build(sources: Sequence[str], level: int = 1) -> list[EmulatedModule]:
    """The kernels of each source, all compiled in one go.

    Each source has a namespace of its own, so that names may come again.

    Args:
        level: of optimization. Kernels that run once on little are done sooner with 0, which takes half as long to compile.

    Raises:
        BuildError: a source cannot be compiled.
    """
    texts, kernels = [], []
    for number, source in enumerate(sources):
        names = [name for _, name in _KERNEL.findall(source)]
        texts.append(_translated(number, source, names))
        kernels.append({name: f"launch_{number}_{name}" for name in names})
    load_machine(_built("machine", '#include "machine.cpp"\n#include "races.cpp"\n#include "traffic.cpp"\n', ("-O2",)))
    options = (*_OPTIONS, f"-O{level}")
    library = _built("kernels", "".join(texts), options, ("-include", str(_precompiled(options))))
    return [EmulatedModule(library, names) for names in kernels]


def _translated(number: int, source: str, kernels: Sequence[str]) -> str:
    """A source for the host's compiler, with a function that launches each kernel."""
    text = _KERNEL.sub(r"__global__ \1\2", source)
    text = _DYNAMIC_SHARED.sub(r"\1* \2 = (\1*)::emulation::here.dynamic_shared;", text)
    exports = "".join(f"EMULATION_EXPORT(launch_{number}_{name}, source_{number}::{name})\n" for name in kernels)
    return f'namespace source_{number} {{\n#line 1 "source_{number}"\n{text}\n}}\n{exports}'


def _compiler() -> str:
    return os.environ.get("CXX", "g++")


@cache
def _headers_digest() -> str:
    return hashlib.sha256("\0".join(path.read_text() for path in sorted(HEADERS.iterdir())).encode()).hexdigest()


def _kept(name: str, suffix: str, *content: str) -> Path:
    """Where what is made of this content lies; tests of all processes share the folder."""
    folder = Path(tempfile.gettempdir()) / f"cuda-emulation-{os.getuid()}"
    folder.mkdir(exist_ok=True, mode=0o700)
    key = hashlib.sha256("\0".join((_compiler(), _headers_digest(), *content)).encode()).hexdigest()[:24]
    return folder / f"{name}-{key}{suffix}"


def _precompiled(options: Sequence[str]) -> Path:
    """The header that all kernels include, compiled ahead: g++ takes the `.gch` beside it."""
    header = _kept("kernel", ".h", *options)
    if not header.with_suffix(".h.gch").exists():
        include = f'#include "{HEADERS / "kernel.h"}"\n'
        _replace(header, include)
        _compile(header.with_suffix(".h.gch"), (*options, "-x", "c++-header", str(header)))
    return header


def _built(name: str, text: str, options: Sequence[str], includes: Sequence[str] = ()) -> Path:
    library = _kept(name, ".so", text, *options)
    if not library.exists():
        source = library.with_suffix(".cpp")
        _replace(source, text)
        # The libraries by their names: the options would bring the sanitizer's as well.
        linked = ("-shared", "-nostdlib", "-x", "c++", str(source), "-x", "none", "-lstdc++", "-lm", "-lc", "-lgcc")
        _compile(library, ("-std=c++20", "-fPIC", *options, f"-I{HEADERS}", *includes, *linked))
    return library


def _replace(path: Path, text: str) -> None:
    temporary = path.with_name(f"{path.name}.{os.getpid()}")
    temporary.write_text(text)
    temporary.replace(path)


def _compile(path: Path, arguments: Sequence[str]) -> None:
    """One call of the compiler; processes that make the same file find a whole one. Tests without g++ are skipped."""
    if not has_compiler():
        pytest.skip(f"kernels are emulated by {_compiler()}, which is not there")
    temporary = path.with_name(f"{path.name}.{os.getpid()}")
    done = subprocess.run([_compiler(), *arguments, "-o", str(temporary)], capture_output=True, text=True, check=False)
    if done.returncode:
        raise BuildError(done.stderr)
    temporary.replace(path)
