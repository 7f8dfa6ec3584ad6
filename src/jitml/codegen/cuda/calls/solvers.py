"""Factorizations by cuSOLVER: what is the library asked for, for each routine of `np.linalg`, and what do we do around that?

A first function copies the matrices to scratch memory, column by column, as the library wants them. A last one stores the
results. If the library has found none, a check fails: then the plain function answers, with NumPy's error. Iterations (`eigh`,
`svd`) are given finite numbers alone; what to make of others the plain function knows. Where the library is not installed, Python
does the work on the host. Signs of eigenvectors and of singular vectors are the library's choice.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from ctypes import c_byte, c_int, c_int64, c_void_p
from functools import partial
from math import prod
from typing import Any

from jitml.codegen.cuda.calls.linalg import element_place
from jitml.codegen.cuda.calls.plan import LibraryCall, LibraryWork, blocks_for
from jitml.codegen.cuda.calls.text import entry, number_type, read, template
from jitml.codegen.cuda.libraries.cusolver import (
    AS_IT_IS,
    LOWER,
    UPPER,
    WITH_VECTORS,
    WITHOUT_VECTORS,
    MatrixPlace,
    NumberKind,
    SolverCall,
    SolverFunction,
)
from jitml.codegen.cuda.module import Launch
from jitml.codegen.cuda.target import THREADS
from jitml.ir.types import F32, F64, I32, I64, DType
from jitml.kernels.ir import Buffer, Check, Const
from jitml.kernels.program import Call, KernelProgram, seen_as
from jitml.records import dataclass, replace

_MOST = 1 << 30  # elements of a stack: the library's limit for stacks of Hermitian matrices
_FEW = 8  # matrices for each of which the library is called, however small they are
_WORTH_A_CALL = 64  # rows and columns of a matrix; smaller ones of a stack are done sooner by the host
_JACOBI = 32  # rows up to which the library does the singular values of a whole stack


@dataclass(frozen=True, slots=True)
class SolverPlan:
    """
    Args:
        source: functions of its own; they need `templates` ahead of them.
        checks: that these may fail.
    """

    work: LibraryWork
    source: str
    templates: tuple[str, ...]
    checks: tuple[Check, ...]


def plan_solver(call: Call, program: KernelProgram, name: str) -> SolverPlan | None:
    """What the library does of a `host` call whose function is a routine; None if that is nothing."""
    routine = call.params["function"].routine
    planner = _ROUTINES.get(routine.name)
    if planner is None:
        return None
    reads = [seen_as(program.buffers[r], shape) for r, shape in zip(call.reads, call.params["shapes"], strict=True)]
    stacks = _stacks_of(reads, routine.parts)
    writes = [program.buffers[w] for w in call.writes]
    first = stacks[0]
    sizes = (first.rows, first.columns, *(x.columns for x in stacks[1:]))
    if first.re.dtype not in (F32, F64) or not first.count or 0 in sizes or not all(w.size for w in writes):
        return None
    work = _SolverWriter(call, name, stacks, writes, routine.params)
    if not planner(work) or work.largest > _MOST:
        return None
    return work.done()


@dataclass(frozen=True, slots=True)
class _Stack:
    """Matrices that a call reads: their real parts, and behind which element of which buffer the imaginary ones are."""

    re: Buffer
    im: Buffer | None = None
    apart: int = 0

    @property
    def rows(self) -> int:
        return self.re.shape[-2]

    @property
    def columns(self) -> int:
        return self.re.shape[-1]

    @property
    def count(self) -> int:
        return prod(self.re.shape[:-2])


def _stacks_of(reads: Sequence[Buffer], parts: Sequence[str]) -> list[_Stack]:
    given, found = iter(reads), list[_Stack]()
    for part in parts:
        first = next(given)
        if part == "packed":
            re = _first_parts(first)
            found.append(_Stack(re, re, first.element_strides[-1]))
        else:
            found.append(_Stack(first, next(given) if part == "apart" else None))
    return found


def _first_parts(packed: Buffer) -> Buffer:
    """The real parts of packed complex numbers."""
    return replace(packed, shape=packed.shape[:-1], strides=packed.element_strides[:-1])


class _SolverWriter:
    """Collects the work of one call.

    Attributes:
        kind: of numbers.
        count: matrices.
        rows, columns: of each.
        failure: what a matrix is that has no result; "" if all have one.
        info: where functions of the library say so.
        largest: elements of the largest piece of scratch memory.
    """

    def __init__(
        self, call: Call, name: str, stacks: Sequence[_Stack], writes: Sequence[Buffer], params: Mapping[str, Any]
    ) -> None:
        self.call, self.name, self.stacks, self.writes, self.params = call, name, stacks, writes, params
        first = stacks[0]
        self.kind = NumberKind(first.re.dtype, first.im is not None)
        self.count, self.rows, self.columns = first.count, first.rows, first.columns
        self.failure, self.largest = "", 0
        self._steps: list[Launch | LibraryCall] = []
        self._scratch: dict[str, Buffer] = {}
        self._texts: list[str] = []
        self._stores: list[str] = []
        self._items = 0  # that stores go through at most
        self._pointers: dict[str, str] = {}  # declarations of those that stores need, and their buffers
        self._type, self._width = number_type(first.re.dtype), 2 if self.kind.is_complex else 1
        self.info = self.scratch("info", I32, 1)

    @property
    def is_many(self) -> bool:
        """Whether there are too many small matrices to call the library for each."""
        return self.count > _FEW and min(self.rows, self.columns) < _WORTH_A_CALL

    def done(self) -> SolverPlan:
        self.flush()
        source = self.call.sources[0] if self.call.sources else None
        check = Check(Const(False), "ValueError", f"np.linalg: {self.failure}", (), source)
        work = LibraryWork(tuple(self._steps), tuple(self._scratch.values()))
        return SolverPlan(work, "".join(self._texts), (template("solver"),), (check,) if self.failure else ())

    def scratch(self, word: str, dtype: DType, each: int) -> MatrixPlace:
        """Memory for so many elements of each matrix."""
        self._scratch[word] = buffer = Buffer(f"{self.name}_{word}", dtype, (self.count, each))
        self.largest = max(self.largest, buffer.size)
        return MatrixPlace(len(self._scratch) - 1, each * dtype.itemsize)

    def numbers(self, word: str, each: int) -> MatrixPlace:
        return self.scratch(word, self.kind.part, each * self._width)

    def ask(self, *functions: SolverFunction) -> None:
        """The library does this next. All buffers that it sees are scratch memory."""
        self.flush()
        self._steps.append(SolverCall(tuple(b.name for b in self._scratch.values()), self.kind, functions, self.count))

    def copy(self, word: str, stack: _Stack, *, is_turned: bool = False, half: str = "", must_be_finite: bool = False) -> None:
        """Copy matrices, column by column.

        Args:
            is_turned: copy their transposes.
            half: `>=` or `<=`, if only what is below the diagonal counts, or above: elsewhere zeros are written, and the diagonal
                is real.
            must_be_finite: the check fails else. Zeros take the place of what is not, and of all that an earlier failure left.
        """
        to, kind = self._scratch[word], self._type
        rows, columns = (stack.columns, stack.rows) if is_turned else (stack.rows, stack.columns)
        parameters, buffers = [f"{kind}* y", read(kind, "x")], [to.name, stack.re.name]
        apart = f" + {stack.apart}" if stack.apart else ""
        parts = [f"{kind} re = x[at];"]
        if stack.im is not None:
            there = element_place(stack.im) if stack.im is not stack.re else "at"
            if stack.im is not stack.re:
                parameters.append(read(kind, "w"))
                buffers.append(stack.im.name)
            parts.append(f"{kind} im = {'w' if stack.im is not stack.re else 'x'}[{there}{apart}];")
        names = ["re", "im"] if stack.im is not None else ["re"]
        if half:
            parts.append(f"if (!(i {half} j)) {' = '.join(names)} = 0;")
            parts += ["if (i == j) im = 0;"] if stack.im is not None else []
        if must_be_finite:
            parts.append(f"if (!({' && '.join(f'{x} - {x} == 0' for x in names)})) ji_note(error, {self.name}_check);")
            parts.append(f"if (*error) {' = '.join(names)} = 0;")
        first = f"{self._width} * p + b * {to.shape[1] - self._width * rows * columns}LL"
        parts += [f"y[{first} + {k}] = {x};" for k, x in enumerate(names)]
        head = [f"const long long at = {element_place(stack.re)};"]
        parameters += ["long long* error"] if must_be_finite else []
        entry_name = f"{self.name}_copy_{word}"
        lines = _over(self.count, rows, columns, [*head, *parts], first=("j", "i") if is_turned else ("i", "j"))
        self._launch(entry_name, parameters, buffers, lines, self.count * rows * columns, has_error=must_be_finite)

    def fail_by(self, what: str) -> None:
        """The check fails where the library has found no result."""
        self.failure = what
        line = f"for (int b = threadIdx.x; b < {self.count}; b += {THREADS}) if (info[b] > 0) ji_note(error, {self.name}_check);"
        parameters, buffers = [read("int", "info"), "long long* error"], [self._scratch["info"].name]
        self._launch(f"{self.name}_look", parameters, buffers, ["if (*error) return;", line], 1, has_error=True)

    def store(
        self, out: Buffer, word: str, leading: int, *, is_turned: bool = False, is_conjugate: bool = False, half: str = ""
    ) -> None:
        """Store a result, whose element (i, j) lies in column j of what the library has left.

        Args:
            leading: numbers from one column to the next.
            is_turned: it is in column i.
            half: as in `copy`: zeros are stored elsewhere.
        """
        numbers = _first_parts(out) if self.kind.is_complex else out
        rows, columns = numbers.shape[-2:]
        at = f"b * {self._scratch[word].shape[1]}LL + {self._width} * ({'j' if is_turned else 'i'} + "
        at += f"{'i' if is_turned else 'j'} * {leading}LL)"
        to, source = self._pointer(out, is_written=True), self._pointer(self._scratch[word])
        lines = [f"const long long from = {at}, to = {element_place(numbers)};"]
        zero = f"!(i {half} j) ? 0 : " if half else ""
        lines.append(f"{to}[to] = {zero}{source}[from];")
        if self.kind.is_complex:
            lines.append(f"{to}[to + {out.element_strides[-1]}] = {zero}{'-' if is_conjugate else ''}{source}[from + 1];")
        self._store(rows, columns, lines)

    def store_numbers(self, out: Buffer, word: str) -> None:
        """Store real numbers, a row for each matrix."""
        n = out.shape[-1]
        to, source = self._pointer(out, is_written=True), self._pointer(self._scratch[word])
        self._store(n, 1, [f"{to}[{element_place(out, ('i',))}] = {source}[b * {n}LL + i];"])

    def store_determinants(self, n: int, stores: Callable[[Callable[[Buffer], str]], Sequence[str]]) -> None:
        """Store what is made of `re`, `im` and `logarithm` of each matrix by one block.

        Args:
            stores: statements, given what has the pointer of a result.
        """
        kind, a, rows, info = self._type, *(self._pointer(self._scratch[word]) for word in ("a", "rows", "info"))
        each = self._scratch["a"].shape[1]
        lines = [
            f"__shared__ {kind} parts[3][{THREADS}];",
            f"for (long long b = blockIdx.x; b < {self.count}; b += gridDim.x) {{",
            f"  {kind} re, im, logarithm;",
            f"  ji_triangle<{kind}, {self._width}, {THREADS}>(parts, {a} + b * {each}LL, {self._width * (n + 1)}LL,",
            f"      {rows} + b * {n}LL, {n}, &re, &im, &logarithm);",
            f"  if ({info}[b] > 0) re = im = 0, logarithm = -ji_endless(re);",
            "  if (threadIdx.x == 0) {",
            *(f"    {line}" for line in stores(lambda out: self._pointer(out, is_written=True))),
            "  }",
            "}",
        ]
        self._stores += lines
        self._items = max(self._items, self.count * THREADS)

    def _store(self, rows: int, columns: int, lines: Sequence[str]) -> None:
        self._stores += _over(self.count, rows, columns, lines)
        self._items = max(self._items, self.count * rows * columns)

    def flush(self) -> None:
        """Launch what stores have been asked for, before the library writes to what they read."""
        if self._stores:
            number = len(self._steps)
            parameters, buffers = list(self._pointers), list(self._pointers.values())
            self._launch(f"{self.name}_store_{number}", parameters, buffers, self._stores, self._items)
            self._stores, self._pointers, self._items = [], {}, 0

    def _pointer(self, buffer: Buffer, *, is_written: bool = False) -> str:
        """The name of a parameter of the function that stores."""
        for declared, name in self._pointers.items():
            if name == buffer.name:
                return declared.split()[-1]
        word, kind = f"p{len(self._pointers)}", number_type(buffer.dtype)
        self._pointers[f"{kind}* {word}" if is_written else read(kind, word)] = buffer.name
        return word

    def _launch(
        self,
        symbol: str,
        parameters: Sequence[str],
        buffers: Sequence[str],
        lines: Sequence[str],
        items: int,
        *,
        has_error: bool = False,
    ) -> None:
        writes, reads = ", ".join(self.call.writes), ", ".join(self.call.reads)
        comment = f"{writes} = {self.call.params['function'].routine.name}({reads}), around the library's work"
        self._texts.append(entry(symbol, parameters, lines, comment))
        self._steps.append(Launch(symbol, blocks_for(items), THREADS, 0, tuple(buffers), has_error))


def _over(count: int, rows: int, columns: int, lines: Sequence[str], first: tuple[str, str] = ("i", "j")) -> list[str]:
    """Statements for each element of matrices, column by column; `p` is its place in all of them.

    Args:
        first: the names of its row and its column.
    """
    i, j = first
    step = f"gridDim.x * {THREADS}LL"
    return [
        f"for (long long p = blockIdx.x * {THREADS}LL + threadIdx.x; p < {count * rows * columns}LL; p += {step}) {{",
        f"  const long long b = p / {rows * columns}, {i} = p % {rows}, {j} = p / {rows} % {columns};",
        *(f"  {line}" for line in lines),
        "}",
    ]


# -------------------------------------------------------------------------------------------------------------- routines


def _eigh(w: _SolverWriter) -> bool:
    n, is_lower, has_vectors = w.rows, w.params["lower"], len(w.writes) == 2
    a, values = w.numbers("a", n * n), w.scratch("values", w.kind.part, n)
    w.copy("a", w.stacks[0], half=">=" if is_lower else "<=", must_be_finite=True)
    mode, half, size = WITH_VECTORS if has_vectors else WITHOUT_VECTORS, LOWER if is_lower else UPPER, c_int64(n)
    arguments = (mode, half, size, w.kind.code, a, size, w.kind.code_of_parts, values, w.kind.code)
    stack = w.count if w.count > 1 else 0
    w.ask(SolverFunction("XsyevBatched" if stack else "Xsyevd", arguments, w.info, stack=stack))
    w.fail_by("eigenvalues did not converge")
    w.store_numbers(w.writes[0], "values")
    if has_vectors:
        w.store(w.writes[1], "a", n)
    return True


def _svd(w: _SolverWriter) -> bool:
    """The library wants as many rows as columns, at least: else it gets the transpose, whose vectors change sides."""
    is_turned, has_vectors = w.rows < w.columns, len(w.writes) == 3
    rows, columns = max(w.rows, w.columns), min(w.rows, w.columns)
    is_jacobi = w.count > 1 and rows <= _JACOBI
    if w.is_many and not is_jacobi:
        return False
    is_full = has_vectors and (w.params["full"] or is_jacobi)
    a, values = w.numbers("a", rows * columns), w.scratch("values", w.kind.part, columns)
    left = w.numbers("left", rows * (rows if is_full else columns)) if has_vectors or is_jacobi else _NOTHING
    right = w.numbers("right", columns * columns) if has_vectors or is_jacobi else _NOTHING
    w.copy("a", w.stacks[0], is_turned=is_turned, must_be_finite=True)
    if is_jacobi:
        mode, m, n = WITH_VECTORS if has_vectors else WITHOUT_VECTORS, c_int(rows), c_int(columns)
        arguments: tuple[Any, ...] = (mode, m, n, a, m, values, left, m, right, n)
        w.ask(SolverFunction(f"{w.kind.letter}gesvdjBatched", arguments, w.info, "typed", w.count))
    else:
        job = c_byte(ord("N" if not has_vectors else "A" if is_full else "S"))
        size, least, kind = c_int64(rows), c_int64(columns), w.kind.code
        of_values = (w.kind.code_of_parts, values)
        arguments = (job, job, size, least, kind, a, size, *of_values, kind, left, size, kind, right, least, kind)
        w.ask(SolverFunction("Xgesvd", arguments, w.info))
    w.fail_by("singular values did not converge")
    if not has_vectors:
        w.store_numbers(w.writes[0], "values")
        return True
    u, s, vh = w.writes
    w.store_numbers(s, "values")
    # Jacobi's method gives right vectors as columns, and the other one their adjoints, which are rows.
    far, near = (vh, u) if is_turned else (u, vh)
    w.store(far, "left", rows, is_turned=is_turned)
    w.store(near, "right", columns, is_turned=is_turned != is_jacobi, is_conjugate=is_jacobi)
    return True


def _qr(w: _SolverWriter) -> bool:
    if w.is_many:
        return False
    q, r = w.writes
    m, n, least = w.rows, w.columns, min(w.rows, w.columns)
    width = m if w.params["complete"] else least  # of q
    a, tau = w.numbers("a", m * max(n, width)), w.numbers("tau", least)
    w.copy("a", w.stacks[0])
    rows, kind = c_int64(m), w.kind.code
    w.ask(SolverFunction("Xgeqrf", (rows, c_int64(n), kind, a, rows, kind, tau, kind), w.info))
    w.store(r, "a", m, half="<=")
    generate = "ungqr" if w.kind.is_complex else "orgqr"
    arguments = (c_int(m), c_int(width), c_int(least), a, c_int(m), tau)
    w.ask(SolverFunction(f"{w.kind.letter}{generate}", arguments, w.info, "typed"))
    w.store(q, "a", m)
    return True


def _eliminated(w: _SolverWriter) -> tuple[MatrixPlace, MatrixPlace]:
    """Matrices as products of triangles, and their rows as they have changed places."""
    n = w.rows
    a, rows = w.numbers("a", n * n), w.scratch("rows", I64, n)
    w.copy("a", w.stacks[0])
    size, kind = c_int64(n), w.kind.code
    arguments = (size, size, kind, a, size, replace(rows, is_sized=False), kind)
    w.ask(SolverFunction("Xgetrf", arguments, w.info))
    return a, rows


def _solve(w: _SolverWriter, *, may_fail: bool = True) -> bool:
    if w.is_many:
        return False
    n, right = w.rows, w.stacks[1]
    a, rows = _eliminated(w)
    x, rest = w.numbers("x", n * right.columns), w.scratch("rest", I32, 1)
    if may_fail:
        w.fail_by("a matrix is singular")
    w.copy("x", right)
    size, kind = c_int64(n), w.kind.code
    arguments = (AS_IT_IS, size, c_int64(right.columns), kind, a, size, rows, kind, x, size)
    w.ask(SolverFunction("Xgetrs", arguments, rest, "plain"))
    w.store(w.writes[0], "x", n)
    return True


def _cholesky(w: _SolverWriter) -> bool:
    if w.is_many:
        return False
    n = w.rows
    a = w.numbers("a", n * n)
    w.copy("a", w.stacks[0], half=">=")
    size, kind = c_int64(n), w.kind.code
    w.ask(SolverFunction("Xpotrf", (LOWER, size, kind, a, size, kind), w.info))
    w.fail_by("a matrix is not positive definite")
    w.store(w.writes[0], "a", n, half=">=")
    return True


def _determinant(w: _SolverWriter, *, is_split: bool) -> bool:
    if w.is_many:
        return False
    _eliminated(w)
    first, is_complex = w.writes[0], w.kind.is_complex
    sign = _first_parts(first) if is_complex else first

    def stores(pointer: Callable[[Buffer], str]) -> list[str]:
        factor = "" if is_split else " * ji_exponential_of(logarithm)"
        lines = [f"{pointer(first)}[{element_place(sign, ())}] = re{factor};"]
        if is_complex:
            lines.append(f"{pointer(first)}[{element_place(sign, ())} + {first.element_strides[-1]}] = im{factor};")
        if is_split:
            lines.append(f"{pointer(w.writes[1])}[{element_place(w.writes[1], ())}] = logarithm;")
        return lines

    w.store_determinants(w.rows, stores)
    return True


_NOTHING = c_void_p()  # in place of vectors that are not wanted

_ROUTINES: Mapping[str, Callable[[_SolverWriter], bool]] = {
    "cholesky": _cholesky,
    "det": partial(_determinant, is_split=False),
    "eigh": _eigh,
    "eigvalsh": _eigh,
    "qr": _qr,
    "slogdet": partial(_determinant, is_split=True),
    "solve": _solve,
    "solve_again": partial(_solve, may_fail=False),
    "svd": _svd,
    "svdvals": _svd,
}
