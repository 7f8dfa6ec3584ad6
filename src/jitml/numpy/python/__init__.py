"""Python's own functions on traced values: builtins, math, cmath."""
