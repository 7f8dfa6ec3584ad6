"""The kernel verifier: what it accepts, and each thing it refuses, with its message."""

from __future__ import annotations

import pytest

from jitml.errors import VerificationError
from jitml.ir.types import F64, I64
from jitml.kernels.ir import Apply, Const, Kernel, Let
from jitml.kernels.text.parser import parse
from jitml.kernels.text.program_parser import parse_program
from jitml.kernels.verify.kernel import verify
from jitml.kernels.verify.program import verify_program
from support.kernel_texts import BLOCK_KERNELS, KERNELS, PROGRAM

pytestmark = pytest.mark.every_row

XY = "kernel k(x: f64[8], y: f64[8]) "
MATRIX = "kernel k(x: f64[4, 6], y: f64[4, 6]) "


@pytest.mark.parametrize("text", [*KERNELS.values(), *BLOCK_KERNELS.values()], ids=[*KERNELS, *BLOCK_KERNELS])
def test_valid(text: str) -> None:
    verify(parse(text))


ACCEPTED = {
    "triangular limits": MATRIX + "{ for i in 0:4 { for j in i:6 { y[i, j] = x[i, j - i] } } }",
    "tile scratch": XY + "{ for t in 0:8:4 { alloc s: f64[4] { for i in t:minimum(t + 4, 8) { s[i - t] = x[i] } } } }",
    "an index behind a comparison of what does not wrap around": "kernel k(n: i64[], y: f64[8]) {"
    " let k: i64 = n[]; check abs(f64(k) * 2.0) <= 4.0e18, OverflowError, 'no';"
    " if bit_and(k >= 0, k * 2 < 10) { y[k] = 0.0 } else { } }",
    "an index by the remainder of a number": "kernel k(n: i64[4], m: i64[], x: f64[8], y: f64[4]) { for i in 0:4 {"
    " let d: i64 = minimum(maximum(m[], 1), 8); y[i] = x[n[i] % d] } }",
    "a number without a sign that is small": "kernel k(n: i64[4], m: i64[], y: f64[8]) { for i in 0:4 {"
    " let k: i64 = n[i]; let e: i64 = minimum(maximum(m[], 0), 8); if u64(k) < u64(e) { y[k] = 0.0 } else { } } }",
    "a clamped index": "kernel k(n: i64[], x: f64[8], y: f64[8]) { y[0] = x[minimum(maximum(n[], 0), 7)] }",
    "a narrow index": "kernel k(n: u8[], x: f64[256], y: f64[8]) { y[0] = x[i64(n[])] }",
    "an index by remainder": "kernel k(n: i64[], x: f64[8], y: f64[8]) { y[0] = x[n[] % 8] }",
    "a branch": XY + "{ for i in 0:20 { if bit_and(i >= 5, i < 13) { y[i - 5] = 0.0 } else { } } }",
    "the other branch": XY + "{ for i in 0:20 { if bit_or(i < 5, i >= 13) { } else { y[i - 5] = 0.0 } } }",
    "quotients of two loops": XY
    + "{ for i in 1:8 { for j in 0:3 { y[i] = select(i % 3 == 1, x[(i - 1) // 3 * 2 + j // 2], 0.0) } } }",
    "rows turned around": XY + "{ for i in 0:8 { y[i] = x[i // 4 * 4 + (3 - i % 4)] } }",
    "an empty loop": "kernel k(x: f64[0], y: f64[1]) { for i in 0:0 { y[0] = x[3 - i] } }",
    "rows in parallel, columns in vectors": MATRIX + "{ for i in 0:4 parallel { for j in 0:6 vector { y[i, j] = x[i, j] } } }",
    "columns in vectors, rows inside": MATRIX + "{ for j in 0:6 vector { for i in 0:4 { y[i, j] = x[i, j] } } }",
    "blocks of a flat array": "kernel k(y: f64[24]) { for i in 0:4 parallel { for j in 0:6 { y[i * 6 + j] = 0.0 } } }",
    "tiles of rows, the last one narrower": "kernel k(y: f64[20]) { for c in 0:10:8 parallel {"
    " for i in 0:2 { for j in c:minimum(c + 8, 10) vector { y[i * 10 + j] = 0.0 } } } }",
    "two halves": XY + "{ for i in 0:4 vector { y[i] = x[i]; y[i + 4] = x[i] } }",
    "pairs of rows": "kernel k(y: f64[24]) "
    + "{ for i in 0:3 { for j in 0:4 vector { y[i * 8 + j] = 0.0; y[i * 8 + j + 4] = 1.0 } } }",
    "read and written at one place": XY + "{ for i in 0:8 vector { y[i] = y[i] + x[i] } }",
    "a reduction": "kernel k(x: f64[8], y: f64[]) { cell s: f64 = 0.0; for i in 0:8 parallel { s add= x[i] }; y[] = s }",
    "while a counter rises to a limit": XY + "{ cell k: i64 = 0; while k < 8 { y[k] = x[k]; let n: i64 = k + 1; k = n } }",
    "while a counter falls, with a name in the test": XY
    + "{ cell k: i64 = 8; while { let n: i64 = k - 1 } n >= 0 { y[n] = x[n]; k = n } }",
    "vectors at a place that the loop around looks up": "kernel k(n: i64[3], y: f64[8]) { for i in 0:3 {"
    " let p: i64 = minimum(maximum(n[i], 0), 4); for j in 0:4 vector { y[p + j] = y[p + j] * 2.0 } } }",
    "as many as there are, or none": "kernel k(a: i64[2], y: f64[8]) { let p: i64 = minimum(maximum(a[0], 0), 8)"
    " let n: i64 = maximum(minimum(maximum(a[1], 0), 8) - p, 0); for i in 0:n { y[p + i] = 0.0 } }",
    "as many as there are, if not too many": "kernel k(a: i64[2], y: f64[8]) { let p: i64 = minimum(maximum(a[0], 0), 8)"
    " let n: i64 = minimum(maximum(minimum(maximum(a[1], 0), 8) - p, 0), 7); for i in 0:n { y[p + i] = 0.0 } }",
    "a walk back by steps that branches choose": XY + "{ cell k: i64 = 8; while k > 0 {"
    " cell n: i64 = 0; if x[k - 1] > 0.0 { n = k - 1 } else { let m: i64 = k - 2; n = m }; y[k - 1] = 0.0; k = n } }",
    "quotients of quotients, turned around": "kernel k(y: f64[24]) "
    "{ for i in 0:24 { y[((1 - i // 4 // 3) * 3 + i // 4 % 3) * 4 + i % 4] = 0.0 } }",
    "a choice that only one branch can make": XY
    + "{ let t: bool = x[0] > 0.0; for i in 0:20 { if select(t, bit_not(t), i < 8) { y[i] = 0.0 } else { } } }",
    "a choice that only one branch can deny": XY
    + "{ for i in 0:20 { if select(i >= 8, i >= 8, x[0] > 0.0) { } else { y[i] = 0.0 } } }",
    "a choice that is known": XY + "{ for i in 0:4 { let a: i64 = neg(0); y[i + select(a < 0, 8, a)] = 0.0 } }",
    "an unsigned number that fits": "kernel k(n: u64[], y: f64[8]) { let r: u64 = n[] % 8_u64; y[i64(r)] = 0.0 }",
    "twice as many as a window has": "kernel k(x: f64[8], y: f64[16]) { for i in 0:8 {"
    " let n: i64 = maximum(minimum(i + 2, 8) - i, 0); for j in 0:n * 2 { y[j] = x[i + j // 2] } } }",
    "a window turned around": "kernel k(n: i64[], p: i64[], x: f64[8], y: f64[3]) {"
    " let m: i64 = minimum(maximum(n[], 0), 3); let v: i64 = p[]; for i in 0:m { y[i] = x[m - 1 - i + v] } }",
    "the greater of two, beside what bounds either": "kernel k(n: i64[], x: f64[7], y: f64[6]) { for i in 0:6 {"
    " let t: i64 = maximum(minimum(n[], i), 0); y[i] = x[6 - i + t] } }",
    "less the smaller of two, beside what bounds either": "kernel k(n: i64[], x: f64[7], y: f64[6]) { for i in 0:6 {"
    " let t: i64 = minimum(maximum(n[], 0 - i), 0); y[i] = x[6 - i - t] } }",
    "blocks in blocks, threads in them": MATRIX + "{ for i in 0:4 block { for b in 0:6:3 block { for j in b:b + 3 thread {"
    " y[i, j] = x[i, j] } } } }",
    "threads of one block": "kernel k(x: f64[8], y: f64[]) { cell s: f64 = 0.0; for i in 0:8 thread { s add= x[i] }; y[] = s }",
    "threads that pass on what is in shared memory": MATRIX + "{ for i in 0:4 block { alloc r: f64[6] {"
    " for j in 0:6 thread { r[j] = x[i, j] }; for j in 0:6 thread { y[i, j] = r[5 - j] } } } }",
    "threads in pieces of a row": MATRIX + "{ for i in 0:4 block { for b in 0:6:3 {"
    " for j in b:b + 3 thread { y[i, j] = 0.0 } } } }",
    "one loop over rows and pieces of columns": "kernel k(y: f64[5, 6]) { for b in 0:15:4 block {"
    " for f in b:minimum(b + 4, 15) thread { let i: i64 = f // 3; let p: i64 = f % 3 * 2; for j in p:p + 2 vector {"
    " y[i, j] = 0.0 } } } }",
    "whole vectors in tiles, of which the last is shorter": "kernel k(y: f64[20]) { for b in 0:20:8 block {"
    " for v in b:minimum(b + 8, 20):4 thread { for i in v:v + 4 vector { y[i] = 0.0 } } } }",
    "siblings may reuse a name": XY + "{ for i in 0:8 { y[i] = 0.0 }; for i in 0:8 { y[i] = x[i] } }",
}


def test_deep_expressions_are_bounded_level_by_level() -> None:
    index = "n[]"
    for _ in range(30):
        index = f"minimum(maximum({index} - 1, 0), 7)"
    verify(parse(f"kernel k(n: i64[], y: f64[8]) {{ y[{index}] = 0.0 }}"))


@pytest.mark.parametrize("name", ACCEPTED)
def test_accepted(name: str) -> None:
    verify(parse(ACCEPTED[name]))


REFUSED = {
    "y: the index i + 1 may be 1..8 on axis 0 of 8": XY + "{ for i in 0:8 { y[i + 1] = 0.0 } }",
    "x: the index i - 1 may be -1..6 on axis 0 of 8": XY + "{ for i in 0:8 { y[i] = select(i > 0, x[i - 1], 0.0) } }",
    "x: the index 6 - i + t may be 2..7 on axis 0 of 7": "kernel k(n: i64[], x: f64[7], y: f64[6]) { for i in 0:6 {"
    " let t: i64 = maximum(minimum(n[], i), 1); y[i] = x[6 - i + t] } }",
    "x: the index n[i] % d may be anything..anything on axis 0 of 8": "kernel k(n: i64[4], m: i64[], x: f64[8], y: f64[4]) {"
    " for i in 0:4 { let d: i64 = minimum(maximum(m[], 0), 8); y[i] = x[n[i] % d] } }",
    "y: the index k may be anything..anything on axis 0 of 8": "kernel k(n: i64[4], m: i64[], y: f64[8]) { for i in 0:4 {"
    " let k: i64 = n[i]; let e: i64 = minimum(m[], 8); if u64(k) < u64(e) { y[k] = 0.0 } else { } } }",
    "y: the index i may be 9..9 on axis 0 of 8": XY + "{ for i in 0:10 { if i < 9 { } else { y[i] = 0.0 } } }",
    "x: the index n[] may be anything..anything on axis 0 of 8": "kernel k(n: i64[], x: f64[8], y: f64[8]) { y[0] = x[n[]] }",
    "x: the index i64(n[] % 4_u32 - m[] % 4_u32) may be 0..4294967295 on axis 0 of 8": "kernel k(n: u32[], m: u32[], x: f64[8],"
    " y: f64[]) { if n[] % 4_u32 >= m[] % 4_u32 { } else { }; y[] = x[i64(n[] % 4_u32 - m[] % 4_u32)] }",
    "x: the index n may be 0..255 on axis 0 of 8": "kernel k(a: u8[], x: f64[8], y: f64[]) {"
    " let n: i64 = i64(a[] + 3_u8); if a[] < 5_u8 { } else { y[] = x[n] } }",
    "x: the index i64(u16(n[])) may be 0..65535 on axis 0 of 200": "kernel k(n: i8[], x: f64[200], y: f64[]) "
    "{ if n[] < 100_i8 { y[] = x[i64(u16(n[]))] } else { } }",
    "y: the index n[] may be 9..9 on axis 0 of 8": "kernel k(n: i64[], y: f64[8]) { n[] = 9; y[n[]] = 0.0 }",
    "y: the index n[i] may be anything..anything on axis 0 of 8": "kernel k(n: i64[4], m: i64[4], y: f64[8]) {"
    " for i in 0:4 { check bit_and(n[i] >= 0, n[i] < 8), IndexError, 'no' }; for i in 0:4 { n[i] = m[i] }"
    " for i in 0:4 { y[n[i]] = 0.0 } }",
    "y: the index s[] may be anything..anything on axis 0 of 8": "kernel k(n: i64[4], m: i64[4], s: i64[], y: f64[8]) {"
    " s[] = n[0] * n[1]; for i in 0:4 { n[i] = m[i] }; for i in 0:4 { check n[i] < 8, IndexError, 'no' }; y[s[]] = 0.0 }",
    "x: the index m - i + v may be anything..anything on axis 0 of 8": "kernel k(n: i64[], p: i64[], x: f64[8], y: f64[3]) {"
    " let m: i64 = minimum(maximum(n[], 0), 3); let v: i64 = p[]; for i in 0:3 { y[i] = x[m - i + v] } }",
    "x has 1 axes but 2 indices": XY + "{ y[0] = x[0, 0] }",
    "i is defined twice": XY + "{ for i in 0:8 { for i in 0:8 { y[i] = 0.0 } } }",
    "the value stored to y, 1, is i64, not f64": XY + "{ y[0] = 1 }",
    "a condition, 1, is i64, not bool": XY + "{ if 1 { y[0] = 1.0 } }",
    "the update of s, 1, is i64, not f64": XY + "{ cell s: f64 = 0.0; s add= 1 }",
    "there is no or of f64": XY + "{ cell s: f64 = 0.0; for i in 0:8 { s or= x[i] } }",
    "y has 1 axes but 2 indices": XY + "{ for i in 3:2 { y[i, 9] = 0.0 } }",
    "no exception is named Foo": XY + "{ check x[0] > 0.0, Foo, 'no' }",
    "jitml_uniform_f64 draws no i32": "kernel k(a: i64[], y: i32[]) { draw d: i32 = jitml_uniform_f64(a[]); y[] = d }",
    "parallel loop over i: the outer cell s is combined in two ways": XY
    + "{ cell s: f64 = 0.0; for i in 0:8 parallel { s add= x[i]; s mul= x[i] } }",
    "the block loop over j stands in what is no block loop": MATRIX + "{ for i in 0:4 { for j in 0:6 block { y[i, j] = 0.0 } } }",
    "the block loop over i stands in what is no block loop": XY + "{ alloc r: f64[8] { for i in 0:8 block { y[i] = x[i] } } }",
    "all blocks of the loop over i combine into s, and share no cells": XY
    + "{ cell s: f64 = 0.0; for i in 0:8 block { s add= x[i] } }",
    "the thread loop over j stands in the thread loop over i": MATRIX
    + "{ for i in 0:4 thread { for j in 0:6 thread { y[i, j] = 0.0 } } }",
    "the thread loop over j stands in the vector loop over i": MATRIX
    + "{ for i in 0:4 vector { for j in 0:6 thread { y[i, j] = 0.0 } } }",
    "threads take the elements of the product s in another order than the loop over i": XY
    + "{ cell s: f64 = 1.0; for i in 0:8 thread { s mul= x[i] } }",
    "the parallel loop over i has threads of its own": MATRIX
    + "{ for i in 0:4 parallel { for j in 0:6 thread { y[i, j] = 0.0 } } }",
    "block loop over i: y is written in one iteration and written in another": XY + "{ for i in 0:8 block { y[0] = x[i] } }",
    "thread loop over i: r is written in one iteration and read in another": XY
    + "{ alloc r: f64[9] { for i in 0:8 thread { r[i] = x[i]; y[i] = r[i + 1] } } }",
    "thread loop over i: the outer cell s is set in order": XY + "{ cell s: f64 = 0.0; for i in 0:8 thread { s = x[i] } }",
    "y: the index i may be 0..19 on axis 0 of 18": "kernel k(y: f64[18]) { for b in 0:18:8 block {"
    " for v in b:minimum(b + 8, 18):4 thread { for i in v:v + 4 vector { y[i] = 0.0 } } } }",
    "block loop over b: y is written in one iteration and written in another": "kernel k(y: f64[5, 6]) {"
    " for b in 0:15:4 block { for f in b:minimum(b + 4, 15) thread {"
    " let i: i64 = f // 4; let j: i64 = f % 3; y[i, j] = 0.0 } } }",
    "q is updated but is no cell in scope": XY + "{ q add= 1 }",
    "the parallel loop over j stands inside the loop over i": MATRIX
    + "{ for i in 0:4 { for j in 0:6 parallel { y[i, j] = 0.0 } } }",
    "the loop over j cannot run in the lanes of i": MATRIX + "{ for i in 0:4 vector { for j in i:6 { y[i, j] = 0.0 } } }",
    "vector loop over i: the outer cell s is set in order": XY + "{ cell s: f64 = 0.0; for i in 0:8 vector { s = x[i] } }",
    "parallel loop over i: the outer cell s is read while it is combined": XY
    + "{ cell s: f64 = 0.0; for i in 0:8 parallel { s add= x[i]; y[i] = s } }",
    "y: the index k may be 7..anything on axis 0 of 8": XY
    + "{ cell k: i64 = 7; if k < 8 { y[k] = 0.0; k = k + 1; y[k] = 0.0 } }",
    "y: the index k may be 0..anything on axis 0 of 8": XY + "{ cell k: i64 = 0; while x[0] > 0.0 { y[k] = 0.0; k = k + 1 } }",
    "y: the index k may be anything..7 on axis 0 of 8": XY
    + "{ cell k: i64 = 0; while k < 8 { y[k] = 0.0; k = k + 4611686018427387904 } }",
    "y: the index select(s, 3, 15) may be 3..15 on axis 0 of 8": XY
    + "{ cell s: bool = x[0] > 0.0; if select(s, 3, 15) < 8 { s = x[1] > 0.0; y[select(s, 3, 15)] = 0.0 } else { } }",
    "y: the index n[] may be 0..anything on axis 0 of 8": "kernel k(n: i64[], y: f64[8]) "
    "{ if bit_and(n[] >= 0, n[] * 2 < 10) { y[n[]] = 0.0 } else { } }",
    "y: the index k may be 0..19 on axis 0 of 10": "kernel k(n: i64[], x: f64[], y: f64[10]) {"
    " let k: i64 = n[] % 20; let c: bool = k >= 10; cell s: bool = false;"
    " if c { s = x[] > 0.0 } else { s = c }; if s { } else { y[k] = 0.0 } }",
    "a while loop cannot run in lanes": XY + "{ for i in 0:8 vector { cell k: i64 = 0; while k < i { k = k + 1 }; y[k] = 0.0 } }",
    "vector loop over p: y is written in one iteration and written in another": "kernel k(n: i64[4], y: f64[8]) {"
    " for p in 0:4 vector { let q: i64 = minimum(maximum(n[p], 0), 4); y[q] = 2.0 } }",
    "vector loop over j: y is written in one iteration and read in another": "kernel k(n: i64[4], y: f64[8]) {"
    " for i in 0:3 { let p: i64 = minimum(maximum(n[i], 0), 4); for j in 0:4 vector { y[p + j] = y[j] } } }",
    "parallel loop over i: y is written in one iteration and written in another": XY
    + "{ for i in 0:8 parallel { y[0] = x[i] } }",
    "parallel loop over i: h is written in one iteration and written in another": "kernel k(x: u8[9], h: i64[256]) "
    "{ for i in 0:9 parallel { h[i64(x[i])] add= 1 } }",
    "vector loop over i: y is written in one iteration and written in another": XY
    + "{ for i in 0:8 vector { y[i // 2] = x[i] } }",
    "vector loop over i: y is written in one iteration and read in another": XY + "{ for i in 0:7 vector { y[i + 1] = y[i] } }",
    "parallel loop over i: y is written in one iteration and read in another": MATRIX
    + "{ for i in 0:4 parallel { for j in 0:6 { y[i, j] = y[0, j] } } }",
    "parallel loop over c: y is written in one iteration and written in another": "kernel k(y: f64[20]) {"
    " for c in 0:10:8 parallel { for i in 0:2 { for j in c:minimum(c + 8, 10) vector { y[i * 9 + j] = 0.0 } } } }",
    "parallel loop over t: y is written in one iteration and written in another": "kernel k(y: f64[20]) {"
    " for t in 0:8:4 parallel { for i in 0:2 { for j in t:minimum(t + 5, 10) { y[i * 10 + j] = 0.0 } } } }",
    "vector loop over j: y is written in one iteration and written in another": XY
    + "{ for i in 0:8 { for j in 0:4 vector { y[i] add= x[j] } } }",
}


@pytest.mark.parametrize("message", REFUSED)
def test_refused(message: str) -> None:
    with pytest.raises(VerificationError) as error:
        verify(parse(REFUSED[message]))
    assert error.value.message == f"kernel k: {message}"


def test_dtypes_are_confirmed_by_the_ops_own_rules() -> None:
    kernel = Kernel("k", (), (Let("v", Apply("add", (Const(1.0, F64), Const(1.0, F64)), I64)),))
    with pytest.raises(VerificationError, match=r"1\.0 \+ 1\.0 is f64\[\], not i64"):
        verify(kernel)


def test_a_check_in_an_earlier_kernel_covers_the_indices_it_looked_at() -> None:
    text = """program(x, k) -> (y) { buffer x: f64[6]; buffer k: i64[4]; buffer y: f64[4]
      kernel a(k: i64[4]) { for i in 0:4 { check bit_and(k[i] >= 0, k[i] < 6), IndexError, 'no' } }
      kernel b(x: f64[6], k: i64[4], y: f64[4]) { for i in 0:4 { y[i] = x[k[i]] } } }"""
    verify_program(parse_program(text))
    with pytest.raises(VerificationError, match=r"the index k\[i\] may be anything"):
        verify_program(parse_program(text.replace("check bit_and(k[i] >= 0, k[i] < 6), IndexError, 'no'", "")))


def test_constants_bound_the_indices_they_hold() -> None:
    text = """program(x) -> (y) { buffer x: f64[6]; constant k: i64[4] = [0, 5, 2, 2]; buffer y: f64[4]
      kernel b(x: f64[6], k: i64[4], y: f64[4]) { for i in 0:4 { y[i] = x[k[i]] } } }"""
    verify_program(parse_program(text))
    with pytest.raises(VerificationError, match=r"may be 0\.\.6 on axis 0 of 6"):
        verify_program(parse_program(text.replace("[0, 5, 2, 2]", "[0, 6, 2, 2]")))


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("t[i] = x[i]", "x[i] = x[i]", "first writes x, which belongs to the caller"),
        ("copy(t)", "copy(out)", "copy reads out before anything is written there"),
        ("buffer t: f64[3]\n", "", "first uses t, which the program does not declare"),
        ("-> (out) {rows=3}", "-> (t) {rows=3}", "nothing writes the output out"),
        ("first(x: f64[3]", "first(x: f64[9]", "first sees x: f64[9], which is x: f64[3]"),
        ("first(x: f64[3]", "first(x: f64[3] strides(2)", "first sees x: f64[3] strides(2), which is x: f64[3]"),
        ("buffer t: f64[3]", "buffer t: f32[3]", "first sees t: f64[3], which is t: f32[3]"),
        ("t: f64[3]) {", "t: f64[3]) updates(t=out) {", "first cannot make t of out"),
        ("-> (out) {\n", "-> (out, out) {\n", "out is handed in or out, and something else too"),
        ("(x) -> (out)", "(x, q) -> (out)", "the program does not declare q"),
        ("alias out = x", "alias out = t", "out cannot end up in t"),
        ("alias out = x", "alias out = x\n  size n = x in 0:3", "the size n cannot be read from x"),
        ("alias out = x", "alias out = x\n  extent t = [3, 1]", "t has 1 axes but 2 extents"),
    ],
)
def test_programs(old: str, new: str, message: str) -> None:
    verify_program(parse_program(PROGRAM))
    with pytest.raises(VerificationError) as error:
        verify_program(parse_program(PROGRAM.replace(old, new)))
    assert error.value.message == message
