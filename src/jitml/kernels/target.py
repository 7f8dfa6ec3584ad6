"""Target model: what do a target's loops and library calls cost, and what does it take?

Data that grouping, scheduling, memory planning and reports ask, and that each back end supplies of itself. The defaults describe
a small server core with AVX-512. Programs depend on it for speed only, with two exceptions: `Blocks` fix how a sum associates, so
they are the same on every machine of one target; and without a library's sorts, equal elements keep their order whatever the
kind of sort.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from types import MappingProxyType

from jitml.ir.op import OPS
from jitml.ir.types import F32, F64, DType
from jitml.kernels.ir import Kind
from jitml.records import dataclass, field

CORE_KINDS: frozenset[Kind] = frozenset(("serial", "parallel", "vector", "unroll"))  # of processors with cores and vectors

# Work of the functions that are not one instruction, in simple vector operations.
WORK: Mapping[str, float] = {
    **dict.fromkeys(("div", "sqrt"), 4.0),
    **dict.fromkeys(("floor_divide", "remainder", "fmod", "hypot"), 8.0),
    **dict.fromkeys(("exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sin", "cos", "tanh", "logistic"), 12.0),
    **dict.fromkeys(("tan", "sinh", "cosh", "arctan", "arcsin", "arccos", "arctan2", "erf", "cbrt"), 20.0),
    **dict.fromkeys(("pow", "arcsinh", "arccosh", "arctanh"), 30.0),
}


def work_of(function: str, table: Mapping[str, float] = WORK) -> float:
    """The work of a pointwise op on one element, in simple vector operations."""
    known = table.get(function)
    return known if known is not None else OPS[function].work if function in OPS else 1.0


@dataclass(frozen=True, slots=True)
class Cost:
    """
    Args:
        memory_bandwidth, cache_bandwidth: bytes a nanosecond of one core, beyond what is close and within it.
        close_bytes: of memory that is close to one core, its own cache, say.
        sharers: rows of an array that are worked on at once, and share that memory.
        flops: simple vector operations (f64) a nanosecond of one core.
        matrix_flops: operations a nanosecond of one core inside the library's products, a multiply-add counting two.
        parallel_ns: the least serial work, in ns, for which a second thread pays.
        grain_ns: the least work, in ns, to hand to a thread at once.
        work: of functions, in simple vector operations; of those that are missing, what their ops say.
        strided: work of a load whose lanes are not neighbours.
        hidden: work that hides behind the loads that it needs anyway.
    """

    memory_bandwidth: float = 15.0
    cache_bandwidth: float = 60.0
    close_bytes: int = 1 << 20
    sharers: int = 1
    flops: float = 8.0
    matrix_flops: float = 50.0
    parallel_ns: float = 50_000.0
    grain_ns: float = 20_000.0
    work: Mapping[str, float] = field(default_factory=lambda: WORK)
    strided: float = 6.0
    hidden: float = 3.0

    def work_of(self, function: str) -> float:
        return work_of(function, self.work)

    def fits_close(self, nbytes: float, share: int = 1) -> bool:
        """Whether an array stays close between two uses, if it may have one part in `share` of that memory."""
        return nbytes <= self.close_bytes // share

    def transfer_ns(self, nbytes: float, share: int = 1) -> float:
        """Time to read or write so many bytes once."""
        return nbytes / self.transfer_rate(nbytes, share)

    def transfer_rate(self, held: float, share: int = 1) -> float:
        """Bytes a nanosecond of what lies in so many."""
        return self.cache_bandwidth if self.fits_close(held, share) else self.memory_bandwidth

    def loop_ns(self, work: float, nbytes: float, held: float) -> float:
        """Time of a loop on one core: the work, or the traffic with what is `held` if that takes longer."""
        return max(work / self.flops, nbytes / self.transfer_rate(held))

    def pays_to_recompute(self, work: float, nbytes: int) -> bool:
        """Whether so much work more costs no more than writing an array and reading it back."""
        return work / self.flops <= 2 * self.transfer_ns(nbytes, share=2)

    def waits_for_lines(self, nbytes: int) -> bool:
        """Whether the library's products, which read a few rows at a time, would wait for each line of an array that no loop
        has brought close."""
        return not self.fits_close(nbytes)


@dataclass(frozen=True, slots=True)
class Limits:
    """
    Args:
        cores: threads that parallel loops are cut for.
        vector_bytes: width of one vector register.
        alignment: of each buffer in the arena, in bytes.
        dense_stride: up to this stride, whole vectors and shuffles are faster than an access for each lane.
        set_bytes: lines so far apart, or a multiple of it, take each other's place in the first cache.
        row_bytes: of scratch that whoever works on a row has for it, beside the caches.
    """

    cores: int = 2
    vector_bytes: int = 64
    alignment: int = 64
    dense_stride: int = 4
    set_bytes: int = 4096
    row_bytes: int = 0


@dataclass(frozen=True, slots=True)
class Blocks:
    """How sums associate.

    Args:
        reduction: elements summed straight before their sum joins a longer one.
        chunk: elements of one parallel step through a flat array.
    """

    reduction: int = 1024
    chunk: int = 16384


@dataclass(frozen=True, slots=True)
class Accepts:
    """What a library call takes.

    Args:
        dtypes: of the elements; None for all.
        routines: by name, where the call stands for several functions; None for all that there are.
        is_dense: whether matrices must be contiguous along rows or columns, without overlap, as BLAS wants them.
        small: extents up to which loops are faster.
        sized: whether it can read its extents when the program runs.
        epilogues: what it can do to the result at once; `add`: add it to what is there.
    """

    dtypes: frozenset[DType] | None = None
    routines: Container[str] | None = None
    is_dense: bool = False
    small: int = 0
    sized: bool = True
    epilogues: frozenset[str] = frozenset()

    def takes(self, dtype: DType) -> bool:
        return self.dtypes is None or dtype in self.dtypes

    def takes_matrices(self, steps: tuple[int, int], extents: Sequence[int]) -> bool:
        """Whether it reads, and writes, matrices of these strides along rows and columns."""
        (row, column), (m, n) = steps, extents
        by_row = (column == 1 or n == 1) and (row >= max(1, n) or m == 1)
        by_column = (row == 1 or m == 1) and (column >= max(1, m) or n == 1)
        return not self.is_dense or by_row or by_column

    def has(self, routine: str) -> bool:
        return self.routines is None or routine in self.routines


GEMM = Accepts(dtypes=frozenset((F32, F64)), is_dense=True, small=8, epilogues=frozenset(("add",)))
CALLS: Mapping[str, Accepts] = MappingProxyType({"gemm": GEMM, "sort": Accepts(), "argsort": Accepts(), "random": Accepts()})


@dataclass(frozen=True, slots=True)
class Target:
    """
    Args:
        name: for people.
        unit: what the costs are of.
        kinds: of loops that it runs.
        calls: the library's functions, by the names that `kernels.program.Call` has; a name that is missing stands for a function
            that the library lacks. `copy`, `zeros`, `empty` and `host` are every target's.
    """

    name: str = "cpu"
    unit: str = "one core"
    cost: Cost = Cost()
    limits: Limits = Limits()
    blocks: Blocks = Blocks()
    kinds: frozenset[Kind] = CORE_KINDS
    calls: Mapping[str, Accepts] = field(default_factory=lambda: CALLS)
