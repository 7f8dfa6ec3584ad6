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
    RESULTS,  # two words each: what is made, and of which output or slot
    RESULT_COUNT,
    RESULT_KIND,
    FINISH,  # what makes the result in Python: of the outputs in a list, and of those slots
    NEXT,
    HITS,  # where calls are counted
    PASS_ON,  # what raises exceptions that are not the guards'
    TELL,  # what is told of an exception in the midst of writing
    WORDS,
) = range(22)

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
    COMPARE,  # d = a <y> b
    EXTENT,  # d = a.shape[x]
    CALL,  # d = a(*slots), whose y numbers are at x
    CHECK,  # a(*slots) is true
    TUPLE,  # d, d + 1, ... = a, a tuple of y
    LIST,
    DICT,  # d, d + 1, ... = a.values(), a dict whose keys are the y at x, in this order
    APART,  # past the next one if arrays a and b, of elements of x and y bytes, lie apart
) = range(18)

# How a result is made.
ARRAY, SCALAR, FLOAT, INT, BOOL, SLOT = range(6)
ONE, SEVERAL, BY_PYTHON = range(3)  # a single object, a tuple, or what Python makes
