"""Fourier transforms: how does a GPU do those along axes?  In passes of Stockham's (`fft.cuh`), each for one factor of a length.

Rows whose parts fit into a block's shared memory take all their passes there, a block each, so that they are read and written
once. Others go through memory in each pass, a thread for each transform of a few numbers; neighbours are neighbours there,
whatever the axis. Lengths with a factor above 13 are left to the host.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from math import cos, pi, prod, sin

from jitml.codegen.cuda.calls.plan import LARGEST_GRID, CallPlan, blocks_for
from jitml.codegen.cuda.calls.text import entry, number_type, read, template
from jitml.codegen.cuda.module import Launch
from jitml.codegen.cuda.target import SHARED_BYTES, THREADS
from jitml.ir.types import F32, F64
from jitml.kernels.ir import Buffer
from jitml.kernels.program import Call, KernelProgram, seen_as
from jitml.records import dataclass

_PRIMES = (3, 5, 7, 11, 13)
_SHORTEST = 64  # of the rows that a block is worth
_FAR = 1 << 30  # numbers that 32 bits count with room for a grid's step


@dataclass(frozen=True, slots=True)
class _Numbers:
    """Complex numbers in memory, as functions see them: by their position among those of the transform, in C order.

    Args:
        text: how a number at position `p` is loaded, or `z` is stored there.
        buffers: whose pointers the text has, by their names in it.
    """

    text: str
    buffers: tuple[tuple[str, Buffer], ...]


@dataclass(frozen=True, slots=True)
class _TransformedAxis:
    """What is transformed: n numbers, `inner` elements apart, in each of `outer` stretches of memory."""

    outer: int
    n: int
    inner: int


def radices(n: int) -> list[int] | None:
    """Factors of a length, one for each pass; None if there is one that no pass is for.

    >>> radices(48), radices(1), radices(34)
    ([2, 8, 3], [1], None)
    """
    found: list[int] = []
    for prime in _PRIMES:
        while n % prime == 0:
            found.append(prime)
            n //= prime
    while n % 8 == 0 and n > 8:
        found.append(8)
        n //= 8
    if n not in (1, 2, 4, 8):
        return None
    return [*([n] if n > 1 else []), *found[::-1]] or [1]


def plan_fft(call: Call, program: KernelProgram, name: str) -> CallPlan | None:
    """The work of a `host` call whose function is a transform; None if Python has to do it."""
    routine = call.params["function"].routine
    if routine.name not in ("fft", "rfft", "irfft"):
        return None
    reads = [seen_as(program.buffers[r], shape) for r, shape in zip(call.reads, call.params["shapes"], strict=True)]
    target, p = program.buffers[call.writes[0]], routine.params
    (form,) = routine.parts
    axes = p["axes"] if routine.name == "fft" else (p["axis"],)
    given = reads[0].shape[:-1] if form == "packed" else reads[0].shape
    shape = (*given[: axes[0]], p["n"], *given[axes[0] + 1 :]) if routine.name == "irfft" else given
    if reads[0].dtype not in (F32, F64) or not target.size or any(radices(shape[axis]) is None for axis in axes):
        return None
    planner = _FftPlanner(name, reads, target, form, shape, call)
    return planner.plan(axes, routine.name, sign=1 if routine.name == "irfft" or p.get("inverse") else -1)


class _FftPlanner:
    def __init__(self, name: str, reads: Sequence[Buffer], target: Buffer, form: str, shape: tuple[int, ...], call: Call) -> None:
        self.name, self.reads, self.target, self.form, self.shape, self.call = name, reads, target, form, shape, call
        self.dtype = target.dtype
        self.kind, self.count = number_type(self.dtype), prod(shape)
        self.index = "int" if max(self.count, *(b.reach for b in (*reads, target))) < _FAR else "long long"
        self.scratch = tuple(Buffer(f"{name}_{k}", self.dtype, (2 * self.count,)) for k in range(2))
        self.functions: list[str] = []
        self.work: list[Launch] = []

    def plan(self, axes: Sequence[int], what: str, sign: int) -> CallPlan:
        steps = [step for axis in axes for step in self._steps(self._axis(axis), sign)]
        source = self._loaded(axes[0], what == "irfft")
        for number, step in enumerate(steps):
            room = number % 2
            is_last = number == len(steps) - 1
            step(source, self._stored(axes[-1], what) if is_last else _Numbers("y[p] = z;", (("y", self.scratch[room]),)))
            source = _Numbers("return x[p];", (("x", self.scratch[room]),))
        texts = (_roots(), template("fft"))
        return CallPlan("\n".join(self.functions), texts, tuple(self.work), self.scratch[: len(steps) - 1])

    def _steps(self, axis: _TransformedAxis, sign: int) -> list[Callable[[_Numbers, _Numbers], None]]:
        """What takes from one side to another, one after the other."""
        factors = radices(axis.n) or []
        if axis.inner == 1 and axis.n > _SHORTEST and 4 * axis.n * self.dtype.itemsize <= SHARED_BYTES:
            return [partial(self._rows, axis, factors, sign)]
        return [partial(self._pass, axis, radix, prod(factors[:k]), sign) for k, radix in enumerate(factors)]

    def _axis(self, axis: int) -> _TransformedAxis:
        return _TransformedAxis(prod(self.shape[:axis]), self.shape[axis], prod(self.shape[axis + 1 :]))

    # -------------------------------------------------------------------------------------------------------- memory

    def _loaded(self, axis: int, is_half: bool) -> _Numbers:
        """How the operand is read; of the first half of a transform of real numbers, the other half is made."""
        half = self._axis(axis)
        lines: list[str] = []
        position = "p"
        # NumPy does not look at the imaginary part of what has no partner. Here it counts for imaginary parts alone, which are
        # not stored: no pass multiplies it by anything but 1 and -1, as the even factor of a length comes first.
        if is_half:
            lines = self._split(half, self.index)
            lines += [f"const bool is_first = k <= {half.n // 2};"]
            position = f"((o * {half.n // 2 + 1} + (is_first ? k : {half.n} - k)) * {half.inner} + i)"
        first = self.reads[0]
        place = self._place(first, position, 1 if self.form == "packed" else 0)
        lines.append(f"const {self.index} at = {place};")
        buffers: tuple[tuple[str, Buffer], ...]
        if self.form == "real":
            number, buffers = "x[at], 0", (("x", first),)
        elif self.form == "packed":
            number, buffers = f"x[at], x[at + {first.element_strides[-1]}]", (("x", first),)
        else:
            number, buffers = f"x[at], w[{self._place(self.reads[1], position, 0)}]", (("x", first), ("w", self.reads[1]))
        if is_half:
            re, im = number.split(", ", 1)
            number = f"{re}, is_first ? {im} : -{im}"
        lines.append(f"return ji_complex<{self.kind}>{{{number}}};")
        return _Numbers(" ".join(lines), buffers)

    def _stored(self, axis: int, what: str) -> _Numbers:
        """How the result is written: of a transform of real numbers, the first half; of real results, the real parts."""
        half, lines, position = self._axis(axis), list[str](), "p"
        if what == "rfft":
            lines = [*self._split(half, self.index), f"if (k > {half.n // 2}) return;"]
            position = f"((o * {half.n // 2 + 1} + k) * {half.inner} + i)"
        place = self._place(self.target, position, 0 if what == "irfft" else 1)
        lines += [f"const {self.index} at = {place};", "y[at] = z.re;"]
        if what != "irfft":
            lines.append(f"y[at + {self.target.element_strides[-1]}] = z.im;")
        return _Numbers(" ".join(lines), (("y", self.target),))

    @staticmethod
    def _split(axis: _TransformedAxis, index: str) -> list[str]:
        """The position as that along the axis, outside of it and inside."""
        return [f"const {index} i = p % {axis.inner}, k = p / {axis.inner} % {axis.n}, o = p / {axis.inner * axis.n};"]

    @staticmethod
    def _place(buffer: Buffer, position: str, last: int) -> str:
        """Where in memory the element at a position is, but for the `last` axes."""
        shape, steps = buffer.shape[: len(buffer.shape) - last], buffer.element_strides[: len(buffer.shape) - last]
        if buffer.is_c_contiguous:
            return position if not last else f"{position} * {prod(buffer.shape[-last:])}"
        terms, after = [], 1
        for n, step in zip(reversed(shape), reversed(steps)):
            if n > 1:
                terms.append(f"{position} / {after} % {n} * {step}")
            after *= n
        return " + ".join(terms) or "0"

    # ------------------------------------------------------------------------------------------------------ functions

    def _launch(self, blocks: int, source: _Numbers, target: _Numbers, body: Sequence[str], what: str) -> None:
        name = f"{self.name}_{len(self.work)}"
        pairs = [*target.buffers, *source.buffers]
        whole = {b.name for b in self.scratch}
        types = [f"ji_complex<{self.kind}>" if b.name in whole else self.kind for _, b in pairs]
        written = [f"{types[0]}* __restrict__ y"]
        parameters = [*written, *(read(kind, x) for kind, (x, _) in zip(types[1:], pairs[1:]))]
        sides = [
            f"const auto load = [=]({self.index} p) {{ {source.text} }};",
            f"const auto store = [=]({self.index} p, ji_complex<{self.kind}> z) {{ {target.text} }};",
        ]
        self.functions.append(entry(name, parameters, [*sides, *body], f"{self.call.writes[0]}: {what}"))
        self.work.append(Launch(name, blocks, THREADS, 0, tuple(b.name for _, b in pairs)))

    def _pass(self, axis: _TransformedAxis, radix: int, run: int, sign: int, source: _Numbers, target: _Numbers) -> None:
        """One pass over all, a thread for each transform of `radix` numbers."""
        index, each, inner = self.index, axis.n // radix, axis.inner
        total = axis.outer * each * inner
        body = [
            f"constexpr {index} threads = {THREADS}, total = {total};",
            f"for ({index} e = blockIdx.x * threads + threadIdx.x; e < total; e += gridDim.x * threads) {{",
            f"  const {index} i = e % {inner}, j = e / {inner} % {each}, start = e / {inner * each} * {axis.n * inner} + i;",
            f"  ji_fft_step<{self.kind}, {radix}, {index}>(j, {each}, {run}, {sign},",
            f"    [=]({index} k) {{ return load(start + k * {inner}); }},",
            f"    [=]({index} k, ji_complex<{self.kind}> z) {{ store(start + k * {inner}, z); }});",
            "}",
        ]
        what = f"{radix} of {axis.n} numbers, after {run}, along {'rows' if inner == 1 else f'steps of {inner}'}"
        self._launch(blocks_for(total, THREADS, LARGEST_GRID), source, target, body, what)

    def _rows(self, axis: _TransformedAxis, steps: Sequence[int], sign: int, source: _Numbers, target: _Numbers) -> None:
        """All passes of each row, by a block that keeps the row in shared memory."""
        n, index, kind = axis.n, self.index, f"ji_complex<{self.kind}>"
        body = [
            f"__shared__ {kind} parts[2][{n}];",
            "#pragma unroll 1",
            f"for ({index} o = blockIdx.x; o < {axis.outer}; o += gridDim.x) {{",
        ]
        run = 1
        for at, radix in enumerate(steps):
            here, there = f"parts[{(at + 1) % 2}][k]", f"parts[{at % 2}][k]"
            load = f"load(o * {n} + k)" if at == 0 else here
            store = f"store(o * {n} + k, z);" if at == len(steps) - 1 else f"{there} = z;"
            body += [
                "#pragma unroll 1",
                f"  for (int j = threadIdx.x; j < {n // radix}; j += {THREADS}) {{",
                f"    ji_fft_step<{self.kind}, {radix}, int>(j, {n // radix}, {run}, {sign},",
                f"      [&](int k) {{ return {load}; }}, [&](int k, {kind} z) {{ {store} }});",
                "  }",
                "  __syncthreads();",
            ]
            run *= radix
        body.append("}")
        self._launch(min(axis.outer, LARGEST_GRID), source, target, body, f"rows of {n} numbers")


def _roots() -> str:
    """Functions of the roots of one that primes have."""
    functions = []
    for name, turn in (("cosine", _cosine), ("sine", _sine)):
        lines = [f"template <int R> __device__ constexpr double ji_{name}(int k) {{"]
        for prime in _PRIMES:
            values = " : ".join(f"k == {k} ? {turn(k, prime)!r}" for k in range(1, prime))
            lines.append(f"  if (R == {prime}) return {values} : {turn(0, prime)!r};")
        functions += [*lines, "  return 0;", "}", ""]
    return "\n".join(functions)


def _cosine(k: int, n: int) -> float:
    """cos(2 pi k / n), of an angle of up to an eighth of a turn: what pi is rounded by counts least there."""
    k = min(k, n - k)
    if 8 * k <= n:
        return cos(2 * pi * k / n)
    return sin(pi * (n - 4 * k) / (2 * n)) if 8 * k <= 3 * n else -cos(pi * (n - 2 * k) / n)


def _sine(k: int, n: int) -> float:
    return _cosine((4 * k - n) % (4 * n), 4 * n)
