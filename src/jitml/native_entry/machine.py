"""The native entry as LLVM IR: how does machine code check a call, run its program and make its results?

`jitml_enter` is a function of Python's, compiled once per process. What differs from variant to variant stands in a record, the
function's `self`: the names of its arguments, the guard program as instructions over slots (`plan.py`), the program, and
how the result is made of what that gives. A call that is not for the variant goes on to the next callable, with all its
arguments: the next variant's entry, or Python.
"""

from __future__ import annotations

from jitml.native_entry import codes
from jitml.native_entry.codes import (
    APART,
    ARGUMENTS,
    BINARY,
    CALL,
    CHECK,
    CODE,
    COMPARE,
    CONSTANT_COUNT,
    CONSTANTS,
    DICT,
    DTYPE,
    EQUAL,
    EXTENT,
    FLAGS,
    HITS,
    INPUT_COUNT,
    INPUTS,
    IS,
    LIST,
    MOST_OPERANDS,
    NAME_COUNT,
    NAMES,
    NDIM,
    NEXT,
    ONE,
    OUTPUT_COUNT,
    PASS_ON,
    POSITIONAL,
    PROGRAM,
    RESULT_COUNT,
    RESULTS,
    SHAPE,
    SLOT_COUNT,
    STRIDES,
    TELL,
    TUPLE,
    TYPE,
    UNARY,
    VERSION,
)
from jitml.native_entry.support_text import SUPPORT

_FIELDS = {
    "positional": ("i64", POSITIONAL),
    "known_names": ("ptr", NAMES),
    "name_count": ("i64", NAME_COUNT),
    "arguments": ("i64", ARGUMENTS),
    "constant_count": ("i64", CONSTANT_COUNT),
    "constants": ("ptr", CONSTANTS),
    "slot_count": ("i64", SLOT_COUNT),
    "code": ("ptr", CODE),
    "most_operands": ("i64", MOST_OPERANDS),
    "program": ("ptr", PROGRAM),
    "input_count": ("i64", INPUT_COUNT),
    "inputs": ("ptr", INPUTS),
    "output_count": ("i64", OUTPUT_COUNT),
    "results": ("ptr", RESULTS),
    "result_count": ("i64", RESULT_COUNT),
    "next_entry": ("ptr", NEXT),
    "hitsp": ("ptr", HITS),
    "pass_on": ("ptr", PASS_ON),
    "tell": ("ptr", TELL),
}


def _loads() -> str:
    """Every word of the record, by its name."""
    return "\n".join(
        f"  %{name}.at = getelementptr i64, ptr %record, i64 {word}\n  %{name} = load {kind}, ptr %{name}.at"
        for name, (kind, word) in _FIELDS.items()
    )


def _switch() -> str:
    checks = {
        TYPE: "type",
        DTYPE: "dtype",
        SHAPE: "shape",
        STRIDES: "strides",
        FLAGS: "flags",
        NDIM: "ndim",
        IS: "is",
        EQUAL: "equal",
    }
    steps = {BINARY: "binary", UNARY: "unary", COMPARE: "compare", EXTENT: "extent", CALL: "call", CHECK: "call"}
    labels = {**checks, **steps, TUPLE: "tuple", LIST: "list", DICT: "dict", APART: "apart", ONE: "one", VERSION: "version"}
    return " ".join(f"i64 {op}, label %{label}" for op, label in labels.items())


_TEXT = """
define ptr @jitml_enter(ptr %self, ptr %args, i64 %nargs, ptr %names) {{
begin:
  %truthp = alloca ptr
  %keyp = alloca ptr
  %valuep = alloca ptr
  %positionp = alloca i64
  %error = alloca [{RECORD_WORDS} x i64]
  %recordp = getelementptr i8, ptr %self, i64 {DATA}
  %record = load ptr, ptr %recordp
{loads}
  %as_many = icmp eq i64 %nargs, %positional
  br i1 %as_many, label %named, label %elsewhere
named:
  %has_names = icmp ne ptr %names, null
  br i1 %has_names, label %named.count, label %unnamed
unnamed:
  %wants_none = icmp eq i64 %name_count, 0
  br i1 %wants_none, label %python, label %elsewhere
named.count:
  %given_names = call i64 @PyTuple_Size(ptr %names)
  %as_many_names = icmp eq i64 %given_names, %name_count
  br i1 %as_many_names, label %name, label %elsewhere
name:
  %k = phi i64 [ 0, %named.count ], [ %k.next, %name.same ]
  %more_names = icmp slt i64 %k, %name_count
  br i1 %more_names, label %name.look, label %python
name.look:
  %given_name = call ptr @PyTuple_GetItem(ptr %names, i64 %k)
  %known_name = call ptr @PyTuple_GetItem(ptr %known_names, i64 %k)
  %same_name = icmp eq ptr %given_name, %known_name
  br i1 %same_name, label %name.same, label %elsewhere
name.same:
  %k.next = add i64 %k, 1
  br label %name

; Whether jitted functions run as plain Python here.
python:
  %asked = call i32 @PyContextVar_Get(ptr @as_python, ptr null, ptr %truthp)
  %unknown = icmp slt i32 %asked, 0
  br i1 %unknown, label %raise, label %python.known
python.known:
  %truth = load ptr, ptr %truthp
  call void @Py_DecRef(ptr %truth)
  %is_compiled = icmp eq ptr %truth, @Py_False
  br i1 %is_compiled, label %budget, label %elsewhere
budget:
  %before = load i64, ptr %hitsp
  %mostp = getelementptr i64, ptr %hitsp, i64 1
  %most = load i64, ptr %mostp
  %is_left = icmp slt i64 %before, %most
  br i1 %is_left, label %prepare, label %elsewhere
prepare:
  %slots = alloca ptr, i64 %slot_count
  %operands = alloca ptr, i64 %most_operands
  %constant_bytes = shl i64 %constant_count, 3
  call void @llvm.memcpy.p0.p0.i64(ptr %slots, ptr %constants, i64 %constant_bytes, i1 false)
  %given = getelementptr ptr, ptr %slots, i64 %constant_count
  %given_bytes = shl i64 %arguments, 3
  call void @llvm.memcpy.p0.p0.i64(ptr %given, ptr %args, i64 %given_bytes, i1 false)
  %first_computed = add i64 %constant_count, %arguments
  %computed = getelementptr ptr, ptr %slots, i64 %first_computed
  %computed_count = sub i64 %slot_count, %first_computed
  %computed_bytes = shl i64 %computed_count, 3
  call void @llvm.memset.p0.i64(ptr %computed, i8 0, i64 %computed_bytes, i1 false)
  br label %next

next:
  %pc = phi ptr [ %code, %prepare ], [ %pc.next, %go ], [ %pc.after, %skip ]
  %op = load i64, ptr %pc
  %a.numberp = getelementptr i64, ptr %pc, i64 1
  %a.number = load i64, ptr %a.numberp
  %ap = getelementptr ptr, ptr %slots, i64 %a.number
  %a = load ptr, ptr %ap
  %b.numberp = getelementptr i64, ptr %pc, i64 2
  %b.number = load i64, ptr %b.numberp
  %bp = getelementptr ptr, ptr %slots, i64 %b.number
  %b = load ptr, ptr %bp
  %d.numberp = getelementptr i64, ptr %pc, i64 3
  %d.number = load i64, ptr %d.numberp
  %dp = getelementptr ptr, ptr %slots, i64 %d.number
  %x.at = getelementptr i64, ptr %pc, i64 4
  %x = load i64, ptr %x.at
  %xp = inttoptr i64 %x to ptr
  %y.at = getelementptr i64, ptr %pc, i64 5
  %y = load i64, ptr %y.at
  %pc.next = getelementptr i64, ptr %pc, i64 6
  switch i64 %op, label %run [ {switch} ]
go:
  br label %next
hold:
  %held = phi i1 [ %type.holds, %type ], [ %dtype.holds, %dtype ], [ %flags.hold, %flags ], [ %ndim.holds, %ndim ],
                 [ %is.holds, %is ]
  br i1 %held, label %go, label %miss
type:
  %typep = getelementptr i8, ptr %a, i64 {TYPE}
  %type.found = load ptr, ptr %typep
  %type.holds = icmp eq ptr %type.found, %xp
  br label %hold
dtype:
  %dtypep = getelementptr i8, ptr %a, i64 {DTYPE}
  %dtype.found = load ptr, ptr %dtypep
  %dtype.holds = icmp eq ptr %dtype.found, %xp
  br label %hold
flags:
  %flagsp = getelementptr i8, ptr %a, i64 {FLAGS}
  %flags.found = load i32, ptr %flagsp
  %flags.all = zext i32 %flags.found to i64
  %flags.asked = and i64 %flags.all, %x
  %flags.hold = icmp eq i64 %flags.asked, %y
  br label %hold
ndim:
  %ndimp = getelementptr i8, ptr %a, i64 {NDIM}
  %ndim.found = load i32, ptr %ndimp
  %ndim.all = zext i32 %ndim.found to i64
  %ndim.holds = icmp eq i64 %ndim.all, %y
  br label %hold
is:
  %is.found = icmp eq ptr %a, %b
  %is.asked = icmp ne i64 %y, 0
  %is.holds = icmp eq i1 %is.found, %is.asked
  br label %hold

shape:
  %dims.at = getelementptr i8, ptr %a, i64 {DIMS}
  br label %axes
strides:
  %strides.at = getelementptr i8, ptr %a, i64 {STRIDES}
  br label %axes
axes:
  %axesp = phi ptr [ %dims.at, %shape ], [ %strides.at, %strides ]
  %axes.found = load ptr, ptr %axesp
  %rankp = getelementptr i8, ptr %a, i64 {NDIM}
  %rank32 = load i32, ptr %rankp
  %rank = zext i32 %rank32 to i64
  %same_rank = icmp eq i64 %rank, %y
  br i1 %same_rank, label %axis, label %miss
axis:
  %n = phi i64 [ 0, %axes ], [ %n.next, %axis.look ]
  %more_axes = icmp slt i64 %n, %rank
  br i1 %more_axes, label %axis.look, label %go
axis.look:
  %axis.foundp = getelementptr i64, ptr %axes.found, i64 %n
  %axis.found = load i64, ptr %axis.foundp
  %axis.knownp = getelementptr i64, ptr %xp, i64 %n
  %axis.known = load i64, ptr %axis.knownp
  %n.next = add i64 %n, 1
  %same_axis = icmp eq i64 %axis.found, %axis.known
  br i1 %same_axis, label %axis, label %miss

equal:
  %equal.found = call i32 @PyObject_RichCompareBool(ptr %a, ptr %b, i32 2)
  br label %judge.truth
judge.truth:
  %found = phi i32 [ %equal.found, %equal ], [ %check.found, %check ]
  switch i32 %found, label %failed [ i32 1, label %go i32 0, label %miss ]

binary:
  %binary.made = call ptr %xp(ptr %a, ptr %b)
  br label %put
unary:
  %unary.made = call ptr %xp(ptr %a)
  br label %put
compare:
  %relation = trunc i64 %y to i32
  %compare.made = call ptr @PyObject_RichCompare(ptr %a, ptr %b, i32 %relation)
  br label %put
extent:
  %lengthsp = getelementptr i8, ptr %a, i64 {DIMS}
  %lengths = load ptr, ptr %lengthsp
  %lengthp = getelementptr i64, ptr %lengths, i64 %x
  %length = load i64, ptr %lengthp
  %extent.made = call ptr @PyLong_FromLongLong(i64 %length)
  br label %put
call:
  call void @pick(ptr %operands, ptr %slots, ptr %xp, i64 0, i64 %y)
  %call.made = call ptr @PyObject_Vectorcall(ptr %a, ptr %operands, i64 %y, ptr null)
  %call.raised = icmp eq ptr %call.made, null
  br i1 %call.raised, label %failed, label %call.what
call.what:
  %is_check = icmp eq i64 %op, {CHECK}
  br i1 %is_check, label %check, label %put
check:
  %check.found = call i32 @PyObject_IsTrue(ptr %call.made)
  call void @Py_DecRef(ptr %call.made)
  br label %judge.truth
put:
  %object = phi ptr [ %binary.made, %binary ], [ %unary.made, %unary ], [ %compare.made, %compare ],
                [ %extent.made, %extent ], [ %call.made, %call.what ]
  store ptr %object, ptr %dp
  %put.raised = icmp eq ptr %object, null
  br i1 %put.raised, label %failed, label %go

apart:
  %reach.a = call {{ i64, i64 }} @reach(ptr %a, i64 %x)
  %reach.b = call {{ i64, i64 }} @reach(ptr %b, i64 %y)
  %low.a = extractvalue {{ i64, i64 }} %reach.a, 0
  %low.b = extractvalue {{ i64, i64 }} %reach.b, 0
  %high.a = extractvalue {{ i64, i64 }} %reach.a, 1
  %high.b = extractvalue {{ i64, i64 }} %reach.b, 1
  %a.first = icmp ule i64 %high.a, %low.b
  %b.first = icmp ule i64 %high.b, %low.a
  %lie_apart = or i1 %a.first, %b.first
  br label %skip
one:
  %is_one = icmp eq ptr %a, %b
  br label %skip
version:
  %versionp = getelementptr i8, ptr %a, i64 {VERSION_TAG}
  %version.found = load i32, ptr %versionp
  %version.all = zext i32 %version.found to i64
  %is_in_version = icmp eq i64 %version.all, %y
  br label %skip
skip:
  %skips = phi i1 [ %lie_apart, %apart ], [ %is_one, %one ], [ %is_in_version, %version ]
  %skipped = select i1 %skips, i64 12, i64 6
  %pc.after = getelementptr i64, ptr %pc, i64 %skipped
  br label %next

tuple:
  %tuple.length = call i64 @PyTuple_Size(ptr %a)
  br label %items
list:
  %list.length = call i64 @PyList_Size(ptr %a)
  br label %items
items:
  %items.length = phi i64 [ %tuple.length, %tuple ], [ %list.length, %list ]
  %getter = phi ptr [ @PyTuple_GetItem, %tuple ], [ @PyList_GetItem, %list ]
  %as_long = icmp eq i64 %items.length, %y
  br i1 %as_long, label %item, label %miss
item:
  %i = phi i64 [ 0, %items ], [ %i.next, %item.put ]
  %more_items = icmp slt i64 %i, %y
  br i1 %more_items, label %item.put, label %go
item.put:
  %item.object = call ptr %getter(ptr %a, i64 %i)
  call void @Py_IncRef(ptr %item.object)
  %itemp = getelementptr ptr, ptr %dp, i64 %i
  store ptr %item.object, ptr %itemp
  %i.next = add i64 %i, 1
  br label %item
dict:
  %dict.length = call i64 @PyDict_Size(ptr %a)
  store i64 0, ptr %positionp
  %as_full = icmp eq i64 %dict.length, %y
  br i1 %as_full, label %value, label %miss
value:
  %j = phi i64 [ 0, %dict ], [ %j.next, %value.put ]
  %more_values = icmp slt i64 %j, %y
  br i1 %more_values, label %value.look, label %go
value.look:
  %there = call i32 @PyDict_Next(ptr %a, ptr %positionp, ptr %keyp, ptr %valuep)
  %none_there = icmp eq i32 %there, 0
  br i1 %none_there, label %miss, label %value.key
value.key:
  %key = load ptr, ptr %keyp
  %known_keyp = getelementptr ptr, ptr %xp, i64 %j
  %known_key = load ptr, ptr %known_keyp
  %same_key = icmp eq ptr %key, %known_key
  br i1 %same_key, label %value.put, label %value.kind
value.kind:
  %key.typep = getelementptr i8, ptr %key, i64 {TYPE}
  %key.type = load ptr, ptr %key.typep
  %known_key.typep = getelementptr i8, ptr %known_key, i64 {TYPE}
  %known_key.type = load ptr, ptr %known_key.typep
  %same_kind = icmp eq ptr %key.type, %known_key.type
  br i1 %same_kind, label %value.compare, label %miss
value.compare:
  %equal_key = call i32 @PyObject_RichCompareBool(ptr %key, ptr %known_key, i32 2)
  %is_equal_key = icmp eq i32 %equal_key, 1
  br i1 %is_equal_key, label %value.put, label %miss
value.put:
  %value.object = load ptr, ptr %valuep
  call void @Py_IncRef(ptr %value.object)
  %value.slot = getelementptr ptr, ptr %dp, i64 %j
  store ptr %value.object, ptr %value.slot
  %j.next = add i64 %j, 1
  br label %value

failed:
  %is_miss = call i1 @is_miss(ptr %pass_on)
  br i1 %is_miss, label %miss, label %thrown
miss:
  call void @drop(ptr %slots, i64 %first_computed, i64 %slot_count)
  br label %elsewhere
elsewhere:
  %answer = call ptr @PyObject_Vectorcall(ptr %next_entry, ptr %args, i64 %nargs, ptr %names)
  ret ptr %answer

run:
  %given_inputs = alloca ptr, i64 %input_count
  call void @pick(ptr %given_inputs, ptr %slots, ptr %inputs, i64 0, i64 %input_count)
  %made = alloca ptr, i64 %output_count
  %outcome = call i64 @jitml_run_program(ptr %program, ptr %given_inputs, ptr %made, ptr %error)
  switch i64 %outcome, label %miss [ i64 {CLEAN}, label %answered i64 {STARVED}, label %starved
                                     i64 {THREW}, label %broken ]
starved:
  %is_starved = call i1 @is_starved()
  br i1 %is_starved, label %miss, label %thrown
broken:
  %writes = icmp ne ptr %tell, null
  br i1 %writes, label %broken.tell, label %thrown
broken.tell:
  call void @tell_of_error(ptr %tell)
  br label %thrown
answered:
  %hits = load i64, ptr %hitsp
  %hits.next = add i64 %hits, 1
  store i64 %hits.next, ptr %hitsp
  %stack = alloca ptr, i64 %result_count
  br label %part
part:
  %rp = phi ptr [ %results, %answered ], [ %rp.next, %part.put ]
  %height = phi i64 [ 0, %answered ], [ %height.next, %part.put ]
  %part.op = load i64, ptr %rp
  %is_whole = icmp eq i64 %part.op, {WHOLE}
  br i1 %is_whole, label %whole, label %part.make
part.make:
  %part.countp = getelementptr i64, ptr %rp, i64 1
  %part.count = load i64, ptr %part.countp
  %part.xp = getelementptr i64, ptr %rp, i64 2
  %part.x = load i64, ptr %part.xp
  %below = sub i64 %height, %part.count
  %part.place = getelementptr ptr, ptr %stack, i64 %below
  %part.object = call ptr @part(i64 %part.op, i64 %part.count, i64 %part.x, ptr %part.place, ptr %made, i64 %output_count,
                                ptr %slots)
  call void @drop(ptr %part.place, i64 0, i64 %part.count)
  %no_part = icmp eq ptr %part.object, null
  br i1 %no_part, label %part.lost, label %part.put
part.put:
  store ptr %part.object, ptr %part.place
  %stays = icmp ult i64 %part.op, {DO}
  %higher = zext i1 %stays to i64
  %height.next = add i64 %below, %higher
  %rp.next = getelementptr i64, ptr %rp, i64 3
  br label %part
part.lost:
  call void @drop(ptr %stack, i64 0, i64 %below)
  br label %end
whole:
  %whole.object = load ptr, ptr %stack
  br label %end
end:
  %result = phi ptr [ %whole.object, %whole ], [ null, %part.lost ]
  call void @drop(ptr %made, i64 0, i64 %output_count)
  call void @drop(ptr %slots, i64 %first_computed, i64 %slot_count)
  ret ptr %result
thrown:
  call void @drop(ptr %slots, i64 %first_computed, i64 %slot_count)
  br label %raise
raise:
  ret ptr null
}}
"""


def machine(numbers: dict[str, int]) -> str:
    """The text of the entry.

    Args:
        numbers: offsets and codes of the native call's.
    """
    own = {name: number for name, number in vars(codes).items() if name.isupper()}
    return (SUPPORT + _TEXT).format(loads=_loads(), switch=_switch(), **{**own, **numbers})
