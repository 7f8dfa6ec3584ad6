"""Python's own functions on traced values: builtins, math, cmath."""

from jitml.numpy.python import builtins, cmath, math

TOPICS = (builtins, math, cmath)
