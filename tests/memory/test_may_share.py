"""When may a result be computed in its operand's storage?"""

from __future__ import annotations

import pytest

from jitml.kernels.text.parser import parse
from jitml.memory.sharing import may_share

HEAD = "kernel k(x: f64[4, 6], y: f64[4, 6]) "
FLAT = "kernel k(x: f64[24], y: f64[24]) "
MASKED = "kernel k(x: f64[24], m: bool[24], y: f64[24]) "

ALLOWED = {
    "pointwise": HEAD + "{ for i in 0:4 { for j in 0:6 vector { y[i, j] = exp(x[i, j]) } } }",
    "by a let": HEAD + "{ for i in 0:4 { for j in 0:6 { let v: f64 = x[i, j]; y[i, j] = v * v } } }",
    "a row read before it is written": HEAD
    + "{ for i in 0:4 parallel { cell m: f64 = 0.0; for j in 0:6 vector { m max= x[i, j] };"
    + " for j in 0:6 vector { y[i, j] = x[i, j] - m } } }",
    "another row of the same shape of loops": HEAD
    + "{ for i in 0:4 { cell s: f64 = 0.0; for j in 0:6 { s add= x[i, j] }; for k in 0:6 { y[i, k] = s } } }",
    "all read in an earlier nest": FLAT + "{ cell s: f64 = 0.0; for i in 0:24 { s add= x[i] }; for i in 0:24 { y[i] = s } }",
    "tiles": FLAT + "{ for t in 0:24:8 { for i in t:minimum(t + 8, 24) vector { y[i] = x[i] } } }",
    "flat and square views": "kernel k(x: f64[24], y: f64[4, 6]) { for i in 0:4 { for j in 0:6 { y[i, j] = x[i * 6 + j] } } }",
    "a quotient that cancels": "kernel k(x: f64[24], y: f64[4, 6]) { for t in 0:24 { y[t // 6, t % 6] = x[t] } }",
    "column by column": HEAD + "{ for j in 0:6 { for i in 0:4 { y[i, j] = x[i, j] } } }",
    "one element": "kernel k(x: f64[1], y: f64[1]) { for i in 0:1 { y[0] = x[0] } }",
    "no loop at all": "kernel k(x: f64[], y: f64[]) { y[] = x[] }",
    "never read": FLAT + "{ for i in 0:24 { y[i] = 1.0 } }",
    "backwards": FLAT + "{ for i in 0:24 { y[23 - i] = x[23 - i] } }",
    "what a mask keeps": MASKED + "{ cell s: i64 = 0; for i in 0:24 { y[minimum(s, 23)] = x[i]; s add= i64(m[i]) } }",
    "the same by branches": MASKED + "{ cell s: i64 = 0; for i in 0:24 { if m[i] { y[s] = x[i]; s add= 1 } } }",
    "rows that a mask keeps": "kernel k(x: f64[4, 6], m: bool[4], y: f64[4, 6]) "
    + "{ cell s: i64 = 0; for i in 0:4 { if m[i] { for j in 0:6 vector { y[s, j] = x[i, j] }; s add= 1 } } }",
    "what a mask keeps of each row": "kernel k(x: f64[4, 6], m: bool[6], y: f64[4, 6]) "
    + "{ for i in 0:4 parallel { cell s: i64 = 0; for j in 0:6 { y[i, minimum(s, 5)] = x[i, j]; s add= i64(m[j]) } } }",
}

FORBIDDEN = {
    "a neighbour": FLAT + "{ for i in 0:23 { y[i] = x[i + 1] } }",
    "reversed": FLAT + "{ for i in 0:24 { y[i] = x[23 - i] } }",
    "transposed": "kernel k(x: f64[5, 5], y: f64[5, 5]) { for i in 0:5 { for j in 0:5 { y[i, j] = x[j, i] } } }",
    "one element for all": FLAT + "{ for i in 0:24 { y[i] = x[0] } }",
    "a row for all rows": HEAD + "{ for i in 0:4 { for j in 0:6 { y[i, j] = x[0, j] } } }",
    "read again in a later nest": FLAT
    + "{ cell s: f64 = 0.0; for i in 0:24 { y[i] = x[i] }; for i in 0:24 { s add= x[i] }; y[0] = s }",
    "read again after the store": FLAT + "{ for i in 0:24 { y[i] = 0.0; y[i] = x[i] } }",
    "a gather": FLAT + "{ for i in 0:24 { y[i] = x[i64(x[i])] } }",
    "the same place in every round": FLAT + "{ for r in 0:2 { for i in 0:24 { y[i] = x[i] + f64(r) } } }",
    "a row spread over the next": FLAT + "{ for i in 0:3 { for j in 0:8 { y[i * 6 + j] = x[i * 6 + j] } } }",
    "a row sum beside the row before": HEAD
    + "{ for i in 1:4 { cell s: f64 = 0.0; for j in 0:6 { s add= x[i, j] }; for j in 0:6 { y[i - 1, j] = s } } }",
    "what a mask keeps, counted before": MASKED
    + "{ cell s: i64 = 0; for i in 0:24 { s add= i64(m[i]); y[minimum(s, 23)] = x[i] } }",
    "what a mask keeps, but the first": MASKED
    + "{ cell s: i64 = 1; for i in 0:24 { y[minimum(s, 23)] = x[i]; s add= i64(m[i]) } }",
    "two for each": MASKED + "{ cell s: i64 = 0; for i in 0:24 { y[minimum(s, 23)] = x[i]; if m[i] { s add= 1; s add= 1 } } }",
    "as many as a number says": MASKED + "{ cell s: i64 = 0; for i in 0:24 { y[minimum(s, 23)] = x[i]; s add= i64(x[i]) } }",
    "one for each of a loop inside": MASKED
    + "{ cell s: i64 = 0; for i in 0:24 { y[minimum(s, 23)] = x[i]; for j in 0:2 { s add= i64(m[j]) } } }",
    "at least as far as a counter": MASKED + "{ cell s: i64 = 0; for i in 0:24 { y[maximum(s, 3)] = x[i]; s add= i64(m[i]) } }",
    "what a mask keeps of the rows, for each row again": "kernel k(x: f64[4, 6], m: bool[4], y: f64[4, 6]) "
    + "{ for r in 0:2 { cell s: i64 = 0; for i in 0:4 { if m[i] { for j in 0:6 { y[s, j] = x[i, j] }; s add= 1 } } } }",
    "a neighbour of what a mask keeps": MASKED
    + "{ cell s: i64 = 0; for i in 0:23 { y[minimum(s, 23)] = x[i + 1] - x[i]; s add= i64(m[i]) } }",
    "counted on from an earlier loop": MASKED
    + "{ cell s: i64 = 0; for i in 0:9 { s add= i64(m[i]) }; for i in 0:24 { y[minimum(s, 23)] = x[i]; s add= i64(m[i]) } }",
    "written itself": HEAD + "{ for i in 0:4 { for j in 0:6 { x[i, j] = 0.0; y[i, j] = x[i, j] } } }",
}


@pytest.mark.parametrize("name", ALLOWED)
def test_allowed(name: str) -> None:
    assert may_share(parse(ALLOWED[name]), "x", "y")


@pytest.mark.parametrize("name", FORBIDDEN)
def test_forbidden(name: str) -> None:
    assert not may_share(parse(FORBIDDEN[name]), "x", "y")
