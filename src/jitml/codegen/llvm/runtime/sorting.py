"""Native sorts: how are rows sorted?

By NumPy's own C functions: its results, with equal elements as it leaves them. Long ones by functions of ours (`sorts/`), which
call NumPy's where the result depends on the way of the sort, and where it is the faster one: a short trial tells.

NumPy's stand in the array functions of each dtype. Those of numbers touch nothing but the row, and need no GIL.
"""

from __future__ import annotations

import ctypes
from functools import cache
from time import perf_counter
from typing import Any

import numpy as np

from jitml.codegen.llvm.runtime.c_api import numpy_api
from jitml.codegen.llvm.runtime.jit import Code, load
from jitml.codegen.llvm.runtime.singletons import once
from jitml.codegen.llvm.sorts.ends import ends_ir
from jitml.codegen.llvm.sorts.long_rows import long_argsort_ir, long_sort_ir
from jitml.codegen.llvm.sorts.places import places_ir
from jitml.ir.types import DTYPES, DType

Array = np.ndarray[Any, Any]

_GET_ARRAY_FUNCTIONS = 365  # _PyDataType_GetArrFuncs's slot in NumPy's C API table
# Before the sorts in PyArray_ArrFuncs: 21 casts, then getitem, setitem, copyswapn, copyswap, compare, argmax, dotfunc,
# scanfunc, fromstr, nonzero, fill and fillwithscalar.
_FIRST_SORT = 33
_KINDS = ("quicksort", "heapsort", "stable")
_TRIAL = 8192  # elements: enough for what a radix sort has to do once
_MARGIN = 0.5  # of NumPy's time: rows of few values are faster by vectors, and rows larger than caches


def sort_address(symbol: str) -> int:
    """The address of `jitml_sort_f64_quicksort`, `jitml_argsort_i8_stable` ...; KeyError if there is none of that name.

    Those of long rows are `jitml_sort_long_f64_quicksort`, `jitml_argsort_long_i64_stable`, `jitml_sort_places_f64_quicksort` ...
    """
    what, _, rest = symbol.removeprefix("jitml_").partition("_")
    size, _, which = rest.partition("_")
    if size not in ("long", "places"):
        return _functions()[symbol]
    return _own(what, size, *which.split("_"))[f"jitml_{what}_{size}"]


@cache
def _own(what: str, size: str, name: str, kind: str) -> Code:
    """The code of sorts or argsorts of long rows, or of a few places of rows, compiled at the first need."""
    functions, dtype = _functions(), DTYPES[name]
    imports = {f"numpy_{what}": functions[f"jitml_{what}_{name}_{kind}"]}
    exports = [f"jitml_{what}_{size}"]
    if size == "places":
        return load(places_ir(dtype) if what == "sort" else ends_ir(dtype), imports=imports, exports=exports)
    if what == "argsort":
        return load(long_argsort_ir(dtype, stable=kind == "stable"), imports=imports, exports=exports)
    quick, stable = (functions[f"jitml_sort_{name}_{each}"] for each in ("quicksort", "stable"))
    imports |= {"numpy_quick": quick, "numpy_stable": stable}
    exports += ["jitml_radix_sort", "jitml_choose"]
    code = load(long_sort_ir(dtype, kind), imports=imports, exports=exports)
    is_faster = _seconds(code["jitml_radix_sort"], dtype) < _MARGIN * _seconds(quick, dtype)
    ctypes.CFUNCTYPE(None, ctypes.c_bool)(code["jitml_choose"])(is_faster)
    return code


def _seconds(sort: int, dtype: DType) -> float:
    """How long a sort takes: less than a tenth of a millisecond if NumPy's has vectors, up to one if it has none.

    There are processors where vectors are slow at it, and builds of NumPy without them: no feature says which sort wins.
    """
    function = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_ssize_t, ctypes.c_void_p)(sort)
    seconds = []
    for row in _drawn().astype(dtype):  # one that has been sorted before is known to the predictor of branches
        began = perf_counter()
        function(row.ctypes.data, row.size, None)
        seconds.append(perf_counter() - began)
    return min(seconds)


@cache
def _drawn() -> Array:
    """Numbers that look drawn at random, in three rows (splitmix64)."""
    x = np.arange(1, 3 * _TRIAL + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        x = (x ^ (x >> np.uint64(shift))) * np.uint64(factor)
    return x.view(np.int64).reshape(3, _TRIAL)


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
