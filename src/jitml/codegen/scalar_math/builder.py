"""Scalar builder: what do the rules of elementary functions write through?  A protocol that each back end's builder satisfies.

A value is what the back end makes of it: a vector of SIMD lanes, the text of an expression, a number. The rules know its dtype
and how many lanes it has, and hand it on.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Protocol, TypeVar

from jitml.ir.op import ScalarCode
from jitml.ir.types import DType

ERRORS = ("divide", "overflow", "underflow", "invalid")  # floating-point errors
RAISING = tuple(f"raise_{error}" for error in ERRORS)  # the ops that raise them


class ScalarValue(Protocol):
    """A value: one number, or one for each lane."""

    @property
    def dtype(self) -> DType: ...

    @property
    def lanes(self) -> int: ...


V = TypeVar("V", bound=ScalarValue)


class ScalarBuilder(Protocol[V]):
    """Writes operations on values one after the other.

    Operands of one operation have one dtype; a Python number takes that of the operand beside it, and a value of one lane meets
    one of many in each of them. Results are IEEE's, rounded to the operands' dtype, and raise its errors; operations on float16
    are done in float32 and rounded.

    Attributes:
        has_fma: whether `fma` rounds once.
    """

    has_fma: bool

    def strict(self) -> AbstractContextManager[None]:
        """Inside, arithmetic is as written, whatever fast-math flags there are."""

    # -------------------------------------------------------------------------------------------------- values

    def const(self, value: float, dtype: DType) -> V: ...

    def constant_value(self, x: V) -> float | None:
        """The number that a constant stands for (an int if it is an integer or bool); None for a computed value."""

    def splat(self, x: V, lanes: int) -> V:
        """A value of one lane in each of so many."""

    def operands(self, *args: V | float) -> list[V]:
        """Numbers made constants of the dtype beside them, and all brought to one lane count."""

    # ------------------------------------------------------------------------------------------------ floating

    def fadd(self, x: V | float, y: V | float) -> V: ...
    def fsub(self, x: V | float, y: V | float) -> V: ...
    def fmul(self, x: V | float, y: V | float) -> V: ...
    def fdiv(self, x: V | float, y: V | float) -> V: ...

    def fma(self, x: V | float, y: V | float, z: V | float) -> V:
        """x * y + z, rounded once if `has_fma`, else twice."""

    def sqrt(self, x: V | float) -> V: ...
    def fabs(self, x: V) -> V: ...
    def fneg(self, x: V) -> V: ...

    def copysign(self, x: V | float, y: V | float) -> V:
        """The magnitude of x with the sign of y."""

    def sign_bit(self, x: V) -> V:
        """The sign as a signed integer of the same width: only the highest bit, all others 0."""

    def flip_sign(self, x: V, sign: V) -> V:
        """x with its sign turned where `sign` (as from `sign_bit`) is set."""

    def rint(self, x: V | float) -> V:
        """To the nearest integer, ties to even."""

    def floor(self, x: V | float) -> V: ...
    def ceil(self, x: V | float) -> V: ...
    def trunc(self, x: V | float) -> V: ...

    def fcmp(self, predicate: str, x: V | float, y: V | float) -> V:
        """`oeq one olt ole ogt oge` hold only without a nan, `une` and `uno` (either is nan) also with one; a nan is no error."""

    # ------------------------------------------------------------------------------------------------- integer

    def add(self, x: V | float, y: V | float) -> V: ...
    def sub(self, x: V | float, y: V | float) -> V: ...
    def mul(self, x: V | float, y: V | float) -> V: ...
    def and_(self, x: V | float, y: V | float) -> V: ...
    def or_(self, x: V | float, y: V | float) -> V: ...
    def xor(self, x: V | float, y: V | float) -> V: ...
    def not_(self, x: V) -> V: ...
    def count_bits(self, x: V) -> V:
        """How many bits of a number without a sign are set."""

    def shl(self, x: V | float, y: V | float) -> V:
        """The count is less than the width (in the next two as well)."""

    def lshr(self, x: V | float, y: V | float) -> V: ...
    def ashr(self, x: V | float, y: V | float) -> V: ...

    def overflow_flag(self, operation: str, x: V, y: V) -> V | None:
        """Whether such an operation (`add`, `sub`, `mul`) wraps around, by a flag; None if the processor has none for this."""

    def divide(self, x: V | float, y: V | float) -> V:
        """The truncated quotient; the divisor is neither 0 nor -1 beside the least integer."""

    def icmp(self, predicate: str, x: V | float, y: V | float) -> V:
        """`eq ne lt le gt ge`, signed or unsigned as the dtype is."""

    # --------------------------------------------------------------------------------------------- either kind

    def compare(self, predicate: str, x: V | float, y: V | float, *, chooses: bool = False) -> V:
        """`eq ne lt le gt ge` of any dtype; with a nan only `ne` holds.

        Args:
            chooses: the result selects one of x and y.
        """

    def select(self, condition: V, x: V | float, y: V | float) -> V: ...

    def min(self, x: V | float, y: V | float) -> V:
        """x if x < y, else y (y if either is nan); `max` alike."""

    def max(self, x: V | float, y: V | float) -> V: ...

    def bitcast(self, x: V, dtype: DType) -> V:
        """The same bits as another dtype of the same width."""

    def convert(self, x: V, dtype: DType, *, raises: bool = False) -> V:
        """NumPy's cast between any two dtypes, with its floating-point errors if it `raises`."""

    def convert_small(self, x: V, dtype: DType) -> V:
        """A float that fits, to an integer."""

    # ------------------------------------------------------------------------------------------- control, effects

    def repeat(self, start: Sequence[V], more: Callable[[list[V]], V], step: Callable[[list[V]], Sequence[V]]) -> list[V]:
        """What is left of some integers after `step` has been taken as often as `more` holds in any lane."""

    def raise_errors(self, **masks: V) -> None:
        """Raise floating-point errors (`ERRORS`) if any lane of their mask is set."""

    def call_libm(self, function: str, *args: V | float) -> V:
        """The C library's function in each lane: `fmod` of floats."""

    def call_user_function(self, name: str, code: ScalarCode, args: Sequence[V]) -> V:
        """A function of the user's in each lane; `name` is its op's."""

    def where_rare(self, mask: V, fast: V, function: str, *args: V | float) -> V:
        """`fast`, but with the C library's `function(*args)` in the lanes where `mask` is set."""
