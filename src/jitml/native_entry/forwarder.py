"""What forwards the calls of jitted functions (`dispatch/direct_calls.py`), made by LLVM where it is not there ready-made."""

from __future__ import annotations

from jitml.codegen.llvm.runtime.c_api import completed, native_calls
from jitml.codegen.llvm.runtime.jit import Code, load
from jitml.codegen.llvm.runtime.singletons import once

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


def forwarder() -> int:
    """Its address; 0 where objects are not those of CPython."""
    return _code()["jitml_forward"] if native_calls() else 0


@once
def _code() -> Code:
    at = object.__basicsize__
    text, imports = completed(_TEXT.format(FORWARD=at, LEFT=at + 8, TARGET=at + 16))
    code = load(text, level=2, imports=imports, exports=("jitml_forward",))
    code.keep_forever()  # objects that Python has called so may be called while it ends
    return code


__all__ = ["forwarder"]
