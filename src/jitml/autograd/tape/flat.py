"""`x.flat`: the elements of an array one after the other, where no view shows them so: read and written where they are."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from jitml.autograd.tape.values import Taped, bare


class FlatItems:
    """What `x.flat` is, of an array that does not lie by rows."""

    def __init__(self, array: Taped) -> None:
        self.base = array

    def _places(self, index: Any) -> Any:
        shape = self.base.value.shape
        return np.unravel_index(np.arange(self.base.value.size)[bare(index)], shape)

    def __getitem__(self, index: Any) -> Any:
        return self.base[self._places(index)]

    def __setitem__(self, index: Any, value: Any) -> None:
        places = self._places(index)
        self.base[places] = np.resize(value, np.shape(places[0])) if np.size(value) > 1 else value

    def __iter__(self) -> Iterator[Any]:
        return iter(self.base.reshape(-1))

    def __len__(self) -> int:
        return int(self.base.value.size)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return self.copy().__array__(dtype, copy)

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        return getattr(ufunc, method)(*map(_unrolled, inputs), **kwargs)

    def __array_function__(self, function: Callable[..., Any], types: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        return function(*map(_unrolled, args), **kwargs)

    def copy(self) -> Any:
        return self.base.flatten()


def _unrolled(x: Any) -> Any:
    return x.copy() if type(x) is FlatItems else x
