"""Memory headroom: whether there is memory for libraries that end the process where they find none, asked before they are called.

LLVM aborts, and OpenBLAS exits or waits without end. So as much as they need is taken for a moment, and given back: where that
fails, as under a limit of the address space (`ulimit -v`), plain Python may still do. What a machine has promised beyond its
memory, no process can ask.
"""

from __future__ import annotations

import mmap
import os
import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

from jitml.errors import StarvedError
from jitml.interrupts import pass_on

try:
    import resource
except ImportError:  # Windows
    resource = None  # type: ignore[assignment]

_RELEASES: list[Callable[[], None]] = []
_MARGIN = 32 << 20  # what Python takes meanwhile, and what is left unused between blocks
_LLVM_STATE = 32 << 20  # tables of targets and of the linker
_ENGINE = 96 << 20  # our modules, and those of NumPy's that they bring
_BLAS_BUFFER = 32 << 20  # OpenBLAS's work memory, one for each thread; NumPy's own takes one when it is first called
_BLAS_THREAD = 16 << 20  # a stack, with the heap that it begins
_PER_CHARACTER = 400  # bytes at the most that LLVM has taken for each character of a text (measured: 130-280 from 150 kB on)
_PER_BYTE = 16  # the same of the linker, for each byte of object code


def give_back_first(release: Callable[[], None]) -> None:
    """Have `release`, which gives memory back that is only kept, called before it is said that there is none."""
    _RELEASES.append(release)


def require_memory(nbytes: int, purpose: str) -> None:
    """Return if so much memory is to be had at once.

    Raises:
        StarvedError: it is not; `purpose` says for what.
    """
    if not hasattr(mmap, "MAP_PRIVATE") or _is_to_be_had(nbytes):
        return
    for release in _RELEASES:
        release()
    if not _RELEASES or not _is_to_be_had(nbytes):
        raise StarvedError(
            f"no memory for {purpose}: some {nbytes >> 20} MiB",
            remedy="A limit of this process (ulimit -v), or the system's, is near. f.__wrapped__ needs less.",
        )


def is_limited() -> bool:
    """Whether memory may be refused to this process: what is to be had now may be gone when it is wanted, if others go on."""
    return resource is not None and resource.getrlimit(resource.RLIMIT_AS)[0] != resource.RLIM_INFINITY


def _is_to_be_had(nbytes: int) -> bool:
    try:
        mmap.mmap(-1, nbytes, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS).close()
    except (OSError, MemoryError) as error:
        pass_on(error)
        return False
    return True


def require_engine() -> None:
    """Return if what traces and compiles may be imported. Some modules cannot be imported again once that has failed half-way.

    Raises:
        StarvedError: no file may be opened, or there is no memory.
    """
    try:
        os.close(os.open(__file__, os.O_RDONLY))
    except OSError as error:
        pass_on(error)
        raise StarvedError(f"the compiler cannot be loaded: {error}") from error
    require_memory(_ENGINE, "the compiler")


def require_compiler() -> None:
    """Return if what the compiler loads at its first use may be opened, and there is memory for it and a small program.

    Raises:
        StarvedError: it may not, or there is none.
    """
    libraries = 0
    if "llvmlite.binding" not in sys.modules:
        try:
            libraries += _llvm_bytes() + _LLVM_STATE + 2 * _BLAS_BUFFER  # of NumPy's own, which a function may call before
        except OSError as error:
            pass_on(error)
            raise StarvedError(f"the compiler cannot be loaded: {error}") from error
    require_memory(libraries + _MARGIN, "the compiler")


def require_llvm(text: int = 0, code: int = 0) -> None:
    """Return if LLVM has the memory for a text of so many characters, or for linking so many bytes of object code.

    Raises:
        StarvedError: it has not.
    """
    require_memory(_MARGIN + _PER_CHARACTER * text + _PER_BYTE * code, "LLVM to compile this program")


def require_numpys_blas() -> None:
    """Return if NumPy's OpenBLAS has the memory that it takes when it is first called.

    Raises:
        StarvedError: it has not.
    """
    require_memory(2 * _BLAS_BUFFER + _MARGIN, "NumPy's OpenBLAS")


def require_blas_buffers() -> None:
    """Return if NumPy's OpenBLAS, which is loaded, has the memory that each thread that calls it takes.

    Raises:
        StarvedError: it has not.
    """
    require_memory((1 + min(os.cpu_count() or 1, 64)) * _BLAS_BUFFER + _MARGIN, "NumPy's OpenBLAS")


def require_blas() -> None:
    """Return if SciPy's OpenBLAS is loaded, or may be: it takes memory for all threads that it may ever use.

    Raises:
        StarvedError: it may not.
    """
    if "scipy.linalg.cython_blas" not in sys.modules:
        threads = min(os.cpu_count() or 1, 64)
        require_memory(2 * _MARGIN + threads * (_BLAS_BUFFER + _BLAS_THREAD), "SciPy's OpenBLAS")


def _llvm_bytes() -> int:
    """The size of llvmlite's library, which is mapped as a whole."""
    spec = find_spec("llvmlite")
    places = (spec.submodule_search_locations if spec is not None else None) or ()
    return sum(file.stat().st_size for place in places for file in Path(place, "binding").glob("*llvmlite.*"))
