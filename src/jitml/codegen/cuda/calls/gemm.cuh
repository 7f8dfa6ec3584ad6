// Matrix products in f32 and f64: sums in registers, operands in shared memory, and the next tiles on the way meanwhile.
//
// 256 threads of 16 x 16 make a tile of z of TILE x TILE, each of them (TILE / 16)^2 elements. A step along k takes DEEP rows of
// both operands, which is one access of 16 bytes for each thread. The order of each sum is that of k: the answer depends neither
// on the grid nor on how many others there are.

template <class T> struct ji_wide;
template <> struct ji_wide<float> { typedef float4 type; };
template <> struct ji_wide<double> { typedef double2 type; };
template <> struct ji_wide<unsigned short> { typedef uint4 type; };

__device__ __forceinline__ float ji_multiply_add(float a, float b, float c) { return fmaf(a, b, c); }
__device__ __forceinline__ double ji_multiply_add(double a, double b, double c) { return fma(a, b, c); }

// A matrix: element (i, p) lies at i * row + p * deep; p goes along the sum.
template <class T> struct ji_operand {
  const T* first;
  long long row, deep;
  bool is_aligned;  // whether 16 bytes at a multiple of 16 / sizeof(T) along the dense axis are one access

  __device__ __forceinline__ const T* at(long long i, long long p) const { return first + i * row + p * deep; }
};

// A matrix of which no two rows need be equally far apart, such as all windows of an array: element (i, p) lies at rows(i) + deep(p).
template <class T, class Rows, class Deep> struct ji_windows {
  const T* first;
  Rows rows;
  Deep deep;
  bool is_aligned;

  __device__ __forceinline__ const T* at(long long i, long long p) const { return first + (rows(i) + deep(p)); }
};
template <class T, class Rows, class Deep>
__device__ __forceinline__ ji_windows<T, Rows, Deep> ji_windows_of(const T* first, bool is_aligned, Rows rows, Deep deep) {
  return {first, rows, deep, is_aligned};
}

// What one thread brings of a tile: LANES elements along the axis that is dense. `along` says which: the sum, or the rows.
template <class T, int TILE, int DEEP, bool ALONG>
struct ji_bringing {
  static constexpr int LANES = 16 / sizeof(T);
  alignas(16) T lanes[LANES];

  // The place of the first of them: row i and depth p in the tile.
  __device__ __forceinline__ static int row() {
    return ALONG ? threadIdx.x / (DEEP / LANES) : threadIdx.x % (TILE / LANES) * LANES;
  }
  __device__ __forceinline__ static int depth() {
    return ALONG ? threadIdx.x % (DEEP / LANES) * LANES : threadIdx.x / (TILE / LANES);
  }

  template <class Operand>
  __device__ __forceinline__ void load(const Operand& x, long long i0, long long p0, long long rows, long long deep) {
    const long long i = i0 + row(), p = p0 + depth();
    const long long left = ALONG ? deep - p : rows - i;
    const bool is_inside = ALONG ? i < rows : p < deep;
    if (is_inside && left >= LANES && x.is_aligned) {
      *(typename ji_wide<T>::type*)lanes = *(const typename ji_wide<T>::type*)x.at(i, p);
    } else {
#pragma unroll
      for (int k = 0; k < LANES; k++) lanes[k] = is_inside && k < left ? *x.at(ALONG ? i : i + k, ALONG ? p + k : p) : T(0);
    }
  }

  __device__ __forceinline__ void store(T (*tile)[TILE + 4]) const {
    if (ALONG) {
#pragma unroll
      for (int k = 0; k < LANES; k++) tile[depth() + k][row()] = lanes[k];
    } else {
      *(typename ji_wide<T>::type*)&tile[depth()][row()] = *(const typename ji_wide<T>::type*)lanes;
    }
  }
};

// The tile of x @ y at (i0, j0), with the sum over p from `begin` to `end`. `put(row, column, sum)` takes each of them.
template <class T, int TILE, bool X_ALONG, bool Y_ALONG, class Left, class Right, class Put>
__device__ __forceinline__ void ji_gemm_tile(T (*xs)[TILE + 4], T (*ys)[TILE + 4], const Left& x, const Right& y,
                                             long long i0, long long j0, long long m, long long n, long long begin, long long end,
                                             Put put) {
  constexpr int LANES = 16 / sizeof(T), DEEP = 256 * LANES / TILE, EACH = TILE / 16, PART = EACH < LANES ? EACH : LANES;
  const int across = threadIdx.x % 16 * PART, down = threadIdx.x / 16 * PART;
  T sums[EACH][EACH] = {};
  ji_bringing<T, TILE, DEEP, X_ALONG> x_next;
  ji_bringing<T, TILE, DEEP, Y_ALONG> y_next;
  int side = 0;  // of the two that take turns: one is read while the other is filled
  x_next.load(x, i0, begin, m, end);
  y_next.load(y, j0, begin, n, end);
  for (long long p = begin; p < end; p += DEEP) {
    x_next.store(xs + side * DEEP);
    y_next.store(ys + side * DEEP);
    __syncthreads();
    if (p + DEEP < end) {
      x_next.load(x, i0, p + DEEP, m, end);
      y_next.load(y, j0, p + DEEP, n, end);
    }
#pragma unroll
    for (int k = 0; k < DEEP; k++) {
      T left[EACH], right[EACH];
#pragma unroll
      for (int i = 0; i < EACH; i++) {
        left[i] = xs[side * DEEP + k][i / PART * 16 * PART + down + i % PART];
        right[i] = ys[side * DEEP + k][i / PART * 16 * PART + across + i % PART];
      }
#pragma unroll
      for (int i = 0; i < EACH; i++)
#pragma unroll
        for (int j = 0; j < EACH; j++) sums[i][j] = ji_multiply_add(left[i], right[j], sums[i][j]);
    }
    side ^= 1;
  }
  __syncthreads();  // before the next tile fills what is read here
#pragma unroll
  for (int i = 0; i < EACH; i++) {
    const long long row = i0 + i / PART * 16 * PART + down + i % PART;
#pragma unroll
    for (int j = 0; j < EACH; j++) {
      const long long col = j0 + j / PART * 16 * PART + across + j % PART;
      if (row < m && col < n) put(row, col, sums[i][j]);
    }
  }
}

// The place of tile t of a grid of tiles: eight rows of tiles at a time go down their columns, so that blocks which run together
// read the same rows and columns.
__device__ __forceinline__ void ji_gemm_place(long long t, long long down, long long across, long long* i, long long* j) {
  const long long band = t / (8 * across), first = 8 * band, height = down - first < 8 ? down - first : 8;
  *i = first + t % (8 * across) % height;
  *j = t % (8 * across) / height;
}
