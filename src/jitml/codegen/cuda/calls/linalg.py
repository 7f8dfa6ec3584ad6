"""Linear algebra: which factorizations does a GPU do itself?  Those of matrices of up to 512 rows, by a block for each matrix.

LU with LAPACK's pivots (`solve`, `inv`, `det`, `slogdet`) and Cholesky's (`linalg.cuh`). A matrix that is singular, or not
positive definite, is a failed check: the plain function raises NumPy's error. Larger matrices are left to the host: one
processor of a GPU takes as long for them. So are complex matrices, and results that are not unique: eigenvectors and singular
vectors, whose signs are LAPACK's choice.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod

from jitml.codegen.cuda.calls.plan import MOST_BLOCKS, CallPlan
from jitml.codegen.cuda.calls.text import entry, number_type, read, template
from jitml.codegen.cuda.module import Launch
from jitml.codegen.cuda.target import SHARED_BYTES, THREADS
from jitml.kernels.ir import Buffer, Check, Const
from jitml.kernels.program import Call, KernelProgram, seen_as
from jitml.records import dataclass

_LARGEST = 512  # rows
_MOST = 1 << 30  # elements of a block's share, which `int` counts


@dataclass(frozen=True, slots=True)
class _Factorization:
    """
    Args:
        body: statements that store the results for a matrix `a`, and right sides `x`, given the buffers of the results and a
            statement that tells of a failure.
        failure: what a matrix is that has no result; None if all have one.
    """

    body: Callable[[Sequence[Buffer], str], list[str]]
    failure: str | None = None


def plan_linalg(call: Call, program: KernelProgram, name: str) -> CallPlan | None:
    """The work of a `host` call whose function is a routine; None if Python has to do it."""
    named = call.params["function"].routine
    routine = _ROUTINES.get(named.name)
    if routine is None or named.parts != ("real",) * len(call.reads):
        return None
    reads = [seen_as(program.buffers[r], shape) for r, shape in zip(call.reads, call.params["shapes"], strict=True)]
    writes = [program.buffers[w] for w in call.writes]
    n, stacks = reads[0].shape[-1], prod(reads[0].shape[:-2])
    columns = reads[1].shape[-1] if len(reads) > 1 else 0
    each = n * (n + columns)
    if not 0 < n <= _LARGEST or each >= _MOST or not all(written.size for written in writes):
        return None
    kind, blocks = number_type(reads[0].dtype), min(stacks, MOST_BLOCKS)
    is_shared = each * reads[0].dtype.itemsize <= SHARED_BYTES
    scratch = () if is_shared else (Buffer(f"{name}_work", reads[0].dtype, (blocks, each)),)
    inputs, outputs = [f"in{k}" for k in range(len(reads))], [f"out{k}" for k in range(len(writes))]
    parameters = [f"{kind}* {x}" for x in outputs] + [read(kind, x) for x in inputs] + [f"{kind}* work" for _ in scratch]
    fails = routine.failure is not None
    parameters += ["long long* error"] if fails else []
    work = f"__shared__ {kind} a[{each}];" if is_shared else f"{kind}* a = work + blockIdx.x * {each}LL;"
    loads = [_moved(f"{n * n}", n, f"a[e] = in0[{element_place(reads[0])}];")]
    loads += [_moved(f"{n * columns}", columns, f"x[e] = in1[{element_place(reads[1])}];")] if columns else []
    body = [
        "__shared__ int pivot;",
        work,
        f"constexpr int n = {n}, m = {columns};",
        f"{kind}* x = a + {n * n};",
        f"for (long long b = blockIdx.x; b < {stacks}; b += gridDim.x) {{",
        *(
            f"  {line}"
            for line in [
                *loads,
                "__syncthreads();",
                "bool is_odd;",
                *routine.body(writes, f"ji_note_failure(error, {name}_check);"),
            ]
        ),
        "  __syncthreads();",
        "}",
    ]
    text = entry(name, parameters, body, f"{', '.join(call.writes)} = {named.name}({', '.join(call.reads)})")
    buffers = tuple(b.name for b in (*writes, *reads, *scratch))
    source = call.sources[0] if call.sources else None
    checks = (Check(Const(False), "ValueError", f"np.linalg: {routine.failure}", (), source),) if fails else ()
    launch = Launch(name, blocks, THREADS, 0, buffers, fails)
    return CallPlan(text, (template("linalg"),), (launch,), scratch, checks=checks)


def _moved(count: str, columns: int, statement: str) -> str:
    """Elements of a matrix, each by one thread."""
    place = f"const int i = e / {columns}, j = e % {columns};"
    return f"for (int e = threadIdx.x; e < {count}; e += {THREADS}) {{ {place} {statement} }}"


def element_place(buffer: Buffer, matrix: Sequence[str] = ("i", "j")) -> str:
    """Where an element of matrix `b` of a stack lies."""
    lead = len(buffer.shape) - len(matrix)
    terms, rest = [], "b"
    for k in reversed(range(lead)):
        at = rest if k == 0 else f"{rest} % {buffer.shape[k]}"
        terms.append(f"({at}) * {buffer.element_strides[k]}LL")
        rest = f"{rest} / {buffer.shape[k]}"
    terms += [f"{at} * {step}LL" for at, step in zip(matrix, buffer.element_strides[lead:])]
    return " + ".join(terms) or "0"


def _solved(writes: Sequence[Buffer], failed: str) -> list[str]:
    (result,) = writes
    stored = _moved("n * m", result.shape[-1], f"out0[{element_place(result)}] = x[e];")
    solved = ["  ji_substitute(a, x, n, m);", f"  {stored}", "} else {", f"  {failed}", "}"]
    return ["if (ji_eliminate(a, x, n, m, &pivot, &is_odd)) {", *solved]


def _solved_again(writes: Sequence[Buffer], failed: str) -> list[str]:
    return _solved(writes, ";")


def _factored(writes: Sequence[Buffer], failed: str) -> list[str]:
    (result,) = writes
    stored = _moved("n * n", result.shape[-1], f"out0[{element_place(result)}] = ji_cholesky_element(a, n, i, j);")
    return ["if (ji_cholesky(a, n)) {", f"  {stored}", "} else {", f"  {failed}", "}"]


def _with_logarithm(writes: Sequence[Buffer], failed: str) -> list[str]:
    return _determinant(
        writes[0], [f"out0[{element_place(writes[0], ())}] = sign;", f"out1[{element_place(writes[1], ())}] = logarithm;"]
    )


def _as_number(writes: Sequence[Buffer], failed: str) -> list[str]:
    """As NumPy has it, which does not overflow on the way."""
    return _determinant(writes[0], [f"out0[{element_place(writes[0], ())}] = sign * ji_exponential(logarithm);"])


def _determinant(result: Buffer, stores: Sequence[str]) -> list[str]:
    kind = number_type(result.dtype)
    infinity = "__int_as_float(0x7f800000)" if kind == "float" else "__longlong_as_double(0x7ff0000000000000LL)"
    return [
        "const bool is_regular = ji_eliminate(a, x, n, m, &pivot, &is_odd);",
        "if (threadIdx.x == 0) {",
        f"  {kind} sign = 0, logarithm = -{infinity};",
        "  if (is_regular) ji_determinant(a, n, is_odd, &sign, &logarithm);",
        *(f"  {store}" for store in stores),
        "}",
    ]


_ROUTINES: Mapping[str, _Factorization] = {
    "cholesky": _Factorization(_factored, "a matrix is not positive definite"),
    "det": _Factorization(_as_number),
    "slogdet": _Factorization(_with_logarithm),
    "solve": _Factorization(_solved, "a matrix is singular"),
    "solve_again": _Factorization(_solved_again),
}
