"""Building emulated kernels: sources of CUDA C++ in, one shared library out, kept by its content for all tests to come."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from support.cuda_emulation.host_library import compile_to, kept, write
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


def build(sources: Sequence[str], level: str = "g") -> list[EmulatedModule]:
    """The kernels of each source, all compiled in one go.

    Each source has a namespace of its own, so that names may come again.

    Args:
        level: of optimization. What runs once on little is done sooner with "0".

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


@cache
def _headers_digest() -> str:
    return hashlib.sha256("\0".join(path.read_text() for path in sorted(HEADERS.iterdir())).encode()).hexdigest()


def _precompiled(options: Sequence[str]) -> Path:
    """The header that all kernels include, compiled ahead: g++ takes the `.gch` beside it."""
    header = kept("kernel.h", _headers_digest(), *options)
    if not header.with_suffix(".h.gch").exists():
        write(header, f'#include "{HEADERS / "kernel.h"}"\n')
        compile_to(header.with_suffix(".h.gch"), (*options, "-x", "c++-header", str(header)))
    return header


def _built(name: str, text: str, options: Sequence[str], includes: Sequence[str] = ()) -> Path:
    library = kept(f"{name}.so", _headers_digest(), text, *options)
    if not library.exists():
        source = library.with_name("source.cpp")
        write(source, text)
        # The libraries by their names: the options would bring the sanitizer's as well.
        linked = ("-shared", "-nodefaultlibs", "-x", "c++", str(source), "-x", "none", "-lstdc++", "-lm", "-lc", "-lgcc")
        compile_to(library, ("-std=c++20", "-fPIC", *options, f"-I{HEADERS}", *includes, *linked))
    return library
