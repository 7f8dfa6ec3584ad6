"""Direct calls: machine code that Python calls in place of a jitted function's `__call__`, and which forwards the calls.

Python looks for `__call__` in the class, has it bound, and packs the arguments into a tuple. An object whose type says so has the
address of a function in itself (a *vectorcall*), which is given the arguments where they lie. Ours calls what the object is to
forward calls to (`functions.Forwarding`), as long as there are any left, and then `__call__`.

The type of jitted functions is written in Python, so it says nothing of the kind. Its flags are set here, if they are found where
they stand in CPython, and if an object of such a class is then seen to forward its calls.
"""

from __future__ import annotations

import ctypes
from itertools import repeat
from typing import Any

from jitml.codegen.llvm.runtime.c_api import completed, native_calls
from jitml.codegen.llvm.runtime.jit import Code, load
from jitml.codegen.llvm.runtime.singletons import once
from jitml.functions import Forwarding, Switch

_FLAGS = 168  # where the flags of a type stand
_METHOD_DESCRIPTOR, _VECTORCALL = 1 << 17, 1 << 11  # `x.f(y)` is `f(x, y)`, and needs no bound method; see above
_TEXT = """
define ptr @jitml_forward(ptr %self, ptr %args, i64 %nargs, ptr %names) {{
  %leftp = getelementptr i8, ptr %self, i64 {LEFT}
  %left = load i64, ptr %leftp
  %is_last = icmp sle i64 %left, 0
  br i1 %is_last, label %over, label %forward
over:
  %forwardp = getelementptr i8, ptr %self, i64 {FORWARD}
  store i64 0, ptr %forwardp
  %other = call ptr @PyObject_Vectorcall(ptr %self, ptr %args, i64 %nargs, ptr %names)
  ret ptr %other
forward:
  %left.next = sub i64 %left, 1
  store i64 %left.next, ptr %leftp
  %targetp = getelementptr i8, ptr %self, i64 {TARGET}
  %target = load ptr, ptr %targetp
  call void @Py_IncRef(ptr %target)
  %answer = call ptr @PyObject_Vectorcall(ptr %target, ptr %args, i64 %nargs, ptr %names)
  call void @Py_DecRef(ptr %target)
  ret ptr %answer
}}
"""


@once
def _forwarder() -> Code:
    at = object.__basicsize__
    text, imports = completed(_TEXT.format(FORWARD=at, LEFT=at + 8, TARGET=at + 16))
    code = load(text, level=2, imports=imports, exports=("jitml_forward",))
    code.keep_forever()  # objects that Python has called so may be called while it ends
    return code


def call_directly(cls: type[Switch]) -> None:
    """Have Python call objects of this class without a look for `__call__`, if that can be done here."""
    if cls.__flags__ & _VECTORCALL or cls.__call__ is not Switch.__call__ or not _is_possible():
        return
    _set_flags(cls)
    cls.forwarder = _forwarder()["jitml_forward"]


@once
def _is_possible() -> bool:
    class Probe(Switch):
        pass

    class Owner:
        method = Probe()

    def given(*args: Any, **kwargs: Any) -> Any:
        return args, kwargs

    owner, probe = Owner(), Owner.__dict__["method"]
    forward = ctypes.c_longlong.from_address(id(probe) + object.__basicsize__)
    if not native_calls() or not _has_flags() or Forwarding.__basicsize__ != object.__basicsize__ + 24 or forward.value:
        return False
    Probe.forwarder = _forwarder()["jitml_forward"]
    probe.answer_in_turn(repeat(dict), given, 3)
    if forward.value != Probe.forwarder:
        return False
    _set_flags(Probe)
    found = probe(1, 2), probe(1, x=2), owner.method(2, x=3), probe(x=1), probe([(1, 2)])
    return found == (((1, 2), {}), ((1,), {"x": 2}), ((owner, 2), {"x": 3}), {"x": 1}, {1: 2})


def _has_flags() -> bool:
    return all(_flags(cls).value == cls.__flags__ for cls in (int, list, Switch, BaseException, type))


def _flags(cls: type) -> Any:
    return ctypes.c_ulong.from_address(id(cls) + _FLAGS)


def _set_flags(cls: type) -> None:
    _flags(cls).value |= _METHOD_DESCRIPTOR | _VECTORCALL
    ctypes.pythonapi.PyType_Modified(ctypes.py_object(cls))


__all__ = ["call_directly"]
