"""Direct calls: machine code that Python calls in place of a jitted function's `__call__`, and which forwards the calls.

Python looks for `__call__` in the class, has it bound, and packs the arguments into a tuple. An object whose type says so has the
address of a function in itself (a *vectorcall*), which is given the arguments where they lie. Ours calls what the object is to
forward calls to (`functions.Forwarding`), as long as there are any left, and then `__call__`.

The type of jitted functions is written in Python, so it says nothing of the kind. Its flags are set here, if they are found where
they stand in CPython, and if an object of such a class is then seen to forward its calls.

Most calls of many a program are those of functions that are not compiled, in processes that never load LLVM. So the code is here
as it is for the processors and systems on which it has been run; `native_entry/forwarder.py` has LLVM make it for others.
"""

from __future__ import annotations

import ctypes
import platform
import sys
from functools import cache
from itertools import repeat
from typing import Any

from jitml.functions import Forwarding, Switch

_FLAGS = 168  # where the flags of a type stand
_METHOD_DESCRIPTOR, _VECTORCALL = 1 << 17, 1 << 11  # `x.f(y)` is `f(x, y)`, and needs no bound method; see above
_CALLED = ("Py_IncRef", "PyObject_Vectorcall", "Py_DecRef")  # their addresses stand behind the code
# What `tests/native_entry/test_direct_calls.py` has as assembler's text.
_CODE = {
    "x86_64": "f30f1efa488b47184885c07e3d48ffc848894718535652514883ec08488b5f204889dfff152f0000004883c408595a5e"
    "4889dfff15270000004889df4889c3ff15230000004889d85bc348c7471000000000ff2508000000",
    "aarch64": "090c40f93f0100f12d030054290500d1090c00f9fd7bbda9fd030091f30701a9e20f02a9131040f9e00313aa70020058"
    "00023fd6e00313aae10f40f9e20f42a91002005800023fd6e10313aaf30300aae00301aab001005800023fd6e00313aa"
    "f30b40f9fd7bc3a8c0035fd61f0800f99000005800021fd6",
}
_PAGE = 4096
_READ_WRITE, _READ_EXECUTE, _PRIVATE_ANONYMOUS, _FAILED = 3, 5, 0x22, 2**64 - 1  # of mmap on Linux


@cache
def _ready_made() -> int:
    """The address of the code in this process; 0 if there is none for this machine, or none may be made executable."""
    code = _CODE.get(platform.machine()) if sys.platform == "linux" else None
    if code is None or not _is_known():
        return 0
    system = ctypes.CDLL(None)
    system.mmap.restype, system.mmap.argtypes = (
        ctypes.c_uint64,
        (ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long),
    )
    system.mprotect.argtypes = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int
    at: int = system.mmap(None, _PAGE, _READ_WRITE, _PRIVATE_ANONYMOUS, -1, 0)
    if at == _FAILED:
        return 0
    called = [ctypes.cast(getattr(ctypes.pythonapi, name), ctypes.c_void_p).value or 0 for name in _CALLED]
    text = bytes.fromhex(code) + b"".join(address.to_bytes(8, "little") for address in called)
    ctypes.memmove(at, text, len(text))
    # Where nothing that was written may run, as some systems are set up. What is here stays: Python calls it while it ends.
    return 0 if system.mprotect(at, _PAGE, _READ_EXECUTE) else at


def call_directly(cls: type[Switch], forwarder: int = 0) -> None:
    """Have Python call objects of this class without a look for `__call__`, if that can be done here.

    Args:
        forwarder: the address of code that forwards calls, where there is none of ours.
    """
    if cls.__flags__ & _VECTORCALL or cls.__call__ is not Switch.__call__:
        return
    forwarder = _ready_made() or forwarder
    if forwarder and _is_possible(forwarder):
        _set_flags(cls)
        cls.forwarder = forwarder


@cache
def _is_possible(forwarder: int) -> bool:
    class Probe(Switch):
        pass

    class Owner:
        method = Probe()

    def given(*args: Any, **kwargs: Any) -> Any:
        return args, kwargs

    owner, probe = Owner(), Owner.__dict__["method"]
    forward = ctypes.c_longlong.from_address(id(probe) + object.__basicsize__)
    if not (_is_known() and _has_flags()) or Forwarding.__basicsize__ != object.__basicsize__ + 24 or forward.value:
        return False
    probe._next = repeat(dict).__next__
    probe._forward_to(given, 3)
    probe._forward = forwarder
    if forward.value != forwarder:
        return False
    _set_flags(Probe)
    found = probe(1, 2), probe(1, x=2), owner.method(2, x=3), probe(x=1), probe([(1, 2)])
    return found == (((1, 2), {}), ((1,), {"x": 2}), ((owner, 2), {"x": 3}), {"x": 1}, {1: 2})


def _is_known() -> bool:
    """Whether objects are those of CPython on 64 bits, with one thread at a time."""
    return sys.implementation.name == "cpython" and sys.maxsize == 2**63 - 1 and object.__basicsize__ == 16


def _has_flags() -> bool:
    return all(_flags(cls).value == cls.__flags__ for cls in (int, list, Switch, BaseException, type))


def _flags(cls: type) -> Any:
    return ctypes.c_ulong.from_address(id(cls) + _FLAGS)


def _set_flags(cls: type) -> None:
    _flags(cls).value |= _METHOD_DESCRIPTOR | _VECTORCALL
    ctypes.pythonapi.PyType_Modified(ctypes.py_object(cls))


__all__ = ["call_directly"]
