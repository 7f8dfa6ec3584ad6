"""Topics of NumPy: which module has the meaning of a function? The module is imported when the function is met.

`tests/imports/test_import.py` says which name is missing here.
"""

from __future__ import annotations

from collections.abc import Iterator

# In the order of docs/supported.md: where functions are from, and what they are called; no name for all that is from there.
# Programs usually need those that name nothing. "numpy.ufunc" has the methods of ufuncs.
TOPICS: dict[str, dict[str, str]] = {
    "ufuncs.ufunc": {},
    "arrays.indexing": {
        "_operator": "getitem setitem",
    },
    "arrays.flat": {
        "numpy": "flat put putmask place fill_diagonal",
    },
    "arrays.iterators": {
        "numpy": "ndindex ndenumerate nditer",
        "itertools": "product",
    },
    "arrays.methods": {
        "numpy": "view frombuffer copy tolist astype flatten fill sort flags require setflags resize partition",
        "builtins": "__set__",
    },
    "arrays.complex_parts": {
        "numpy": "real imag angle isreal iscomplex iscomplexobj isrealobj real_if_close sort_complex",
        "builtins": "__set__",
    },
    "arrays.reshaping": {
        "numpy": (
            "reshape ravel transpose swapaxes matrix_transpose moveaxis rollaxis squeeze expand_dims broadcast_to "
            "broadcast_arrays atleast_1d atleast_2d atleast_3d flip fliplr flipud rot90 shape ndim size"
        ),
        "numpy.linalg": "matrix_transpose",
    },
    "arrays.sliding": {
        "numpy.lib.stride_tricks": "sliding_window_view",
    },
    "reductions.reductions": {
        "numpy": (
            "sum prod max amax min amin ptp all any count_nonzero argmax argmin cumsum cumprod cumulative_sum "
            "cumulative_prod nansum nanprod nancumsum nancumprod nanmax nanmin nanargmax nanargmin"
        ),
    },
    "reductions.statistics": {
        "numpy": "mean var std nanmean nanvar nanstd average cov corrcoef",
    },
    "reductions.ufunc_methods": {
        "numpy.ufunc": "",
    },
    "reductions.sorting": {
        "numpy": "sort argsort partition argpartition lexsort searchsorted digitize isin",
    },
    "reductions.closeness": {
        "numpy": (
            "round around fix isclose allclose array_equal array_equiv sinc isposinf isneginf result_type "
            "can_cast shares_memory may_share_memory"
        ),
    },
    "building.creation": {
        "numpy": (
            "zeros empty ones zeros_like ones_like empty_like full full_like array fromiter asarray asanyarray "
            "ascontiguousarray asfortranarray copy astype bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 "
            "float16 float32 float64 complex64 complex128"
        ),
        "jitml.device.convert": "asarray",
    },
    "building.ranges": {
        "numpy": "arange linspace logspace geomspace",
    },
    "building.grids": {
        "numpy": "eye identity tri tril triu vander meshgrid indices fromfunction",
    },
    "building.joining": {
        "numpy": (
            "concatenate stack hstack vstack dstack column_stack block append array_split split hsplit vsplit "
            "dsplit unstack tile repeat roll resize"
        ),
    },
    "building.padding": {
        "numpy": "pad",
    },
    "selection.choose": {
        "numpy": ("where clip select piecewise choose take take_along_axis put_along_axis copyto nan_to_num delete insert"),
    },
    "selection.nonzero": {
        "numpy": "nonzero flatnonzero argwhere compress extract",
    },
    "selection.sets": {
        "numpy": (
            "unique unique_values unique_counts unique_inverse unique_all union1d intersect1d setdiff1d setxor1d "
            "trim_zeros bincount histogram_bin_edges histogram"
        ),
    },
    "selection.quantiles": {
        "numpy": "median nanmedian quantile percentile nanquantile nanpercentile",
    },
    "selection.index_tricks": {
        "numpy": "ix_ unravel_index ravel_multi_index tril_indices_from triu_indices_from diag_indices_from",
    },
    "linear_algebra.products": {
        "numpy": "matmul dot inner vdot outer vecdot matvec vecmat tensordot kron cross diagonal trace diag diagflat",
        "numpy.linalg": "outer vecdot tensordot matmul cross diagonal trace",
    },
    "linear_algebra.norms": {
        "numpy.linalg": "norm vector_norm matrix_norm matrix_power multi_dot",
    },
    "linear_algebra.factorizations": {
        "numpy.linalg": (
            "cholesky solve inv slogdet det eigh eigvalsh eig eigvals svd svdvals qr lstsq pinv cond matrix_rank "
            "tensorsolve tensorinv"
        ),
    },
    "linear_algebra.einsum": {
        "numpy": "einsum",
    },
    "numerics.calculus": {
        "numpy": "diff ediff1d gradient trapezoid interp convolve correlate unwrap apply_along_axis",
    },
    "numerics.polynomials": {
        "numpy": "polyval polyadd polysub polymul polyder polyint poly polyfit",
    },
    "numerics.fft": {
        "numpy.fft": "",
    },
    "numerics.special": {},
    "python.builtins": {
        "builtins": "len sorted max min pow sum any all int float bool complex",
        "_operator": "is_ is_not contains",
        "collections": "deque",
    },
    "python.math": {
        "math": "",
        "builtins": "round",
    },
    "python.cmath": {
        "cmath": "",
    },
}


def names_of(topic: str) -> Iterator[str]:
    """Full names of a topic's functions, or what they are all from; "numpy" stands for those of NumPy's that no topic names."""
    for home, names in TOPICS[topic].items():
        yield from (f"{home}.{name}" for name in names.split()) if names else (home,)
        if home.startswith("numpy"):
            yield "numpy"


__all__ = ["TOPICS", "names_of"]
