"""Objects in LLVM IR: functions that take references to several, make arrays and lists, and fetch exceptions.

Texts for the native functions that are called by Python (`native_call.py`, `jitml/native_entry`). Numbers are to be filled in.
"""

from __future__ import annotations


def each(name: str, parameters: str, body: str) -> str:
    """The text of a function that does something for each k from `first` to `end`, to be formatted.

    Args:
        parameters: those before these two.
        body: instructions, of `%k`; those that go on to `%next` end it.
    """
    return f"""
define internal void @{name}({parameters}, i64 %first, i64 %end) {{{{
entry:
  br label %head
head:
  %k = phi i64 [ %first, %entry ], [ %k.next, %next ]
  %more = icmp slt i64 %k, %end
  br i1 %more, label %body, label %done
body:
{body}
  br label %next
next:
  %k.next = add i64 %k, 1
  br label %head
done:
  ret void
}}}}
"""


_OBJECT = "  %objectp = getelementptr ptr, ptr %objects, i64 %k\n  %object = load ptr, ptr %objectp\n"
DROP = each("drop", "ptr %objects", f"{_OBJECT}  call void @Py_DecRef(ptr %object)  ; of nothing, if none has been made")
FILL = each("fill", "ptr %list, ptr %objects", f"{_OBJECT}  %set = call i32 @PyList_SetItem(ptr %list, i64 %k, ptr %object)")
HOLD = each("hold", "ptr %objects", f"{_OBJECT}  call void @Py_IncRef(ptr %object)")

# The exception that has been raised, and is not any more: a new reference.
FETCHED = """
define internal ptr @fetched() {{
  %kind = alloca ptr
  %value = alloca ptr
  %traceback = alloca ptr
  call void @PyErr_Fetch(ptr %kind, ptr %value, ptr %traceback)
  call void @PyErr_NormalizeException(ptr %kind, ptr %value, ptr %traceback)
  %error = load ptr, ptr %value
  %places = load ptr, ptr %traceback
  %is_nowhere = icmp eq ptr %places, null
  br i1 %is_nowhere, label %done, label %place
place:
  %set = call i32 @PyException_SetTraceback(ptr %error, ptr %places)
  br label %done
done:
  call void @drop(ptr %kind, i64 0, i64 1)
  call void @drop(ptr %traceback, i64 0, i64 1)
  ret ptr %error
}}
"""

MAKING = """
define internal i64 @bytes_of(i32 %rank, ptr %shape, i64 %itemsize) {{
entry:
  br label %measure
measure:
  %d = phi i32 [ 0, %entry ], [ %d.next, %axis ]
  %bytes = phi i64 [ %itemsize, %entry ], [ %bytes.next, %axis ]
  %more = icmp slt i32 %d, %rank
  br i1 %more, label %axis, label %out
axis:
  %extentp = getelementptr i64, ptr %shape, i32 %d
  %extent = load i64, ptr %extentp
  %bytes.next = mul i64 %bytes, %extent
  %d.next = add i32 %d, 1
  br label %measure
out:
  ret i64 %bytes
}}

; A new array; a large one in memory that another one has had (`results.py`), which it owns as it would its own.
define internal ptr @new_array(ptr %dtype, i32 %rank, ptr %shape, ptr %strides, i64 %itemsize) {{
entry:
  %bytes = call i64 @bytes_of(i32 %rank, ptr %shape, i64 %itemsize)
  %is_large = icmp uge i64 %bytes, {LARGE}
  br i1 %is_large, label %take, label %plain
take:
  %memory = call ptr @jitml_results_malloc(ptr null, i64 %bytes)
  %lacking = icmp eq ptr %memory, null
  br i1 %lacking, label %plain, label %make
plain:  ; NumPy also says what is wrong, if there is no memory
  %new = call ptr @PyArray_NewFromDescr(ptr @PyArray_Type, ptr %dtype, i32 %rank, ptr %shape, ptr %strides,
                                        ptr null, i32 0, ptr null)
  ret ptr %new
make:
  %array = call ptr @PyArray_NewFromDescr(ptr @PyArray_Type, ptr %dtype, i32 %rank, ptr %shape, ptr %strides,
                                          ptr %memory, i32 {CARRAY}, ptr null)
  %refused = icmp eq ptr %array, null
  br i1 %refused, label %give_back, label %own
give_back:
  call void @jitml_results_free(ptr null, ptr %memory, i64 %bytes)
  ret ptr null
own:
  %flagsp = getelementptr i8, ptr %array, i64 {FLAGS}
  %flags = load i32, ptr %flagsp
  %owning = or i32 %flags, {OWNDATA}
  store i32 %owning, ptr %flagsp
  call void @Py_IncRef(ptr @results_handler)
  %handlerp = getelementptr i8, ptr %array, i64 {HANDLER}
  store ptr @results_handler, ptr %handlerp
  %known = call i32 @PyTraceMalloc_Track(i32 {TRACE_DOMAIN}, ptr %memory, i64 %bytes)
  ret ptr %array
}}

; A list of what has been made, which it takes over.
define ptr @jitml_listed(ptr %made, i64 %count) {{
entry:
  %list = call ptr @PyList_New(i64 %count)
  %no_list = icmp eq ptr %list, null
  br i1 %no_list, label %lost, label %fill
lost:
  call void @drop(ptr %made, i64 0, i64 %count)
  ret ptr null
fill:
  call void @fill(ptr %list, ptr %made, i64 0, i64 %count)
  ret ptr %list
}}
"""

__all__ = ["DROP", "FETCHED", "FILL", "HOLD", "MAKING", "each"]
