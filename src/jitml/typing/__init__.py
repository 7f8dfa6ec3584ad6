"""`jitml.typing`: types for annotations of programs that use jitml (docs/typing.md).

>>> from collections.abc import Callable
>>> import numpy as np
>>> import jitml
>>> from jitml.typing import ArrayLike, Jitted
>>> def as_row(x: ArrayLike) -> np.ndarray:
...     return np.asarray(x).reshape(1, -1)
>>> compiled: Jitted[[ArrayLike], np.ndarray] = jitml.jit(as_row)
>>> compiled([1.0, 2.0]).shape
(1, 2)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypedDict

import numpy.typing as npt

from jitml.typing.functions import BoundFunction, FunctionObject, P, R_co

if TYPE_CHECKING:
    from jitml.dispatch.specialize import Variant
    from jitml.outline import Explanation
    from jitml.pipeline import Lowered


class SupportsDLPack(Protocol):
    """An array that other libraries can use by DLPack: of PyTorch, CuPy, JAX and others."""

    def __dlpack__(self, *, stream: Any = None) -> Any: ...

    def __dlpack_device__(self) -> tuple[Any, int]: ...


class SupportsCudaArrayInterface(Protocol):
    """An array on a GPU that says where it is, as those of Numba do."""

    @property
    def __cuda_array_interface__(self) -> Any: ...


ArrayLike = npt.ArrayLike | SupportsDLPack | SupportsCudaArrayInterface
"""What `jitml.asarray` makes an array of: what `numpy.asarray` takes, a `jitml.Array`, arrays of other libraries on a GPU."""


class Jitted(FunctionObject[P, R_co], Protocol[P, R_co]):
    """A function that `jitml.jit` has made of one with the parameters P and the result R: `Jitted[[float, int], float]`."""

    @property
    def function(self) -> Callable[..., R_co]:
        """The function as it was written."""

    @property
    def variants(self) -> tuple[Variant, ...]:
        """The compiled specialisations, each with the reason for its compilation."""

    def lower(self, *args: P.args, **kwargs: P.kwargs) -> Lowered:
        """Every stage of the compiled program for these arguments, as text and data."""

    def explain(self, *args: P.args, **kwargs: P.kwargs) -> Explanation:
        """See `jitml.explain`."""

    def clear_cache(self) -> None:
        """Forget every specialisation."""


class JitOptions(TypedDict, total=False):
    """The options of `jitml.jit`: `options: JitOptions = {"fastmath": True}`, and then `jit(f, **options)`."""

    device: str | None
    static_argnums: int | Iterable[int]
    static_argnames: str | Iterable[str]
    dynamic: bool | None
    fastmath: bool | Iterable[str]
    threads: int | None
    cache: bool
    host_calls: Literal["allow", "error"]
    verify: Literal["first", "always", "never"] | int | None
    schedules: Mapping[str, str] | None
    strict: bool | None


__all__ = [
    "ArrayLike",
    "BoundFunction",
    "FunctionObject",
    "JitOptions",
    "Jitted",
    "SupportsCudaArrayInterface",
    "SupportsDLPack",
]
