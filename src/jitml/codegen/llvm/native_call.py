"""Native call, as LLVM IR: how are programs called, and results made, with the objects that Python has?

`jitml_run_program` takes objects and gives objects; `jitml_call` is a function of Python's around it (`runtime/native_call.py`).
Numbers are to be filled in: where the parts of an array stand, status codes.
"""

from __future__ import annotations

from jitml.codegen.llvm.objects import DROP, FETCHED, FILL, HOLD, MAKING, each

# What comes of a run: results; the arguments are not as they have to be; an exception before it has begun, or later; a failed
# check, whose number stands behind the record of the error.
CLEAN, SLOW, STARVED, THREW, FAILED = range(5)
TRACE_DOMAIN = 389047  # NumPy's in tracemalloc


# The k-th result, if it is an argument that is written.
_WRITTEN = """
  %resultp = getelementptr %Output, ptr %results, i64 %k
  %result = load %Output, ptr %resultp
  %alias = extractvalue %Output %result, 0
  %is_new = icmp slt i64 %alias, 0
  br i1 %is_new, label %next, label %written
written:
  %arrayp = getelementptr ptr, ptr %args, i64 %alias
  %array = load ptr, ptr %arrayp
  %rankp = getelementptr i8, ptr %array, i64 {NDIM}
  %rank = load i32, ptr %rankp
  %shapep = getelementptr i8, ptr %array, i64 {DIMS}
  %shape = load ptr, ptr %shapep
  %itemsize = extractvalue %Output %result, 6
  %bytes = call i64 @bytes_of(i32 %rank, ptr %shape, i64 %itemsize)
"""
_WEIGH = (
    _WRITTEN
    + """
  %flagsp = getelementptr i8, ptr %array, i64 {FLAGS}
  %flags = load i32, ptr %flagsp
  %in_order = and i32 %flags, {CONTIGUOUS}
  %is_scattered = icmp eq i32 %in_order, 0
  %weight = select i1 %is_scattered, i64 -1, i64 %bytes
  %before = load i64, ptr %total
  %sum = call i64 @llvm.uadd.sat.i64(i64 %before, i64 %weight)
  store i64 %sum, ptr %total
"""
)
# Its copy stands behind those of the ones before, which take `total` bytes.
_COPY = (
    _WRITTEN
    + """
  %datap = getelementptr i8, ptr %array, i64 {DATA}
  %data = load ptr, ptr %datap
  %before = load i64, ptr %total
  %sum = add i64 %before, %bytes
  store i64 %sum, ptr %total
  %copy = getelementptr i8, ptr %copies, i64 %before
  %from = select i1 %back, ptr %copy, ptr %data
  %to = select i1 %back, ptr %data, ptr %copy
  call void @llvm.memcpy.p0.p0.i64(ptr %to, ptr %from, i64 %bytes, i1 false)
"""
)
CALL = (
    """
declare ptr @jitml_results_malloc(ptr, i64)
declare void @jitml_results_free(ptr, ptr, i64)
declare void @jitml_results_release()
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
declare i64 @llvm.uadd.sat.i64(i64, i64)
declare ptr @jitml_arena(i64)
declare void @jitml_run_begins(ptr)
declare void @jitml_run_ends(ptr)
@results_handler = external global i8
@thrown_format = private constant [5 x i8] c"(LN)\\00"
@report_format = private constant [8 x i8] c"(LLLLL)\\00"
{flags}

; inputs, outputs, constants, arena bytes, whether to release the GIL, entry, extents that the program says, function that does,
; what keeps a copy of what is written (or null), what judges floating-point errors (or null)
%Header = type {{ i64, i64, i64, i64, i64, ptr, i64, ptr, ptr, ptr }}
; input it is (or -1), dtype, rank, shape, strides (or null), where among the extents that the program says (or -1),
; bytes of an element
%Output = type {{ i64, ptr, i64, ptr, ptr, i64, i64 }}

"""
    + DROP
    + HOLD
    + FILL
    + FETCHED
    + MAKING
    + each("weigh", "ptr %total, ptr %args, ptr %results", _WEIGH)
    + each("copy", "i1 %back, ptr %copies, ptr %total, ptr %args, ptr %results", _COPY)
    + """
; What `judge` says of results in which floating-point errors came up: 1, 0, or -1 where it raises.
define internal i32 @judged(ptr %judge, ptr %made, i64 %count, i64 %flags, ptr %copies) {{
  call void @hold(ptr %made, i64 0, i64 %count)
  %asked = alloca [3 x ptr]
  %list = call ptr @jitml_listed(ptr %made, i64 %count)
  store ptr %list, ptr %asked
  %no_list = icmp eq ptr %list, null
  br i1 %no_list, label %lost, label %ask
ask:
  %number = call ptr @PyLong_FromLongLong(i64 %flags)
  %second = getelementptr ptr, ptr %asked, i64 1
  store ptr %number, ptr %second
  %third = getelementptr ptr, ptr %asked, i64 2
  store ptr %copies, ptr %third
  %no_number = icmp eq ptr %number, null
  br i1 %no_number, label %unnumbered, label %call
call:
  %verdict = call ptr @PyObject_Vectorcall(ptr %judge, ptr %asked, i64 3, ptr null)
  call void @drop(ptr %asked, i64 0, i64 2)
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

; Runs a program: what it makes goes into `made`, a new reference each, but where it fails.
define i64 @jitml_run_program(ptr %descriptor, ptr %args, ptr %made, ptr %error) {{
begin:
  %header = load %Header, ptr %descriptor
  %inputs = extractvalue %Header %header, 0
  %outputs = extractvalue %Header %header, 1
  %constants = extractvalue %Header %header, 2
  %kinds = getelementptr %Header, ptr %descriptor, i64 1
  %results = getelementptr i64, ptr %kinds, i64 %inputs
  %literals = getelementptr %Output, ptr %results, i64 %outputs
  %before = add i64 %inputs, %outputs
  %entries = add i64 %before, %constants
  %table = alloca ptr, i64 %entries
  %numbers = alloca i64, i64 %inputs
  %stoppedp = getelementptr i64, ptr %error, i64 {STOPPED}
  store i64 0, ptr %stoppedp
  %total = alloca i64
  %never = alloca i64  ; a program that keeps the GIL does not look, whatever it could
  store i64 0, ptr %never
  %duep = getelementptr i64, ptr %error, i64 {DUE}
  store ptr %never, ptr %duep
  %extents = extractvalue %Header %header, 6
  %shapes = alloca i64, i64 %extents
  br label %input

; Each input's data pointer; of a Python number, the address of its value.
input:
  %i = phi i64 [ 0, %begin ], [ %i.next, %input.put ]
  %more_inputs = icmp slt i64 %i, %inputs
  br i1 %more_inputs, label %input.look, label %make
input.look:
  %argp = getelementptr ptr, ptr %args, i64 %i
  %arg = load ptr, ptr %argp
  %typep = getelementptr i8, ptr %arg, i64 {TYPE}
  %type = load ptr, ptr %typep
  %is_array = icmp eq ptr %type, @PyArray_Type
  br i1 %is_array, label %array, label %number
array:
  %datap = getelementptr i8, ptr %arg, i64 {DATA}
  %data = load ptr, ptr %datap
  br label %input.put
number:
  %numberp = getelementptr i64, ptr %numbers, i64 %i
  %kindp = getelementptr i64, ptr %kinds, i64 %i
  %kind = load i64, ptr %kindp
  switch i64 %kind, label %slow [ i64 {FLOAT}, label %float i64 {INT}, label %int i64 {BOOL}, label %bool ]
float:
  %is_pythons = icmp eq ptr %type, @PyFloat_Type
  %is_numpys = icmp eq ptr %type, @PyDoubleArrType_Type  ; a float with nothing more to it
  %is_float = or i1 %is_pythons, %is_numpys
  %floatp = getelementptr i8, ptr %arg, i64 {FLOAT_VALUE}
  br i1 %is_float, label %input.put, label %slow
int:
  %is_int = icmp eq ptr %type, @PyLong_Type
  br i1 %is_int, label %int.value, label %slow
int.value:
  %int64 = call i64 @PyLong_AsLongLong(ptr %arg)
  store i64 %int64, ptr %numberp
  %doubtful = icmp eq i64 %int64, -1
  br i1 %doubtful, label %int.overflow, label %input.put
int.overflow:
  %exception = call ptr @PyErr_Occurred()
  %minus_one = icmp eq ptr %exception, null
  br i1 %minus_one, label %input.put, label %raise
bool:
  %is_bool = icmp eq ptr %type, @PyBool_Type
  %true = icmp eq ptr %arg, @Py_True
  %byte = zext i1 %true to i8
  store i8 %byte, ptr %numberp
  br i1 %is_bool, label %input.put, label %slow
input.put:
  %source = phi ptr [ %data, %array ], [ %floatp, %float ], [ %numberp, %int.value ], [ %numberp, %int.overflow ],
                    [ %numberp, %bool ]
  %inputp = getelementptr ptr, ptr %table, i64 %i
  store ptr %source, ptr %inputp
  %i.next = add i64 %i, 1
  br label %input

; The results: for an aliased one the caller's array, else a new one.
make:
  %says_shapes = icmp sgt i64 %extents, 0
  br i1 %says_shapes, label %measure, label %output
measure:
  %say_shapes = extractvalue %Header %header, 7
  call void %say_shapes(ptr %table, ptr %shapes)
  br label %output
output:
  %o = phi i64 [ 0, %make ], [ 0, %measure ], [ %o.next, %output.put ]
  %more_outputs = icmp slt i64 %o, %outputs
  br i1 %more_outputs, label %output.look, label %constant
output.look:
  %outputp = getelementptr %Output, ptr %results, i64 %o
  %output.record = load %Output, ptr %outputp
  %alias = extractvalue %Output %output.record, 0
  %is_new = icmp slt i64 %alias, 0
  br i1 %is_new, label %output.new, label %output.given
output.given:
  %givenp = getelementptr ptr, ptr %args, i64 %alias
  %given = load ptr, ptr %givenp
  call void @Py_IncRef(ptr %given)
  br label %output.put
output.new:
  %dtype = extractvalue %Output %output.record, 1
  %rank64 = extractvalue %Output %output.record, 2
  %known_shape = extractvalue %Output %output.record, 3
  %place = extractvalue %Output %output.record, 5
  %is_known = icmp slt i64 %place, 0
  %own_shape = getelementptr i64, ptr %shapes, i64 %place
  %shape = select i1 %is_known, ptr %known_shape, ptr %own_shape
  %strides = extractvalue %Output %output.record, 4
  %rank = trunc i64 %rank64 to i32
  call void @Py_IncRef(ptr %dtype)  ; PyArray_NewFromDescr takes a reference over
  %itemsize = extractvalue %Output %output.record, 6
  %new = call ptr @new_array(ptr %dtype, i32 %rank, ptr %shape, ptr %strides, i64 %itemsize)
  %no_array = icmp eq ptr %new, null
  br i1 %no_array, label %drop.some, label %output.put
output.put:
  %result = phi ptr [ %given, %output.given ], [ %new, %output.new ]
  %madep = getelementptr ptr, ptr %made, i64 %o
  store ptr %result, ptr %madep
  %memoryp = getelementptr i8, ptr %result, i64 {DATA}
  %memory = load ptr, ptr %memoryp
  %at_output = add i64 %inputs, %o
  %entryp = getelementptr ptr, ptr %table, i64 %at_output
  store ptr %memory, ptr %entryp
  %o.next = add i64 %o, 1
  br label %output

constant:
  %at_constants = getelementptr ptr, ptr %table, i64 %before
  %constant_bytes = shl i64 %constants, 3
  call void @llvm.memcpy.p0.p0.i64(ptr %at_constants, ptr %literals, i64 %constant_bytes, i1 false)
  %bytes = extractvalue %Header %header, 3
  %needs_arena = icmp sgt i64 %bytes, 0
  br i1 %needs_arena, label %scratch.take, label %run
scratch.take:
  %block = call ptr @jitml_arena(i64 %bytes)
  %no_arena = icmp eq ptr %block, null
  br i1 %no_arena, label %scratch.retry, label %run
scratch.retry:
  call void @jitml_results_release()
  %last_block = call ptr @jitml_arena(i64 %bytes)
  %still_no_arena = icmp eq ptr %last_block, null
  br i1 %still_no_arena, label %no_memory, label %run
run:
  %arena = phi ptr [ null, %constant ], [ %block, %scratch.take ], [ %last_block, %scratch.retry ]
  %save = extractvalue %Header %header, 8
  %judged_by = extractvalue %Header %header, 9
  store i64 0, ptr %total
  %saves = icmp ne ptr %save, null
  br i1 %saves, label %weigh, label %begun
weigh:
  call void @weigh(ptr %total, ptr %args, ptr %results, i64 0, i64 %outputs)
  %bytes_written = load i64, ptr %total
  %is_little = icmp ule i64 %bytes_written, {SMALL}
  br i1 %is_little, label %copy, label %ask
ask:
  %asked = call ptr @PyObject_Vectorcall(ptr %save, ptr %args, i64 %inputs, ptr null)
  %is_refused = icmp eq ptr %asked, null
  br i1 %is_refused, label %drop, label %begun
copy:
  store i64 0, ptr %total
  %room = alloca i8, i64 %bytes_written, align 16
  call void @copy(i1 false, ptr %room, ptr %total, ptr %args, ptr %results, i64 0, i64 %outputs)
  br label %begun
begun:
  %copies = phi ptr [ null, %run ], [ null, %ask ], [ %room, %copy ]
  %saved = phi ptr [ null, %run ], [ %asked, %ask ], [ null, %copy ]
  %long = extractvalue %Header %header, 4
  %entry = extractvalue %Header %header, 5
  %is_long = icmp ne i64 %long, 0
  %old_flags = call i64 @take_flags()
  br i1 %is_long, label %run.apart, label %run.here
run.here:
  %status.here = call i64 %entry(ptr %table, ptr %arena, ptr %error)
  br label %finish
run.apart:
  call void @jitml_run_begins(ptr %error)
  %thread = call ptr @PyEval_SaveThread()
  %status.apart = call i64 %entry(ptr %table, ptr %arena, ptr %error)
  call void @PyEval_RestoreThread(ptr %thread)
  call void @jitml_run_ends(ptr %error)
  br label %finish
finish:
  %status = phi i64 [ %status.here, %run.here ], [ %status.apart, %run.apart ]
  %flags = call i64 @take_flags()
  %stopped = load i64, ptr %stoppedp
  %is_stopped = icmp ne i64 %stopped, 0
  br i1 %is_stopped, label %drop, label %judge
judge:
  %failed = icmp ne i64 %status, 0
  br i1 %failed, label %fail, label %look
look:
  %no_flags = icmp eq i64 %flags, 0
  %is_deaf = icmp eq ptr %judged_by, null
  %clean = or i1 %no_flags, %is_deaf
  br i1 %clean, label %done, label %doubt
done:
  call void @Py_DecRef(ptr %saved)
  ret i64 {CLEAN}
doubt:
  %was_kept = icmp eq ptr %saved, null
  %known = select i1 %was_kept, ptr @Py_Nothing, ptr %saved
  %verdict = call i32 @judged(ptr %judged_by, ptr %made, i64 %outputs, i64 %flags, ptr %known)
  switch i32 %verdict, label %drop [ i32 1, label %done i32 0, label %heard ]
heard:
  store i64 %flags, ptr %error
  %has_copies = icmp ne ptr %copies, null
  br i1 %has_copies, label %put_back, label %report
put_back:
  store i64 0, ptr %total
  call void @copy(i1 true, ptr %copies, ptr %total, ptr %args, ptr %results, i64 0, i64 %outputs)
  br label %report
fail:
  %has_raised = icmp eq i64 %status, {RAISED}
  br i1 %has_raised, label %drop, label %report
report:
  %failure = phi i64 [ %status, %fail ], [ {HEARD}, %heard ], [ {HEARD}, %put_back ]
  %statusp = getelementptr i64, ptr %error, i64 {ERROR_WORDS}
  store i64 %failure, ptr %statusp
  br label %drop
no_memory:
  %error_set = call ptr @PyErr_NoMemory()
  br label %drop
drop:
  %kept = phi ptr [ %saved, %finish ], [ %saved, %fail ], [ %saved, %report ], [ %saved, %doubt ], [ null, %ask ],
                  [ null, %no_memory ]
  %outcome = phi i64 [ {THREW}, %finish ], [ {THREW}, %fail ], [ {FAILED}, %report ], [ {THREW}, %doubt ], [ {STARVED}, %ask ],
                     [ {STARVED}, %no_memory ]
  call void @Py_DecRef(ptr %kept)
  br label %drop.some
drop.some:
  %end = phi i64 [ {STARVED}, %output.new ], [ %outcome, %drop ]
  %dropped = phi i64 [ %o, %output.new ], [ %outputs, %drop ]
  call void @drop(ptr %made, i64 0, i64 %dropped)
  ret i64 %end
raise:
  ret i64 {STARVED}
slow:
  ret i64 {SLOW}
}}

define ptr @jitml_call(ptr %self, ptr %args, i64 %nargs) {{
  %descriptorp = getelementptr i8, ptr %self, i64 {DATA}
  %descriptor = load ptr, ptr %descriptorp
  %inputs = load i64, ptr %descriptor
  %as_many = icmp eq i64 %nargs, %inputs
  br i1 %as_many, label %run, label %slow
run:
  %outputsp = getelementptr i64, ptr %descriptor, i64 1
  %outputs = load i64, ptr %outputsp
  %made = alloca ptr, i64 %outputs
  %error = alloca [{RECORD_WORDS} x i64]
  %outcome = call i64 @jitml_run_program(ptr %descriptor, ptr %args, ptr %made, ptr %error)
  %wordp = getelementptr i64, ptr %error, i64 {ERROR_WORDS}
  switch i64 %outcome, label %raise [ i64 {CLEAN}, label %done i64 {FAILED}, label %report i64 {SLOW}, label %slow
                                      i64 {THREW}, label %threw ]
done:
  %list = call ptr @jitml_listed(ptr %made, i64 %outputs)
  ret ptr %list
report:
  %status = load i64, ptr %wordp
  %values = load [4 x i64], ptr %error
  %v0 = extractvalue [4 x i64] %values, 0
  %v1 = extractvalue [4 x i64] %values, 1
  %v2 = extractvalue [4 x i64] %values, 2
  %v3 = extractvalue [4 x i64] %values, 3
  %tuple = call ptr (ptr, ...) @Py_BuildValue(ptr @report_format, i64 %status, i64 %v0, i64 %v1, i64 %v2, i64 %v3)
  ret ptr %tuple
threw:
  %error_set = call ptr @fetched()
  %thrown = call ptr (ptr, ...) @Py_BuildValue(ptr @thrown_format, i64 {RAISED}, ptr %error_set)  ; takes it over
  ret ptr %thrown
raise:
  ret ptr null
slow:
  call void @Py_IncRef(ptr @Py_None)
  ret ptr @Py_None
}}
"""
)

__all__ = ["CALL", "CLEAN", "FAILED", "SLOW", "STARVED", "THREW", "TRACE_DOMAIN"]
