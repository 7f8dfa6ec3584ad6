"""Native sorts: how are rows sorted?

By NumPy's own C functions: its results, with equal elements as it leaves them. Long ones by radix sorts of ours
(`ir/long_rows.py`), which call NumPy's where the result depends on the way of the sort.

NumPy's stand in the array functions of each dtype. Those of numbers touch nothing but the row, and need no GIL.
"""

from __future__ import annotations

import ctypes
from functools import cache
from typing import Any

import numpy as np

from jitml.codegen.llvm.ir.long_rows import long_argsort_ir, long_sort_ir
from jitml.codegen.llvm.runtime.c_api import numpy_api
from jitml.codegen.llvm.runtime.jit import Code, load
from jitml.codegen.llvm.runtime.singletons import once
from jitml.ir.types import DTYPES, DType

Array = np.ndarray[Any, Any]

_GET_ARRAY_FUNCTIONS = 365  # _PyDataType_GetArrFuncs's slot in NumPy's C API table
# Before the sorts in PyArray_ArrFuncs: 21 casts, then getitem, setitem, copyswapn, copyswap, compare, argmax, dotfunc,
# scanfunc, fromstr, nonzero, fill and fillwithscalar.
_FIRST_SORT = 33
_KINDS = ("quicksort", "heapsort", "stable")


def sort_address(symbol: str) -> int:
    """The address of `jitml_sort_f64_quicksort`, `jitml_argsort_i8_stable` ...; KeyError if there is none of that name.

    Those of long rows are `jitml_sort_long_f64_quicksort`, `jitml_argsort_long_i64_stable`, `jitml_sort_places_f64_quicksort` ...
    """
    what, _, rest = symbol.removeprefix("jitml_").partition("_")
    size, _, which = rest.partition("_")
    if size not in ("long", "places"):
        return _functions()[symbol]
    return _long(what, *which.split("_"))[f"jitml_{what}_{size}"]


@cache
def _long(what: str, name: str, kind: str) -> Code:
    """The code of sorts or argsorts of long rows, compiled at the first need."""
    numpy = {f"numpy_{what}": _functions()[f"jitml_{what}_{name}_{kind}"]}
    if what == "sort":
        return load(long_sort_ir(DTYPES[name]), imports=numpy, exports=("jitml_sort_long", "jitml_sort_places"))
    text = long_argsort_ir(DTYPES[name], stable=kind == "stable")
    return load(text, imports=numpy, exports=("jitml_argsort_long", "jitml_argsort_places"))


@cache
def has_sorts() -> bool:
    """Whether NumPy's sorts were found where they should be, and sort as NumPy does."""
    functions = _functions()
    return bool(functions) and all(functions.values())


@once
def _functions() -> dict[str, int]:
    """Addresses by symbol, 0 where no function does what NumPy does; empty if this NumPy is unknown."""
    table = numpy_api()
    if table is None:
        return {}
    get = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object)(table[_GET_ARRAY_FUNCTIONS] or 0)
    functions: dict[str, int] = {}
    for name, dtype in DTYPES.items():
        slots = (ctypes.c_void_p * (_FIRST_SORT + 2 * len(_KINDS))).from_address(get(dtype))[_FIRST_SORT:]
        sorts, argsorts = slots[: len(_KINDS)], slots[len(_KINDS) :]
        for own, kind in enumerate(_KINDS):
            # To NumPy 2.4 and 2.5 a heapsort is a quicksort, though the slots still hold heapsorts: equal elements tell.
            slot = own if _agrees(argsorts[own], dtype, "argsort", kind) else 0
            for what, address in (("sort", sorts[slot]), ("argsort", argsorts[slot])):
                functions[f"jitml_{what}_{name}_{kind}"] = address or 0 if _agrees(address, dtype, what, kind) else 0
    return functions


def _agrees(address: int | None, dtype: DType, what: str, kind: Any) -> bool:
    """Whether the function gives what NumPy's own gives, with equal elements among those to sort."""
    if not address:
        return False
    x = (np.arange(45) * 19 % 23).astype(dtype)
    length: list[Any] = [ctypes.c_ssize_t, ctypes.c_void_p]
    if what == "sort":
        result = x.copy()
        status = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, *length)(address)(result.ctypes.data, x.size, None)
        expected = np.sort(x, kind=kind)
    else:
        result, expected = np.arange(x.size), np.argsort(x, kind=kind)
        function = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, *length)(address)
        status = function(x.ctypes.data, result.ctypes.data, x.size, None)
    return bool(status == 0 and np.array_equal(result, expected))
