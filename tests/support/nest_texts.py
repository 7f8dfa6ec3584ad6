"""Kernels that each try one thing the emitters must get right, by what it is."""

NESTS = {
    "what is kept aside and cleared": """
      kernel k(count: i64[], x: f64[8], y: f64[8]) optimize { let t0: i64 = count[]; for i0 in 0:3 { alloc aside: f64[2] {
        let n: i64 = minimum(maximum(t0, 0), 2)
        for i in 0:n vector { aside[i] = y[i] }
        for i in 0:n vector { y[i] = 0.0 }
        for i in 0:n vector { x[i] = x[i] + aside[i] } } } }""",
    "a branch on lanes, with reads that only some lanes may do": """
      kernel k(x: f64[20], y: f64[45]) { for i in 0:45 vector {
        if i < 20 { y[i] = x[i] * 2.0 } else { y[i] = 1.0 } } }""",
    "a cell per lane, changed under a branch": """
      kernel k(x: f64[45], y: f64[45]) { for i in 0:45 vector {
        cell c: f64 = x[i]
        if x[i] < 0.0 { c = 0.0 - c; if c > 4.0 { c = 4.0 } } else { c add= 10.0 }
        y[i] = c } }""",
    "a sum of some lanes": """
      kernel k(x: f64[75], s: f64[]) { cell c: f64 = 1.0
        for i in 0:75 vector { if x[i] > 0.0 { c add= x[i] } }
        s[] = c }""",
    "a uniform branch inside a vector loop": """
      kernel k(x: f64[5, 45], y: f64[5, 45]) { for r in 0:5 { for i in 0:45 vector {
        if r > 2 { y[r, i] = x[r, i] } else { y[r, i] = x[4 - r, i] + 1.0 } } } }""",
    "a triangle: limits that depend on an outer index": """
      kernel k(x: f64[20, 20], y: f64[20]) { for i in 0:20 {
        cell s: f64 = 0.0
        for j in i:20 vector { s add= x[i, j] }
        for j in 0:i:3 vector { s add= x[i, j] }
        y[i] = s } }""",
    "an invariant load stays inside a loop that stores to its buffer": """
      kernel k(x: f64[4], y: f64[4]) { for i in 0:3 { y[i] = x[0] + y[3]; y[3] = y[3] * 2.0 + x[i] } }""",
    "columns by vectors, rows inside": """
      kernel k(x: f32[9, 70], y: f32[70]) { for j in 0:70 vector {
        cell m: f32 = -inf_f32
        for i in 0:9 { m max= x[i, j] }
        cell s: f32 = 0.0_f32
        for i in 0:9 unroll { s add= x[i, j] * m }
        y[j] = s } }""",
    "every third element, backwards and forwards": """
      kernel k(x: f64[100], y: f64[100]) { for i in 0:33 vector { y[3 * i + 1] = x[99 - 3 * i] } }""",
    "neighbours share vectors: a colour picture to grey": """
      kernel k(x: f64[101, 3], y: f64[101]) { for i in 0:101 vector { y[i] = x[i, 0] + 2.0 * x[i, 1] - x[i, 2] } }""",
    "dense strides from 2 to 4, forwards from any phase, of bytes and bools": """
      kernel k(x: u8[540], p: bool[540], y: u8[134], q: bool[134], z: u8[134]) { for i in 0:134 vector {
        y[i] = x[2 * i] + x[3 * i + 5] * x[4 * i + 3]; q[i] = p[2 * i + 1]; z[i] = x[4 * i + 1] + x[4 * i] } }""",
    "neighbours are stored together: points scaled, swapped, and turned into bools": """
      kernel k(x: f64[101, 3], y: f64[101, 3], z: f32[101, 2], p: bool[101, 4]) { for i in 0:101 vector {
        for j in 0:3 unroll { y[i, j] = x[i, 2 - j] * 2.0 }
        z[i, 1] = f32(x[i, 0]); z[i, 0] = f32(x[i, 1])
        for j in 0:4 unroll { p[i, j] = x[i, j - j // 3] < 0.0 } } }""",
    "neighbours of which some never come": """
      kernel k(x: f64[50], y: f64[50, 3], z: f64[50, 4]) { for i in 0:50 vector {
        y[i, 0] = x[i]; z[i, 3] = x[i] + 1.0; y[i, 2] = x[i] * x[i]; z[i, 1] = 2.0 } }""",
    "a neighbour is read, and one stored again, before the last one comes": """
      kernel k(x: f64[50, 3], y: f64[50]) { for i in 0:50 vector {
        x[i, 0] = y[i]; x[i, 1] = x[i, 0] + 1.0; x[i, 1] = x[i, 1] * 2.0
        let t: f64 = x[i, 1]; x[i, 2] = t + x[i, 0]; y[i] = x[i, 2] + x[i, 1] } }""",
    "neighbours written where they are read, and read again from vectors that were loaded meanwhile": """
      kernel k(x: f64[101, 3], y: f64[101], z: f64[101, 2]) { for i in 0:101 vector {
        for j in 0:3 unroll { x[i, j] = x[i, j] * y[i] + x[i, (j + 2) // 2] }
        z[i, 0] = y[i]; let a: f64 = z[i, 1]; z[i, 1] = a + z[i, 0]; y[i] = z[i, 1] - x[i, 0] + x[i, 2] } }""",
    "neighbours around branches and loops that stay": """
      kernel k(x: f64[60, 2], y: f64[60], n: i64[]) { let m: i64 = n[]; for i in 0:60 vector {
        x[i, 0] = y[i]
        if m > 1 { x[i, 1] = 3.0 } else { x[i, 1] = x[i, 0]; x[i, 0] = 4.0 }
        x[i, 1] = x[i, 1] + 1.0
        for j in 0:m { x[i, 0] = x[i, 0] * 2.0 + x[i, 1] }
        if y[i] > 0.0 { x[i, 1] = 7.0 }
        x[i, 0] = x[i, 0] + x[i, 1]
        if m > 1000 { x[i, 1] = 8.0 }
        x[i, 1] = x[i, 1] + y[i]
        for j in 0:m { x[i, 1] = x[i, 1] * 2.0 } } }""",
    "neighbours whose start moves with outer loops, and sums between them": """
      kernel k(x: f64[3, 40, 2], y: f64[40]) { for r in 0:3 { for i in 0:40 vector {
        x[r, i, 1] = y[i]; x[r, i, 1] add= 1.0; x[r, i, 0] = x[r, i, 1]; x[2 - r, i, 0] = y[i]
        x[2 - r, i, 0] = y[i] * 3.0; x[r, i, 1] = y[i] * 4.0; x[2 - r, i, 1] = 5.0 } } }""",
    "a step other than one": """
      kernel k(x: f64[100], y: f64[100]) { for i in 5:97:4 vector { y[i] = x[i - 5] } }""",
    "indices as values, in several widths": """
      kernel k(y: f64[50], z: i32[50], w: f32[50]) { for i in 2:50 vector {
        let n: i64 = i * 3 - 1
        y[i] = f64(n); z[i] = i32(i * i); w[i] = f32(i % 7) } }""",
    "gathered through an index array": """
      kernel k(n: u8[40], x: f32[9], y: f32[40]) { for i in 0:40 vector { y[i] = x[i64(n[i])] } }""",
    "scattered through an index expression": """
      kernel k(x: i16[48], y: i16[48]) { for i in 0:48 vector { y[(i % 8) * 6 + i // 8] = x[i] } }""",
    "colliding sums run in order": """
      kernel k(n: u8[40], x: f64[40], h: f64[9]) { for i in 0:40 vector { h[i64(n[i])] add= x[i] } }""",
    "sums into distinct elements run side by side": """
      kernel k(x: f64[70], h: f64[70]) { for i in 0:70 vector { h[69 - i] add= x[i] } }""",
    "an argmax by two cells": """
      kernel k(x: f64[40], y: i64[]) { cell m: f64 = -inf; cell at: i64 = 0
        for i in 0:40 { if x[i] > m { m = x[i]; at = i } }
        y[] = at }""",
    "scratch beyond the stack, in a parallel loop": """
      kernel k(x: f64[6, 3000], y: f64[6, 3000]) { for r in 0:6 parallel { alloc t: f64[3000] {
        for i in 0:3000 vector { t[i] = x[r, i] * 2.0 }
        for i in 0:3000 vector { y[r, i] = t[2999 - i] } } } }""",
    "a parallel loop over short rows, and a branch on their sums": """
      kernel k(x: f64[101, 4], y: f64[101, 3], n: i64[101]) { for i in 1:101 parallel grain 7 {
        cell s: f64 = 0.0
        for j in 0:4 vector { s add= x[i, j] * x[i, j] }
        for j in 1:3 vector { y[i, j] = x[i, j] / sqrt(s) }
        if s > 40.0 { y[i, 0] = s } else { y[i, 0] = f64(i) } } }""",
    "scratch of each iteration, though the loop is marked vector": """
      kernel k(x: f64[40], y: f64[40]) { for i in 0:40 vector { alloc t: f64[3] {
        for j in 0:3 { t[j] = x[i] * f64(j) }
        y[i] = t[2] - t[1] } } }""",
    "a parallel loop that needs values from around it": """
      kernel k(x: f64[4], y: f64[4, 30]) { let a: f64 = x[1]; let n: i64 = 3; cell b: f64 = x[2]; b = b * 2.0
        for i in 0:4 parallel { for j in n:30 vector { y[i, j] = a * b + f64(j) } } }""",
    "bools are bytes in memory and bits in registers": """
      kernel k(x: f64[45], p: bool[45], q: bool[45]) { for i in 0:45 vector {
        q[i] = select(p[44 - i], x[i] > 1.0, bit_not(p[i])) } }""",
    "a mixed loop goes by its widest element": """
      kernel k(a: u8[77], b: f32[77], c: i16[77], y: f64[77], z: u8[77]) { for i in 0:77 vector {
        y[i] = f64(a[i]) * f64(b[i]) + f64(c[i]); z[i] = u8(c[i]) } }""",
    "broadcasting: one load serves all lanes": """
      kernel k(x: f64[3, 40] strides(1, 0), y: f64[3, 40]) { for r in 0:3 { for i in 0:40 vector { y[r, i] = x[r, i] } } }""",
    "a loop that never runs": """
      kernel k(x: f64[0], y: f64[3]) { for i in 0:3 { cell s: f64 = 1.0; for j in 0:0 vector { s add= x[j] }; y[i] = s } }""",
    "in place through another name": """
      kernel k(x: f64[70], y: f64[70]) { for i in 0:70 vector { y[i] = y[i] + x[i] }
        for i in 0:70 vector { y[i] = y[i] * y[i] } }""",
    "while: two cells that change places, and one that falls": """
      kernel k(x: i64[20], y: i64[20], n: i64[]) { cell total: i64 = 0
        for i in 0:20 {
          cell a: i64 = x[i] + 9; cell b: i64 = 12
          while b != 0 { let r: i64 = a % b; a = b; b = r; total add= 1 }
          y[i] = a }
        cell k: i64 = 19
        while { let v: i64 = y[maximum(k, 0)] } bit_and(k >= 0, v > 0) { y[k] = v - 100; k = k - 1 }
        n[] = total }""",
    "while: never entered, nested, with vectors inside": """
      kernel k(x: f64[40], y: f64[40], s: f64[]) { cell c: f64 = 0.0
        while c > 0.0 { c = c / 2.0 }
        cell k: i64 = 0
        while k < 3 {
          for i in 0:40 vector { y[i] = x[i] + c + f64(k) }
          cell j: i64 = 0
          while { let t: f64 = y[j * 7] } j < 5 { if t > c { c = t } else { c add= 0.25 }; j = j + 1 }
          k = k + 1 }
        s[] = c }""",
}
