"""What the native entry calls, as LLVM IR: small functions of its own."""

from __future__ import annotations

from jitml.codegen.llvm.ir.native_call import DROP, FETCHED, HOLD, each

_PICK = """
  %placep = getelementptr i64, ptr %places, i64 %k
  %place = load i64, ptr %placep
  %slotp = getelementptr ptr, ptr %slots, i64 %place
  %object = load ptr, ptr %slotp
  %pickedp = getelementptr ptr, ptr %picked, i64 %k
  store ptr %object, ptr %pickedp
"""
_OWN = """
declare i64 @jitml_run_program(ptr, ptr, ptr, ptr)
declare ptr @jitml_listed(ptr, i64)
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
declare i64 @llvm.smin.i64(i64, i64)
declare i64 @llvm.smax.i64(i64, i64)
@as_python = external global i8

; Where an array begins, and where it has ended: nowhere, if it is empty.
define internal {{ i64, i64 }} @reach(ptr %array, i64 %itemsize) {{
entry:
  %datap = getelementptr i8, ptr %array, i64 {DATA}
  %start = load i64, ptr %datap
  %rankp = getelementptr i8, ptr %array, i64 {NDIM}
  %rank = load i32, ptr %rankp
  %shapep = getelementptr i8, ptr %array, i64 {DIMS}
  %shape = load ptr, ptr %shapep
  %stridesp = getelementptr i8, ptr %array, i64 {STRIDES}
  %strides = load ptr, ptr %stridesp
  %first_end = add i64 %start, %itemsize
  br label %head
head:
  %axis = phi i32 [ 0, %entry ], [ %axis.next, %reaches ]
  %low = phi i64 [ %start, %entry ], [ %low.next, %reaches ]
  %high = phi i64 [ %first_end, %entry ], [ %high.next, %reaches ]
  %more = icmp slt i32 %axis, %rank
  br i1 %more, label %body, label %done
body:
  %extentp = getelementptr i64, ptr %shape, i32 %axis
  %extent = load i64, ptr %extentp
  %is_empty = icmp eq i64 %extent, 0
  br i1 %is_empty, label %empty, label %reaches
reaches:
  %stridep = getelementptr i64, ptr %strides, i32 %axis
  %stride = load i64, ptr %stridep
  %steps = sub i64 %extent, 1
  %way = mul i64 %steps, %stride
  %back = call i64 @llvm.smin.i64(i64 %way, i64 0)
  %ahead = call i64 @llvm.smax.i64(i64 %way, i64 0)
  %low.next = add i64 %low, %back
  %high.next = add i64 %high, %ahead
  %axis.next = add i32 %axis, 1
  br label %head
empty:
  ret {{ i64, i64 }} {{ i64 0, i64 0 }}
done:
  %from = insertvalue {{ i64, i64 }} undef, i64 %low, 0
  %both = insertvalue {{ i64, i64 }} %from, i64 %high, 1
  ret {{ i64, i64 }} %both
}}

; Whether an exception is just a guard's that does not hold; then it is over.
define internal i1 @is_miss(ptr %pass_on) {{
  %given = alloca ptr
  %is_usual = call i32 @PyErr_ExceptionMatches(ptr @PyExc_Exception)
  %is_other = icmp eq i32 %is_usual, 0
  br i1 %is_other, label %raise, label %ask
ask:
  %error = call ptr @fetched()
  store ptr %error, ptr %given
  %told = call ptr @PyObject_Vectorcall(ptr %pass_on, ptr %given, i64 1, ptr null)
  call void @drop(ptr %given, i64 0, i64 1)
  call void @Py_DecRef(ptr %told)
  %is_well = icmp ne ptr %told, null
  ret i1 %is_well
raise:
  ret i1 false
}}

; Tell a function of an exception, whatever it makes of that.
define internal void @tell_of_error(ptr %function) {{
  %given = alloca ptr
  %error = call ptr @fetched()
  store ptr %error, ptr %given
  %told = call ptr @PyObject_Vectorcall(ptr %function, ptr %given, i64 1, ptr null)
  call void @Py_DecRef(ptr %told)
  call void @PyErr_Clear()
  %kindp = getelementptr i8, ptr %error, i64 {TYPE}
  %kind = load ptr, ptr %kindp
  call void @PyErr_SetObject(ptr %kind, ptr %error)
  call void @Py_DecRef(ptr %error)
  ret void
}}

; Whether memory was lacking for a program, of which Python may need less; then the exception is over.
define internal i1 @is_starved() {{
  %memory = call i32 @PyErr_ExceptionMatches(ptr @PyExc_MemoryError)
  %value = call i32 @PyErr_ExceptionMatches(ptr @PyExc_ValueError)
  %either = or i32 %memory, %value
  %is_starved = icmp ne i32 %either, 0
  br i1 %is_starved, label %clear, label %raise
clear:
  call void @PyErr_Clear()
  ret i1 true
raise:
  ret i1 false
}}

; The next result, a new reference; null where that cannot be made.
define internal ptr @result(i64 %kind, i64 %place, ptr %made, ptr %slots) {{
  %madep = getelementptr ptr, ptr %made, i64 %place
  switch i64 %kind, label %slot [ i64 {ARRAY}, label %array i64 {SCALAR}, label %scalar i64 {FLOAT}, label %float
                                  i64 {INT}, label %int i64 {BOOL}, label %bool ]
array:
  %array.made = load ptr, ptr %madep
  call void @Py_IncRef(ptr %array.made)
  ret ptr %array.made
scalar:
  %scalar.made = load ptr, ptr %madep
  call void @Py_IncRef(ptr %scalar.made)
  %scalar.object = call ptr @PyArray_Return(ptr %scalar.made)
  ret ptr %scalar.object
float:
  %float.made = load ptr, ptr %madep
  %float.atp = getelementptr i8, ptr %float.made, i64 {DATA}
  %float.at = load ptr, ptr %float.atp
  %float.value = load double, ptr %float.at
  %float.object = call ptr @PyFloat_FromDouble(double %float.value)
  ret ptr %float.object
int:
  %int.made = load ptr, ptr %madep
  %int.atp = getelementptr i8, ptr %int.made, i64 {DATA}
  %int.at = load ptr, ptr %int.atp
  %int.value = load i64, ptr %int.at
  %int.object = call ptr @PyLong_FromLongLong(i64 %int.value)
  ret ptr %int.object
bool:
  %bool.made = load ptr, ptr %madep
  %bool.atp = getelementptr i8, ptr %bool.made, i64 {DATA}
  %bool.at = load ptr, ptr %bool.atp
  %bool.byte = load i8, ptr %bool.at
  %bool.value = zext i8 %bool.byte to i64
  %bool.object = call ptr @PyBool_FromLong(i64 %bool.value)
  ret ptr %bool.object
slot:
  %slotp = getelementptr ptr, ptr %slots, i64 %place
  %slot.object = load ptr, ptr %slotp
  call void @Py_IncRef(ptr %slot.object)
  ret ptr %slot.object
}}
"""
SUPPORT = DROP + HOLD + FETCHED + each("pick", "ptr %picked, ptr %slots, ptr %places", _PICK) + _OWN
