"""Codes that instructions and the machine that runs them share: words of a record, instructions, kinds of results."""

from __future__ import annotations

# Words of a variant's record.
(
    POSITIONAL,  # how many arguments have no name
    NAMES,  # the names of the others, a tuple
    NAME_COUNT,
    ARGUMENTS,  # how many there are in all
    CONSTANT_COUNT,
    CONSTANTS,  # what the first slots hold
    SLOT_COUNT,  # then come the arguments, then what is computed
    CODE,
    MOST_OPERANDS,  # of one call in it
    PROGRAM,
    INPUT_COUNT,
    INPUTS,  # slots
    OUTPUT_COUNT,
    RESULTS,  # instructions
    RESULT_COUNT,
    NEXT,
    HITS,  # where calls are counted; behind it the number of calls after which all go elsewhere
    PASS_ON,  # what raises exceptions that are not the guards'
    TELL,  # what is told of an exception in the midst of writing
    WORDS,
) = range(20)

# Instructions, six words each: what, slots a, b and d, which gets the result, and two words x and y.
(
    END,
    TYPE,  # type(a) is x
    DTYPE,  # a.dtype is x
    SHAPE,  # a.shape == x[:y]
    STRIDES,  # a.strides == x[:y]
    FLAGS,  # a.flags.num & x == y
    NDIM,  # a.ndim == y
    IS,  # (a is b) == y
    EQUAL,  # a == b
    BINARY,  # d = x(a, b), a C function
    UNARY,
    COMPARE,  # d = a <y> b
    EXTENT,  # d = a.shape[x]
    CALL,  # d = a(*slots), whose y numbers are at x
    CHECK,  # a(*slots) is true
    TUPLE,  # d, d + 1, ... = a, which is a tuple, of y
    LIST,
    DICT,  # d, d + 1, ... = a.values(), which is a dict whose keys are the y at x, in this order
    APART,  # past the next one if arrays a and b, of elements of x and y bytes, lie apart
    ONE,  # past the next one if a is b
    VERSION,  # past the next one if class a is in version y
) = range(21)

# Instructions that make the result on a stack, three words each: what, of how many that lie on top, and a word x. One is left.
(
    WHOLE,
    ARRAY,  # output x, an array
    SCALAR,  # output x, as NumPy's scalar
    FLOAT,
    INT,
    BOOL,
    SLOT,  # what slot x holds
    OUTPUTS,  # a list of all outputs
    NEW_TUPLE,
    NEW_LIST,
    NEW_DICT,  # whose keys are at x
    CALLED,  # x(*those)
    VIEW,  # a view of an array: at x the rank, how far it begins in it in bytes, flags that it may have, shape, strides
    DO,  # x(*those), and forget what that gives
    ATTRIBUTE,  # the first gets the second for its attribute x
) = range(15)
