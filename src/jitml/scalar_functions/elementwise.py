"""`jitml.elementwise`: a function of numbers, compiled by Numba, that works on arrays, and inside of compiled loops."""

from __future__ import annotations

import functools
import inspect
import types
from collections.abc import Callable
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import numpy as np

from jitml.autograd.tape.custom import orders
from jitml.autograd.tape.tape import current_tape
from jitml.autograd.tape.values import Taped, wrapped
from jitml.device.array import Array
from jitml.device.operations import apply
from jitml.diagnostics.tracebacks import entry
from jitml.errors import DerivativeError, UnsupportedError
from jitml.functions import FunctionLike, require_function
from jitml.imports.late import late
from jitml.ir import ops
from jitml.ir.graph import Value
from jitml.ir.op import UserFunction
from jitml.ir.ops.user_functions import user_function
from jitml.ir.types import BOOL, DType
from jitml.numpy.support.arguments import broadcast_value, common_shape, result_of, value_of
from jitml.records import dataclass
from jitml.trace.environment.pickling import reduced
from jitml.trace.record.recording import current_trace, refuse, unsupported, user_source
from jitml.trace.values.boxing import fresh_like

if TYPE_CHECKING:
    from jitml.scalar_functions import numba_code
    from jitml.scalar_functions.numba_code import KernelCode
else:
    numba_code = late("jitml.scalar_functions.numba_code")  # brings llvmlite


@dataclass(frozen=True)
class _Ops:
    """What the function is in programs: its result, and where it raises, if it ever does."""

    value: UserFunction
    raises: UserFunction | None


class elementwise(FunctionLike):  # used as a function
    """A function of numbers, compiled by Numba, that takes arrays too: it is called with their elements, as by `np.vectorize`.

    In compiled code its instructions stand in the loops around it. So its loops and branches cost what they cost in C, and
    nothing is written to memory in between. Arguments are broadcast.

    Args:
        f: a function that Numba compiles without Python, or one that it has compiled (`numba.njit`). It takes numbers, returns
            one, and depends on nothing else.

    Each argument has the dtype that it comes with; Python's numbers are bool, int64, float64 and complex128. Numba says what the
    result's is then: of two int32 it adds up an int64. Nothing warns: 1 / 0.0 is infinite. What the function raises, the caller
    gets.

    Derivatives are given by `jitml.custom_jvp`. Kernels hold functions of integers, bools, float32 and float64 that do not need
    Numba's runtime (for arrays, strings or random numbers of their own); others run between the loops.

    Raises:
        ImportError: there is no Numba; the extra `numba` brings it.

    Calls raise:
        UnsupportedError: Numba cannot compile the function for such arguments, or it does not return one number.
        DerivativeError: a derivative is asked for, and there is none.
        ValueError: the arguments cannot be broadcast.

    >>> import numpy as np, jitml
    >>> @elementwise
    ... def steps(n):  # of Collatz
    ...     count = 0
    ...     while n != 1:
    ...         n = n // 2 if n % 2 == 0 else 3 * n + 1
    ...         count += 1
    ...     return count
    >>> @jitml.jit
    ... def longest(n):
    ...     return steps(np.arange(1, n)).max()
    >>> print(longest(1000))
    178
    """

    __name__: str
    __qualname__: str
    __wrapped__: Callable[..., Any]

    @entry
    def __init__(self, f: Callable[..., Any]) -> None:
        require_function("elementwise", f)
        if find_spec("numba") is None:
            raise ImportError("jitml.elementwise needs Numba: pip install 'jitml[numba]'", name="numba")
        functools.update_wrapper(self, f, updated=())
        self.function = f
        self.name = str(getattr(f, "__qualname__", None) or getattr(f, "__name__", f))
        self._loops: dict[tuple[DType, ...], Any] = {}
        self._ops: dict[tuple[DType, ...], _Ops | str] = {}

    @entry
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        given = self._positional(args, kwargs)
        if not given:
            raise TypeError(f"{self.name} is called without arguments")
        if current_trace() is not None:
            return self._recorded(given)
        if any(isinstance(x, Array) for x in given):
            return apply(self, *given)
        if current_tape() is not None:
            return self._on_tape(given)
        return self._looped(given)

    def _positional(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
        """All arguments in their places, with defaults for those that are not given."""
        if isinstance(self.function, (np.ufunc, types.BuiltinFunctionType)) and not kwargs:
            return args
        bound = inspect.signature(self.function).bind(*args, **kwargs)
        bound.apply_defaults()
        if bound.kwargs:
            raise TypeError(
                f"{self.name}: {next(iter(bound.kwargs))} can be given by keyword only, which elementwise does not do"
            )
        return bound.args

    def _looped(self, given: tuple[Any, ...]) -> Any:
        arrays = [x if hasattr(type(x), "__array_ufunc__") else np.asarray(x) for x in given]
        loop = self._loop(tuple(np.asarray(x).dtype for x in arrays))
        with np.errstate(all="ignore"):
            return loop(*arrays)

    def _on_tape(self, given: tuple[Any, ...]) -> Any:
        """A call in a function that is differentiated as it runs, by what does not move."""
        if orders() > 0 and any(type(x) is Taped and x.is_active for x in given):
            raise DerivativeError(
                f"{self.name} is to be differentiated, and jitml does not look into it",
                source=user_source(),
                remedy="Give it a derivative by jitml.custom_jvp.",
            )
        return wrapped(current_tape(), self._looped(tuple(x.value if type(x) is Taped else x for x in given)))

    def _recorded(self, given: tuple[Any, ...]) -> Any:
        """A call in a trace: the op."""
        values = [value_of(x) for x in given]
        meaning = self._op(tuple(value.dtype for value in values))
        if isinstance(meaning, str):
            unsupported(f"elementwise: no kernel can hold {self.name}: {meaning}")
        shape = common_shape(self.name, *(value.shape for value in values))
        operands: list[Value] = [broadcast_value(value, shape) for value in values]
        if meaning.raises is not None:
            well = ops.bit_not(meaning.raises(*operands))
            well = ops.reduce_all(well, axes=tuple(range(well.ndim))) if well.ndim else well
            operands[0] = ops.check(operands[0], well, error="ValueError", message=f"{self.name} raises an exception")
        result: Value = meaning.value(*operands)
        return fresh_like(result, *given) if result.ndim else result_of(result)

    @functools.cached_property
    def _called(self) -> Any:
        return numba_code.called_by_numba(self.function)

    def _loop(self, dtypes: tuple[DType, ...]) -> Any:
        if dtypes not in self._loops:
            self._loops[dtypes] = numba_code.loop_of(self._called, dtypes)
        return self._loops[dtypes]

    def _op(self, dtypes: tuple[DType, ...]) -> _Ops | str:
        """The ops for arguments of such dtypes, or why there are none."""
        if dtypes not in self._ops:
            try:
                made = numba_code.code_of(self._called, dtypes)
            except UnsupportedError as error:
                refuse(error)
            self._ops[dtypes] = made if isinstance(made, str) else self._made_of(made, dtypes)
        return self._ops[dtypes]

    def _made_of(self, code: KernelCode, dtypes: tuple[DType, ...]) -> _Ops:
        loop = functools.partial(self._loop, dtypes)
        value = user_function(self.name, code.value, functools.partial(_values, loop, code.value.result), is_total=code.is_total)
        if code.raises is None:
            return _Ops(value, None)
        name = f"{self.name}_raises"
        return _Ops(value, user_function(name, code.raises, functools.partial(_raises, loop), is_total=code.is_total))

    def __reduce__(self) -> str | tuple[Any, ...]:
        return reduced(self, type(self), self.function)

    def __repr__(self) -> str:
        return f"<elementwise {self.name}>"


def _values(loop: Callable[[], Any], dtype: DType, *arrays: Any) -> Any:
    """A function's results, 0 where it raises."""
    ufunc = loop()
    try:
        return ufunc(*arrays)
    except Exception:  # whatever the user's function raises
        return np.asarray(_one_by_one(ufunc, lambda found, error: 0 if error else found)(*arrays)).astype(dtype)


def _raises(loop: Callable[[], Any], *arrays: Any) -> Any:
    """Where a function raises."""
    ufunc = loop()
    try:
        return np.zeros(np.shape(ufunc(*arrays)), BOOL)
    except Exception:  # whatever the user's function raises
        return np.asarray(_one_by_one(ufunc, lambda found, error: error)(*arrays)).astype(BOOL)


def _one_by_one(ufunc: Any, choose: Callable[[Any, bool], Any]) -> Any:
    """What is chosen of each result of a ufunc, and whether it is an error."""

    def one(*xs: Any) -> Any:
        try:
            return choose(ufunc(*xs), False)
        except Exception:  # as above
            return choose(None, True)

    return np.frompyfunc(one, ufunc.nin, 1)


__all__ = ["elementwise"]
