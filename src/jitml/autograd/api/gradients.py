"""`grad` and `value_and_grad`: the slope of a function that returns one number."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Concatenate, Literal, overload

from jitml.autograd.api.transform_driver import ArgumentChoice, Function, forward, inline, run_or_tape
from jitml.autograd.arguments.point import Domain, trace_point
from jitml.autograd.tape.transforms import recorded
from jitml.diagnostics.tracebacks import entry
from jitml.functions import require_function
from jitml.ir import ops
from jitml.trace.environment.transformed import Transformed
from jitml.trace.record.pytree import unflatten

if TYPE_CHECKING:
    from numpy import ufunc

    from jitml.typing.functions import Aux, FunctionObject, OneNumber, OneNumberT, P, T


if TYPE_CHECKING:

    @overload
    def grad(
        f: ufunc,
        argnums: int | Sequence[int] | None = None,
        has_aux: bool = False,
        holomorphic: bool = False,
        *,
        argnames: str | Sequence[str] | None = None,
    ) -> FunctionObject[..., Any]: ...
    @overload
    def grad(
        f: Callable[Concatenate[T, P], OneNumber],
        argnums: None = None,
        has_aux: Literal[False] = False,
        holomorphic: bool = False,
    ) -> FunctionObject[Concatenate[T, P], T]: ...
    @overload
    def grad(
        f: Callable[Concatenate[T, P], tuple[OneNumber, Aux]],
        argnums: None = None,
        *,
        has_aux: Literal[True],
        holomorphic: bool = False,
    ) -> FunctionObject[Concatenate[T, P], tuple[T, Aux]]: ...
    @overload
    def grad(
        f: Callable[P, OneNumber],
        argnums: int,
        has_aux: Literal[False] = False,
        holomorphic: bool = False,
    ) -> FunctionObject[P, Any]: ...
    @overload
    def grad(
        f: Callable[P, OneNumber],
        argnums: Sequence[int],
        has_aux: Literal[False] = False,
        holomorphic: bool = False,
    ) -> FunctionObject[P, tuple[Any, ...]]: ...
    @overload
    def grad(
        f: Callable[P, tuple[OneNumber, Aux]],
        argnums: int | Sequence[int],
        has_aux: Literal[True],
        holomorphic: bool = False,
    ) -> FunctionObject[P, tuple[Any, Aux]]: ...
    @overload
    def grad(
        f: Callable[P, Any],
        argnums: None = None,
        has_aux: bool = False,
        holomorphic: bool = False,
        *,
        argnames: str | Sequence[str],
    ) -> FunctionObject[P, Any]: ...


@entry
def grad(
    f: Function,
    argnums: int | Sequence[int] | None = None,
    has_aux: bool = False,
    holomorphic: bool = False,
    *,
    argnames: str | Sequence[str] | None = None,
) -> Function:
    """The gradient of a function that returns one float.

    Args:
        f: called with copies of its array arguments, so what it writes into them stays its own.
        argnums: the position of the argument to differentiate by, counted from the end if negative (default: the
            first); or several, for a tuple of gradients. Arguments may be nested containers of float arrays; the gradient has
            their structure.
        has_aux: `f` returns (float, aux), and the result is (gradient, aux).
        holomorphic: `f` is a holomorphic function of complex arguments, and the result its complex derivative. Otherwise a
            complex argument `x + iy` has the gradient ∂f/∂x - i ∂f/∂y.
        argnames: the arguments by name instead, whether passed by position or by keyword; several for a tuple.

    Raises:
        DerivativeError: an argument to differentiate by is not float, or the result not one float. It is a TypeError.

    >>> import numpy as np
    >>> grad(lambda x: (x * x).sum())(np.array([1.0, 2.0]))
    array([2., 4.])
    >>> grad(lambda x, scale: x * scale, argnames="scale")(3.0, scale=2.0)
    np.float64(3.0)
    """
    require_function("grad", f)
    again = functools.partial(grad, f, argnums, has_aux, holomorphic, argnames=argnames)
    return derived("grad", f, ArgumentChoice.of("grad", argnums, argnames), has_aux, holomorphic, again=again)


if TYPE_CHECKING:

    @overload
    def value_and_grad(
        f: ufunc,
        argnums: int | Sequence[int] | None = None,
        has_aux: bool = False,
        holomorphic: bool = False,
        *,
        argnames: str | Sequence[str] | None = None,
    ) -> FunctionObject[..., Any]: ...
    @overload
    def value_and_grad(
        f: Callable[Concatenate[T, P], OneNumberT],
        argnums: None = None,
        has_aux: Literal[False] = False,
        holomorphic: bool = False,
    ) -> FunctionObject[Concatenate[T, P], tuple[OneNumberT, T]]: ...
    @overload
    def value_and_grad(
        f: Callable[Concatenate[T, P], tuple[OneNumberT, Aux]],
        argnums: None = None,
        *,
        has_aux: Literal[True],
        holomorphic: bool = False,
    ) -> FunctionObject[Concatenate[T, P], tuple[tuple[OneNumberT, Aux], T]]: ...
    @overload
    def value_and_grad(
        f: Callable[P, OneNumberT],
        argnums: int,
        has_aux: Literal[False] = False,
        holomorphic: bool = False,
    ) -> FunctionObject[P, tuple[OneNumberT, Any]]: ...
    @overload
    def value_and_grad(
        f: Callable[P, OneNumberT],
        argnums: Sequence[int],
        has_aux: Literal[False] = False,
        holomorphic: bool = False,
    ) -> FunctionObject[P, tuple[OneNumberT, tuple[Any, ...]]]: ...
    @overload
    def value_and_grad(
        f: Callable[P, tuple[OneNumberT, Aux]],
        argnums: int | Sequence[int],
        has_aux: Literal[True],
        holomorphic: bool = False,
    ) -> FunctionObject[P, tuple[tuple[OneNumberT, Aux], Any]]: ...
    @overload
    def value_and_grad(
        f: Callable[P, Any],
        argnums: None = None,
        has_aux: bool = False,
        holomorphic: bool = False,
        *,
        argnames: str | Sequence[str],
    ) -> FunctionObject[P, Any]: ...


@entry
def value_and_grad(
    f: Function,
    argnums: int | Sequence[int] | None = None,
    has_aux: bool = False,
    holomorphic: bool = False,
    *,
    argnames: str | Sequence[str] | None = None,
) -> Function:
    """Like `grad`, returning (value, gradient), or ((value, aux), gradient).

    >>> import numpy as np
    >>> value_and_grad(lambda x: (x * x).sum())(np.array([1.0, 2.0]))
    (np.float64(5.0), array([2., 4.]))
    """
    require_function("value_and_grad", f)
    choice = ArgumentChoice.of("value_and_grad", argnums, argnames)
    again = functools.partial(value_and_grad, f, argnums, has_aux, holomorphic, argnames=argnames)
    return derived("value_and_grad", f, choice, has_aux, holomorphic, with_value=True, again=again)


def derived(
    what: str,
    f: Function,
    choice: ArgumentChoice,
    has_aux: bool = False,
    holomorphic: bool = False,
    *,
    with_value: bool = False,
    again: functools.partial[Any],
) -> Function:
    """`grad`, under the name of what the user has called. Without the value, nothing is computed for it alone."""
    domain = Domain.HOLOMORPHIC if holomorphic else Domain.REAL_SCALAR

    def program(f: Function, *args: Any, **kwargs: Any) -> Any:
        places = choice.places(what, f, args, kwargs)
        point = trace_point(what, f, args, kwargs, places, has_aux=has_aux, domain=domain)
        derivative, outputs = forward(point)
        (y,), aux = point.rebuild(outputs[: derivative.outputs])
        one = ops.full(value=1.0, shape=(), dtype=point.results[0].dtype)
        slopes = inline(derivative.pull, [*outputs[derivative.outputs :], *(one for _ in derivative.moving)])
        return shown(y, point.arguments.show(slopes), aux)

    def shown(y: Any, gradients: Any, aux: Any) -> Any:
        slope = gradients[0] if choice.is_one else gradients
        if with_value:
            return ((y, aux) if has_aux else y), slope
        return (slope, aux) if has_aux else slope

    def on_tape(*args: Any, **kwargs: Any) -> Any:
        places = choice.places(what, f, args, kwargs)
        with recorded(what, f, args, kwargs, places, has_aux=has_aux, domain=domain) as point:
            return shown(point.value, unflatten(point.spec, point.pull(point.ones())), point.aux), None

    key = (what, choice.key, has_aux, holomorphic, with_value)

    @functools.wraps(f)
    def gradient(*args: Any, **kwargs: Any) -> Any:
        return run_or_tape(key, lambda: program, f, args, kwargs, functools.partial(on_tape, *args, **kwargs))[0]

    return Transformed(key, gradient, again)
