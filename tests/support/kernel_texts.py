"""Kernels as canonical text, shared by the tests of the kernel IR's text form, verifier and interpreter."""

AXPY = """\
kernel axpy(a: f64[8], b: f64[8], y: f64[8]) {
  for i in 0:8 vector {
    let x: f64 = a[i]
    y[i] = x * b[i] + x
  }
}"""

SOFTMAX = """\
kernel softmax(x: f32[4, 9], y: f32[4, 9]) {
  for i in 0:4 parallel grain 2 {
    cell m: f32 = -inf_f32
    for j in 0:9 vector {
      m max= x[i, j]
    }
    cell s: f32 = 0.0_f32
    for j in 0:9 vector {
      let e: f32 = exp(x[i, j] - m)
      y[i, j] = e
      s add= e
    }
    for j in 0:9 vector {
      y[i, j] = y[i, j] / s
    }
  }
}"""

CUMSUM = """\
kernel cumsum(x: i8[5, 3] strides(1, 5), y: i8[5, 3]) {
  for j in 0:3 {
    cell s: i8 = 0_i8
    for i in 0:5 {
      s = s + x[i, j]
      y[i, j] = s
    }
  }
}"""

TILED = """\
kernel transpose(x: f64[10, 7], y: f64[7, 10]) {
  for ii in 0:10:4 parallel {
    for i in ii:minimum(ii + 4, 10) {
      for j in 0:7 vector {
        y[j, i] = x[i, j]
      }
    }
  }
}"""

BLOCKS = """\
kernel blocks(x: f32[5, 70], y: f32[5, 70]) {
  for i in 0:5 block {
    alloc row: f32[70] {
      cell m: f32 = -inf_f32
      for j in 0:70 thread {
        m max= x[i, j]
      }
      for j in 0:70 thread {
        row[j] = exp(x[i, j] - m)
      }
      cell s: f32 = 0.0_f32
      for jo in 0:70:4 thread {
        for j in jo:minimum(jo + 4, 70) vector {
          s add= row[j]
        }
      }
      for j in 0:70 thread {
        y[i, j] = row[j] / s
      }
    }
  }
}"""

GATHER = """\
kernel gather(x: f64[6], k: i64[4], y: f64[4]) {
  for i in 0:4 {
    check bit_and(k[i] >= -6, k[i] < 6), IndexError, 'index {} is out of bounds for axis 0 with size 6', k[i]
  }
  for i in 0:4 {
    let n: i64 = k[i]
    y[i] = x[select(n < 0, n + 6, n)]
  }
}"""

HISTOGRAM = """\
kernel histogram(x: f64[20], h: i64[4]) {
  for b in 0:4 vector {
    h[b] = 0
  }
  for i in 0:20 {
    let b: i64 = i64(x[i] * 4.0)
    check bit_and(b >= 0, b < 4), IndexError, 'bin {}', b
    h[b] add= 1
  }
}"""

PAD = """\
kernel pad(x: f64[3], y: f64[8]) {
  for i in 0:8 {
    if i >= 2 {
      if i < 5 {
        y[i] = x[i - 2]
      } else {
        y[i] = 0.0
      }
    } else {
      y[i] = -1.0
    }
  }
}"""

SCRATCH = """\
kernel scratch(x: f64[12], s: f64[]) {
  s[] = 0.0
  for i in 0:12:4 {
    alloc t: f64[4] {
      for j in 0:4 vector {
        t[j] = x[i + j] * 2.0
      }
      for j in 0:4 {
        s[] add= t[3 - j]
      }
    }
  }
}"""

FLAT = """\
kernel flat(x: f32[24], y: f32[4, 6]) {
  for t in 0:24 vector {
    y[t // 6, t % 6] = x[t]
  }
}"""

LANES = """\
kernel lanes(x: f64[5, 8], y: f64[8]) {
  for j in 0:8 vector {
    cell s: f64 = 0.0
    for i in 0:5 {
      s add= x[i, j]
    }
    y[j] = s
  }
}"""

UPDATE = """\
kernel update(x: f64[9], y: f64[9], v: f64[3]) updates(y=x) {
  for i in 0:3 vector {
    y[i * 2 + 1] = v[i]
  }
}"""

BISECT = """\
kernel bisect(x: f64[9], v: f64[], k: i64[]) {
  cell low: i64 = 0
  cell high: i64 = 9
  while {
    let gap: i64 = high - low
  } gap > 0 {
    let middle: i64 = low + gap // 2
    if x[minimum(maximum(middle, 0), 8)] < v[] {
      low = middle + 1
    } else {
      high = middle
    }
  }
  k[] = low
}"""

KERNELS = {
    text.split("(")[0].removeprefix("kernel "): text
    for text in (AXPY, SOFTMAX, CUMSUM, TILED, GATHER, HISTOGRAM, PAD, SCRATCH, FLAT, LANES, UPDATE, BISECT)
}
BLOCK_KERNELS = {"blocks": BLOCKS}

PROGRAM = """\
program(x) -> (out) {
  buffer x: f64[3]
  constant c: f64[3] = [1.0, -2.5, 3.0]
  buffer t: f64[3]
  buffer out: f64[3]
  alias out = x
  kernel first(x: f64[3], c: f64[3], t: f64[3]) {
    for i in 0:3 vector {
      t[i] = x[i] * c[i]
    }
  }
  copy(t) -> (out) {rows=3}
}"""
