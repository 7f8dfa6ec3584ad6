"""What the native entry calls, as LLVM IR: CPython's and NumPy's functions, and small ones of its own."""

from __future__ import annotations

SUPPORT = """
declare void @Py_IncRef(ptr)
declare void @Py_DecRef(ptr)
declare i64 @PyTuple_Size(ptr)
declare ptr @PyTuple_GetItem(ptr, i64)
declare ptr @PyTuple_New(i64)
declare i32 @PyTuple_SetItem(ptr, i64, ptr)
declare i64 @PyList_Size(ptr)
declare ptr @PyList_GetItem(ptr, i64)
declare i64 @PyDict_Size(ptr)
declare i32 @PyDict_Next(ptr, ptr, ptr, ptr)
declare i32 @PyContextVar_Get(ptr, ptr, ptr)
declare i32 @PyObject_RichCompareBool(ptr, ptr, i32)
declare ptr @PyObject_RichCompare(ptr, ptr, i32)
declare i32 @PyObject_IsTrue(ptr)
declare ptr @PyObject_Vectorcall(ptr, ptr, i64, ptr)
declare ptr @PyFloat_FromDouble(double)
declare ptr @PyLong_FromLongLong(i64)
declare ptr @PyBool_FromLong(i64)
declare ptr @PyArray_Return(ptr)
declare i32 @PyErr_ExceptionMatches(ptr)
declare void @PyErr_Clear()
declare void @PyErr_Fetch(ptr, ptr, ptr)
declare void @PyErr_NormalizeException(ptr, ptr, ptr)
declare i64 @jitml_run_program(ptr, ptr, ptr, ptr)
declare ptr @jitml_listed(ptr, i64)
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
@as_python = external global i8
@Py_False = external global i8
@PyTuple_Type = external global i8
@PyList_Type = external global i8
@PyDict_Type = external global i8
@Exception = external global i8
@MemoryError = external global i8
@ValueError = external global i8

define internal void @drop(ptr %objects, i64 %first, i64 %end) {{
entry:
  br label %head
head:
  %k = phi i64 [ %first, %entry ], [ %k.next, %body ]
  %more = icmp slt i64 %k, %end
  br i1 %more, label %body, label %done
body:
  %objectp = getelementptr ptr, ptr %objects, i64 %k
  %object = load ptr, ptr %objectp
  call void @Py_DecRef(ptr %object)  ; of nothing, if none has been made
  %k.next = add i64 %k, 1
  br label %head
done:
  ret void
}}

define internal void @pick(ptr %picked, ptr %slots, ptr %places, i64 %count) {{
entry:
  br label %head
head:
  %k = phi i64 [ 0, %entry ], [ %k.next, %body ]
  %more = icmp slt i64 %k, %count
  br i1 %more, label %body, label %done
body:
  %placep = getelementptr i64, ptr %places, i64 %k
  %place = load i64, ptr %placep
  %slotp = getelementptr ptr, ptr %slots, i64 %place
  %object = load ptr, ptr %slotp
  %pickedp = getelementptr ptr, ptr %picked, i64 %k
  store ptr %object, ptr %pickedp
  %k.next = add i64 %k, 1
  br label %head
done:
  ret void
}}

; Another reference to each of some objects.
define internal void @hold(ptr %objects, i64 %count) {{
entry:
  br label %head
head:
  %k = phi i64 [ 0, %entry ], [ %k.next, %body ]
  %more = icmp slt i64 %k, %count
  br i1 %more, label %body, label %done
body:
  %objectp = getelementptr ptr, ptr %objects, i64 %k
  %object = load ptr, ptr %objectp
  call void @Py_IncRef(ptr %object)
  %k.next = add i64 %k, 1
  br label %head
done:
  ret void
}}

; What `judge` says of results in which floating-point errors came up: 1, 0, or -1 where it raises.
define internal i32 @judged(ptr %judge, ptr %made, i64 %count, i64 %flags) {{
  call void @hold(ptr %made, i64 %count)
  %list = call ptr @jitml_listed(ptr %made, i64 %count)
  %no_list = icmp eq ptr %list, null
  br i1 %no_list, label %lost, label %ask
ask:
  %number = call ptr @PyLong_FromLongLong(i64 %flags)
  %no_number = icmp eq ptr %number, null
  br i1 %no_number, label %unnumbered, label %call
call:
  %asked = alloca [2 x ptr]
  store ptr %list, ptr %asked
  %second = getelementptr ptr, ptr %asked, i64 1
  store ptr %number, ptr %second
  %verdict = call ptr @PyObject_Vectorcall(ptr %judge, ptr %asked, i64 2, ptr null)
  call void @Py_DecRef(ptr %number)
  call void @Py_DecRef(ptr %list)
  %raised = icmp eq ptr %verdict, null
  br i1 %raised, label %lost, label %told
told:
  %truth = call i32 @PyObject_IsTrue(ptr %verdict)
  call void @Py_DecRef(ptr %verdict)
  ret i32 %truth
unnumbered:
  call void @Py_DecRef(ptr %list)
  br label %lost
lost:
  ret i32 -1
}}

; Whether an exception is just a guard's that does not hold; then it is over.
define internal i1 @is_miss(ptr %pass_on) {{
  %kind = alloca ptr
  %value = alloca ptr
  %traceback = alloca ptr
  %given = alloca ptr
  %is_usual = call i32 @PyErr_ExceptionMatches(ptr @Exception)
  %is_other = icmp eq i32 %is_usual, 0
  br i1 %is_other, label %raise, label %ask
ask:
  call void @PyErr_Fetch(ptr %kind, ptr %value, ptr %traceback)
  call void @PyErr_NormalizeException(ptr %kind, ptr %value, ptr %traceback)
  %error = load ptr, ptr %value
  store ptr %error, ptr %given
  %told = call ptr @PyObject_Vectorcall(ptr %pass_on, ptr %given, i64 1, ptr null)
  call void @drop(ptr %kind, i64 0, i64 1)
  call void @drop(ptr %value, i64 0, i64 1)
  call void @drop(ptr %traceback, i64 0, i64 1)
  call void @Py_DecRef(ptr %told)
  %is_well = icmp ne ptr %told, null
  ret i1 %is_well
raise:
  ret i1 false
}}

; Whether memory was lacking for a program, of which Python may need less; then the exception is over.
define internal i1 @is_starved() {{
  %memory = call i32 @PyErr_ExceptionMatches(ptr @MemoryError)
  %value = call i32 @PyErr_ExceptionMatches(ptr @ValueError)
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
