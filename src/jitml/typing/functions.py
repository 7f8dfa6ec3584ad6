"""Types of functions: what objects that stand for functions are to type checkers.

`FunctionObject[P, R]` is called as a `Callable[P, R]` is, and becomes a method. Type checkers read
this file; `import jitml` does not.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import MethodType
from typing import Any, Concatenate, ParamSpec, Protocol, Self, SupportsComplex, SupportsFloat, TypeVar, TypeVarTuple, overload

from numpy import ufunc

P = ParamSpec("P")
Q = ParamSpec("Q")  # those after the first
R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)
S = TypeVar("S")  # the object that a method belongs to
# With a bound of Any, pyright lets the parameter of a lambda be anything, as mypy does.
T = TypeVar("T", bound=Any)
Aux = TypeVar("Aux")
Ts = TypeVarTuple("Ts")

OneNumber = SupportsFloat | SupportsComplex  # a Python number, a NumPy scalar, an array of shape ()
OneNumberT = TypeVar("OneNumberT", bound=OneNumber)


class _NoArgument:
    """Parameters that take this take anything."""


class FunctionObject(Protocol[P, R_co]):
    """An object that stands for a function: what `jit`, `grad`, `vmap` and their kin return.

    Its class is nobody's business. In annotations, `Callable` does as well where the object is only called.
    """

    __name__: str
    __qualname__: str

    @property
    def __wrapped__(self) -> Callable[..., Any]: ...

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R_co: ...

    # The first overload is about functions whose first parameter takes anything, and may thus be `self`, `cls` or neither. It
    # serves mypy for all functions: it does not compare the first parameters of `Concatenate`.
    @overload
    def __get__(self: FunctionObject[Concatenate[_NoArgument, Q], R], instance: Any, owner: Any = None, /) -> Member[Q, R]: ...
    @overload
    def __get__(
        self: FunctionObject[Concatenate[type[S], Q], R], instance: S | None, owner: type[S], /
    ) -> BoundFunction[Q, R]: ...
    @overload
    def __get__(self, instance: None, owner: type | None = None, /) -> Self: ...
    @overload
    def __get__(self: FunctionObject[Concatenate[S, Q], R], instance: S, owner: Any = None, /) -> BoundFunction[Q, R]: ...
    @overload
    def __get__(self, instance: object, owner: Any = None, /) -> Self: ...
    def __get__(self, instance: Any, owner: Any = None, /) -> Any:
        return self if instance is None else MethodType(self, instance)


class JacobianTransform(Protocol):
    """What `jacfwd`, `jacrev`, `jacobian` and `hessian` are."""

    __name__: str

    @overload
    def __call__(
        self,
        f: ufunc,
        argnums: int | Sequence[int] | None = None,
        has_aux: bool = False,
        holomorphic: bool = False,
        *,
        argnames: str | Sequence[str] | None = None,
    ) -> FunctionObject[..., Any]: ...
    @overload
    def __call__(
        self,
        f: Callable[P, Any],
        argnums: int | Sequence[int] | None = None,
        has_aux: bool = False,
        holomorphic: bool = False,
        *,
        argnames: str | Sequence[str] | None = None,
    ) -> FunctionObject[P, Any]: ...


class BoundFunction(Protocol[P, R_co]):
    """A `FunctionObject` as a method of an object: `model.loss`."""

    @property
    def __self__(self) -> Any: ...

    @property
    def __func__(self) -> Callable[..., R_co]: ...

    @property
    def __name__(self) -> str: ...

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R_co: ...


class Member(Protocol[P, R_co]):
    """A `FunctionObject` in a class, of which it is not known whether it is a method, a static method or a class method.

    P: all parameters but the first.
    """

    @overload
    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R_co: ...
    @overload
    def __call__(self, first: Any, /, *args: P.args, **kwargs: P.kwargs) -> R_co: ...

    def __getattr__(self, name: str) -> Any: ...


__all__ = ["BoundFunction", "FunctionObject", "Member", "OneNumber"]
