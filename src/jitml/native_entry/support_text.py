"""What the native entry calls, as LLVM IR: small functions of its own."""

from __future__ import annotations

from jitml.codegen.llvm.objects import DROP, FETCHED, HOLD, each

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

; A part of the result, a new reference; null where that cannot be made. It may be made of others, which it leaves alone. What is
; only done gives something that is to be forgotten.
define internal ptr @part(i64 %op, i64 %count, i64 %x, ptr %others, ptr %made, i64 %output_count, ptr %slots) {{
  %xp = inttoptr i64 %x to ptr
  %madep = getelementptr ptr, ptr %made, i64 %x
  switch i64 %op, label %called [ i64 {ARRAY}, label %array i64 {SCALAR}, label %scalar i64 {FLOAT}, label %float
                                  i64 {INT}, label %int i64 {BOOL}, label %bool i64 {SLOT}, label %slot
                                  i64 {OUTPUTS}, label %outputs i64 {NEW_TUPLE}, label %tuple i64 {NEW_LIST}, label %list
                                  i64 {NEW_DICT}, label %dict i64 {VIEW}, label %view
                                  i64 {DO}, label %do i64 {ATTRIBUTE}, label %attribute ]
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
  %float.at = call ptr @data_of(ptr %madep)
  %float.value = load double, ptr %float.at
  %float.object = call ptr @PyFloat_FromDouble(double %float.value)
  ret ptr %float.object
int:
  %int.at = call ptr @data_of(ptr %madep)
  %int.value = load i64, ptr %int.at
  %int.object = call ptr @PyLong_FromLongLong(i64 %int.value)
  ret ptr %int.object
bool:
  %bool.at = call ptr @data_of(ptr %madep)
  %bool.byte = load i8, ptr %bool.at
  %bool.value = zext i8 %bool.byte to i64
  %bool.object = call ptr @PyBool_FromLong(i64 %bool.value)
  ret ptr %bool.object
slot:
  %slotp = getelementptr ptr, ptr %slots, i64 %x
  %slot.object = load ptr, ptr %slotp
  call void @Py_IncRef(ptr %slot.object)
  ret ptr %slot.object
outputs:
  call void @hold(ptr %made, i64 0, i64 %output_count)
  %outputs.object = call ptr @jitml_listed(ptr %made, i64 %output_count)
  ret ptr %outputs.object
tuple:
  %tuple.object = call ptr @PyTuple_New(i64 %count)
  %no_tuple = icmp eq ptr %tuple.object, null
  br i1 %no_tuple, label %lost, label %tuple.fill
tuple.fill:
  call void @hold(ptr %others, i64 0, i64 %count)
  call void @fill_tuple(ptr %tuple.object, ptr %others, i64 0, i64 %count)
  ret ptr %tuple.object
list:
  call void @hold(ptr %others, i64 0, i64 %count)
  %list.object = call ptr @jitml_listed(ptr %others, i64 %count)
  ret ptr %list.object
dict:
  %dict.object = call ptr @PyDict_New()
  %no_dict = icmp eq ptr %dict.object, null
  br i1 %no_dict, label %lost, label %dict.fill
dict.fill:
  call void @fill_dict(ptr %dict.object, ptr %xp, ptr %others, i64 0, i64 %count)
  %dict.error = call ptr @PyErr_Occurred()
  %is_filled = icmp eq ptr %dict.error, null
  br i1 %is_filled, label %dict.done, label %dict.lost
dict.done:
  ret ptr %dict.object
dict.lost:
  call void @Py_DecRef(ptr %dict.object)
  br label %lost
called:
  %called.object = call ptr @PyObject_Vectorcall(ptr %xp, ptr %others, i64 %count, ptr null)
  ret ptr %called.object
do:
  %done = call ptr @PyObject_Vectorcall(ptr %xp, ptr %others, i64 %count, ptr null)
  call void @Py_DecRef(ptr %done)
  %not_done = icmp eq ptr %done, null
  br i1 %not_done, label %lost, label %well
attribute:
  %target = load ptr, ptr %others
  %valuep = getelementptr ptr, ptr %others, i64 1
  %value = load ptr, ptr %valuep
  %unset = call i32 @PyObject_GenericSetAttr(ptr %target, ptr %xp, ptr %value)
  %is_set = icmp eq i32 %unset, 0
  br i1 %is_set, label %well, label %lost
well:
  ret ptr @Py_None
view:
  %base = load ptr, ptr %others
  %rank = load i64, ptr %xp
  %rank32 = trunc i64 %rank to i32
  %offsetp = getelementptr i64, ptr %xp, i64 1
  %offset = load i64, ptr %offsetp
  %flagsp = getelementptr i64, ptr %xp, i64 2
  %flags.may = load i64, ptr %flagsp
  %shape = getelementptr i64, ptr %xp, i64 3
  %strides = getelementptr i64, ptr %shape, i64 %rank
  %base.flagsp = getelementptr i8, ptr %base, i64 {FLAGS}
  %base.flags = load i32, ptr %base.flagsp
  %flags.may32 = trunc i64 %flags.may to i32
  %flags = and i32 %base.flags, %flags.may32
  %dtypep = getelementptr i8, ptr %base, i64 {DTYPE}
  %dtype = load ptr, ptr %dtypep
  %start = call ptr @data_of(ptr %others)
  %data = getelementptr i8, ptr %start, i64 %offset
  call void @Py_IncRef(ptr %dtype)  ; which the next call takes over
  %view.object = call ptr @PyArray_NewFromDescr(ptr @PyArray_Type, ptr %dtype, i32 %rank32, ptr %shape, ptr %strides, ptr %data,
                                                i32 %flags, ptr null)
  %no_view = icmp eq ptr %view.object, null
  br i1 %no_view, label %lost, label %view.base
view.base:
  call void @Py_IncRef(ptr %base)
  %baseless = call i32 @PyArray_SetBaseObject(ptr %view.object, ptr %base)
  %has_base = icmp eq i32 %baseless, 0
  br i1 %has_base, label %view.done, label %view.lost
view.done:
  ret ptr %view.object
view.lost:
  call void @Py_DecRef(ptr %view.object)
  br label %lost
lost:
  ret ptr null
}}

; Where the memory of an array begins, which stands at a place.
define internal ptr @data_of(ptr %place) {{
  %array = load ptr, ptr %place
  %datap = getelementptr i8, ptr %array, i64 {DATA}
  %data = load ptr, ptr %datap
  ret ptr %data
}}
"""
_OBJECT = "  %objectp = getelementptr ptr, ptr %objects, i64 %k\n  %object = load ptr, ptr %objectp\n"
_FILL_TUPLE = f"{_OBJECT}  %set = call i32 @PyTuple_SetItem(ptr %tuple, i64 %k, ptr %object)"
_FILL_DICT = f"""{_OBJECT}
  %keyp = getelementptr ptr, ptr %keys, i64 %k
  %key = load ptr, ptr %keyp
  %set = call i32 @PyDict_SetItem(ptr %dict, ptr %key, ptr %object)
"""
SUPPORT = (
    DROP
    + HOLD
    + FETCHED
    + each("pick", "ptr %picked, ptr %slots, ptr %places", _PICK)
    + each("fill_tuple", "ptr %tuple, ptr %objects", _FILL_TUPLE)
    + each("fill_dict", "ptr %dict, ptr %keys, ptr %objects", _FILL_DICT)
    + _OWN
)
