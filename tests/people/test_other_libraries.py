"""Arguments of other libraries: a jitted function answers as the plain one does, in value, type, names and index.

pandas is there in every development environment. The others are the extra `people`, but torch, which takes gigabytes; what is
missing is skipped.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitml

pytestmark = pytest.mark.loose

N = 40
V = np.linspace(1.0, 2.0, N)


def exponential(x: Any) -> Any:
    return np.exp(x) * 2 + 1


def total(x: Any) -> Any:
    return np.sqrt(x).sum()


def of_array(x: Any) -> Any:
    y = np.asarray(x)
    return np.sum(y**2), y[::2] * 2


def item(x: Any) -> Any:
    return x[7]


def gone_through(x: Any) -> Any:
    s = 0.0
    for y in x:
        s = s + y
    return s


def written(x: Any) -> Any:
    x[5] = 7.0
    return x


def added_to(x: Any) -> Any:
    x += 1
    return x


def statistics(x: Any) -> Any:
    return np.mean(x), np.std(x), np.max(x), len(x)


def chosen(x: Any) -> Any:
    return np.where(x > 1.5, x, 0)


def with_an_array(x: Any) -> Any:
    return x + np.arange(len(x))


def column(x: Any) -> Any:
    return np.exp(x["a"]).sum(), x["a"] * 2


def column_as_array(x: Any) -> Any:
    return np.exp(np.asarray(x["a"])) @ np.asarray(x["b"])


def kept(x: Any) -> Any:
    return {"x": x, "y": np.ones(3) * 2}


def asked(x: Any) -> Any:
    return isinstance(x, np.ndarray), type(x).__name__


FUNCTIONS = (
    exponential, total, of_array, item, gone_through, written, added_to, statistics, chosen, with_an_array, column,
    column_as_array, kept, asked,
)  # fmt: skip


def series(pandas: Any, v: Any) -> Any:
    return pandas.Series(v.copy(), index=np.arange(N) + 5, name="s")


def shuffled_series(pandas: Any, v: Any) -> Any:
    return pandas.Series(v.copy(), index=np.arange(N)[::-1])


def frame(pandas: Any, v: Any) -> Any:
    return pandas.DataFrame({"a": v, "b": v * 2})


def nullable(pandas: Any, v: Any) -> Any:
    return pandas.Series(v.copy(), dtype="Float64")


def data_array(xarray: Any, v: Any) -> Any:
    return xarray.DataArray(v.copy(), dims="t", coords={"t": np.arange(N)})


def dataset(xarray: Any, v: Any) -> Any:
    return xarray.Dataset({"a": ("t", v.copy()), "b": ("t", v * 2)})


def polars_series(polars: Any, v: Any) -> Any:
    return polars.Series("s", v.copy())


def polars_frame(polars: Any, v: Any) -> Any:
    return polars.DataFrame({"a": v.copy(), "b": v * 2})


def arrow_array(pyarrow: Any, v: Any) -> Any:
    return pyarrow.array(v.copy())


def arrow_table(pyarrow: Any, v: Any) -> Any:
    return pyarrow.table({"a": v.copy(), "b": v * 2})


def tensor(torch: Any, v: Any) -> Any:
    return torch.from_numpy(v.copy())


def tensor_with_gradient(torch: Any, v: Any) -> Any:
    return torch.tensor(v, requires_grad=True)


def masked(numpy: Any, v: Any) -> Any:
    return numpy.ma.masked_greater(v.copy(), 1.5)


def matrix(numpy: Any, v: Any) -> Any:
    return numpy.matrix(v)


def memory_map(numpy: Any, v: Any) -> Any:
    return v.copy().view(numpy.memmap)


KINDS = (
    ("pandas", series), ("pandas", shuffled_series), ("pandas", frame), ("pandas", nullable),
    ("xarray", data_array), ("xarray", dataset), ("polars", polars_series), ("polars", polars_frame),
    ("pyarrow", arrow_array), ("pyarrow", arrow_table),
    ("torch", tensor), ("torch", tensor_with_gradient), ("numpy", masked), ("numpy", matrix), ("numpy", memory_map),
)  # fmt: skip


def told(x: Any) -> Any:
    """All that tells two results apart, rounded: types, names, indices, values."""
    if isinstance(x, tuple):
        return tuple(map(told, x))
    if type(x) is dict:
        return {name: told(value) for name, value in x.items()}
    names = {name: str(getattr(x, name)) for name in ("name", "dims", "mask") if hasattr(x, name)}
    index = [str(x.index)] if type(x).__module__.startswith("pandas") and hasattr(x, "index") else []
    if isinstance(x, (np.ndarray, np.generic, float)) and not isinstance(x, np.ma.MaskedArray):
        return type(x), np.asarray(x).dtype, np.round(np.asarray(x, float), 9).tolist()
    return type(x), names, index, str(x)


def outcome(function: Callable[..., Any], x: Any) -> Any:
    """What a call gives or raises, and what is in its argument then."""
    try:
        result = told(function(x))
    except Exception as error:
        result = type(error)
    return result, told(x)


@pytest.mark.parametrize("library, make", KINDS, ids=lambda x: getattr(x, "__name__", x))
def test_a_jitted_function_answers_as_the_plain_one_does(library: str, make: Callable[..., Any]) -> None:
    module = pytest.importorskip(library)
    for function in FUNCTIONS:
        fast = jitml.jit(function)
        for v in (V, V, V * 3):
            assert outcome(fast, make(module, v)) == outcome(function, make(module, v)), function.__name__


def test_the_outcome_tells_results_apart() -> None:
    pandas = importlib.import_module("pandas")
    a, b = series(pandas, V), shuffled_series(pandas, V)
    assert told(a) != told(b) and told(a) == told(a.copy()) and told(a) != told(a.to_numpy())
    assert told(V) != told(V.astype(np.float32)) and told(1.0) != told(np.float64(1.0))


def test_an_array_is_compiled_beside_them() -> None:
    """What one kind of argument leaves to Python is not lost for others."""
    pandas = importlib.import_module("pandas")
    fast = jitml.jit(exponential)
    fast(series(pandas, V))
    for _ in range(3):
        assert type(fast(V)) is np.ndarray
    assert "kernel" in jitml.explain(fast, V)
