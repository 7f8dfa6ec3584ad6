// Chains of products: tiles of matrices and of squares in shared memory, and sums in registers.
//
// A row of a tile takes an odd number of 16-byte accesses, so that neighbouring rows start in different banks. What a tile has
// beyond its matrix is 0.

template <class T, int DEPTH> struct ji_rows {
  static constexpr int LANES = 16 / sizeof(T), QUADS = (DEPTH + LANES - 1) / LANES, PITCH = (QUADS | 1) * LANES;
};

template <class T> __device__ __forceinline__ void ji_wide_copy(T* to, const T* from) {
  *(typename ji_wide<T>::type*)to = *(const typename ji_wide<T>::type*)from;
}

// Bring rows r0 to r0 + ROWS - 1, each of DEPTH numbers. `along`: a row's numbers are neighbours in memory.
template <class T, int ROWS, int DEPTH, bool ALONG>
__device__ __forceinline__ void ji_bring_rows(T* tile, const ji_operand<T>& x, long long r0, long long rows) {
  typedef ji_rows<T, DEPTH> R;
  constexpr int PIECES = ROWS * R::QUADS;
  const T* const first = x.first + r0 * x.row;
  if (DEPTH % R::LANES == 0 && x.is_aligned && r0 + ROWS <= rows) {  // all loads on their way at once
#pragma unroll
    for (int piece = threadIdx.x; piece < PIECES; piece += 256) {
      const int r = piece / R::QUADS, p = piece % R::QUADS * R::LANES;
      ji_wide_copy(tile + r * R::PITCH + p, first + r * x.row + p);
    }
    return;
  }
#pragma unroll ALONG ? 1 : 2
  for (int piece = threadIdx.x; piece < PIECES; piece += 256) {
    const int r = ALONG ? piece / R::QUADS : piece % ROWS, p = (ALONG ? piece % R::QUADS : piece / ROWS) * R::LANES;
    const T* at = first + r * x.row + p * x.deep;
    const bool is_inside = r0 + r < rows;
    alignas(16) T lanes[R::LANES];
#pragma unroll
    for (int k = 0; k < R::LANES; k++) lanes[k] = is_inside && p + k < DEPTH ? at[k * x.deep] : T(0);
    ji_wide_copy(tile + r * R::PITCH + p, lanes);
  }
}

// A square's tile of KEPT x SUMMED, of which each thread holds every 16th row and column: products of the rows of two tiles.
template <class T, int KEPT, int SUMMED> struct ji_square {
  static constexpr int DOWN = KEPT / 16, ACROSS = SUMMED / 16;
  T sums[DOWN][ACROSS];

  __device__ __forceinline__ static int row(int u) { return threadIdx.x / 16 + 16 * u; }
  __device__ __forceinline__ static int column(int v) { return threadIdx.x % 16 + 16 * v; }

  template <int DEPTH> __device__ __forceinline__ void make(const T* kept, const T* summed) {
    typedef ji_rows<T, DEPTH> R;
#pragma unroll
    for (int u = 0; u < DOWN; u++)
#pragma unroll
      for (int v = 0; v < ACROSS; v++) sums[u][v] = 0;
#pragma unroll 1
    for (int p = 0; p < R::QUADS * R::LANES; p += R::LANES) {
      alignas(16) T left[DOWN][R::LANES], right[ACROSS][R::LANES];
#pragma unroll
      for (int u = 0; u < DOWN; u++) ji_wide_copy(left[u], kept + row(u) * R::PITCH + p);
#pragma unroll
      for (int v = 0; v < ACROSS; v++) ji_wide_copy(right[v], summed + column(v) * R::PITCH + p);
#pragma unroll
      for (int k = 0; k < R::LANES; k++)
#pragma unroll
        for (int u = 0; u < DOWN; u++)
#pragma unroll
          for (int v = 0; v < ACROSS; v++) sums[u][v] = ji_multiply_add(left[u][k], right[v][k], sums[u][v]);
    }
  }
};

// Where a thread's sums of a square times a matrix of WIDTH columns lie in the result's tile.
template <class T, int KEPT, int WIDTH> struct ji_end_at {
  typedef ji_rows<T, WIDTH> M;
  static constexpr int LANES = M::LANES;
  static constexpr int ACROSS = M::QUADS > 8 ? 16 : M::QUADS > 4 ? 8 : M::QUADS > 2 ? 4 : M::QUADS;
  static constexpr int THREADS_DOWN = 256 / ACROSS, DOWN = (KEPT + THREADS_DOWN - 1) / THREADS_DOWN;
  static constexpr int CHUNKS = (M::QUADS + ACROSS - 1) / ACROSS;

  __device__ __forceinline__ static int row(int u) { return threadIdx.x / ACROSS + u * THREADS_DOWN; }
  __device__ __forceinline__ static int column(int c) { return (threadIdx.x % ACROSS + c * ACROSS) * LANES; }
};

template <class T, int KEPT, int WIDTH, class At> struct ji_end_sums {
  T sums[At::DOWN][At::CHUNKS][At::LANES];

  __device__ __forceinline__ void clear() {
#pragma unroll
    for (int u = 0; u < At::DOWN; u++)
#pragma unroll
      for (int c = 0; c < At::CHUNKS; c++)
#pragma unroll
        for (int k = 0; k < At::LANES; k++) sums[u][c][k] = 0;
  }

  // Each row by a factor of its own.
  __device__ __forceinline__ void scale(const T* factors) {
#pragma unroll
    for (int u = 0; u < At::DOWN; u++) {
      const T factor = At::row(u) < KEPT ? factors[At::row(u)] : T(0);
#pragma unroll
      for (int c = 0; c < At::CHUNKS; c++)
#pragma unroll
        for (int k = 0; k < At::LANES; k++) sums[u][c][k] *= factor;
    }
  }

  // `put(row, column, sum)` takes each of them.
  template <class Put> __device__ __forceinline__ void each(long long rows, Put put) const {
#pragma unroll
    for (int u = 0; u < At::DOWN; u++)
#pragma unroll
      for (int c = 0; c < At::CHUNKS; c++)
#pragma unroll
        for (int k = 0; k < At::LANES; k++)
          if (At::row(u) < KEPT && At::row(u) < rows && At::column(c) + k < WIDTH) put(At::row(u), At::column(c) + k, sums[u][c][k]);
  }
};

template <class T, int KEPT, int SUMMED, int WIDTH> struct ji_end : ji_end_sums<T, KEPT, WIDTH, ji_end_at<T, KEPT, WIDTH>> {
  typedef ji_end_at<T, KEPT, WIDTH> At;
  typedef ji_rows<T, SUMMED> S;
  typedef ji_rows<T, WIDTH> M;

  __device__ __forceinline__ void add(const T* square, const T* matrix) {
    int columns[At::CHUNKS];  // threads that have none take the last ones
#pragma unroll
    for (int c = 0; c < At::CHUNKS; c++) columns[c] = At::column(c) < M::QUADS * At::LANES ? At::column(c) : (M::QUADS - 1) * At::LANES;
#pragma unroll 1
    for (int p = 0; p < SUMMED; p += At::LANES) {
      alignas(16) T left[At::DOWN][At::LANES], right[At::CHUNKS][At::LANES];
#pragma unroll
      for (int u = 0; u < At::DOWN; u++) ji_wide_copy(left[u], square + (At::row(u) < KEPT ? At::row(u) : 0) * S::PITCH + p);
#pragma unroll
      for (int q = 0; q < At::LANES; q++) {
#pragma unroll
        for (int c = 0; c < At::CHUNKS; c++) ji_wide_copy(right[c], matrix + (p + q) * M::PITCH + columns[c]);
#pragma unroll
        for (int u = 0; u < At::DOWN; u++)
#pragma unroll
          for (int c = 0; c < At::CHUNKS; c++)
#pragma unroll
            for (int k = 0; k < At::LANES; k++) this->sums[u][c][k] = ji_multiply_add(left[u][q], right[c][k], this->sums[u][c][k]);
      }
    }
  }
};

// Rows of a square's tile: PARTS threads that stand together take one, and all of them have its result.
template <class T, int KEPT, int SUMMED> struct ji_row {
  static constexpr int PARTS = 256 / KEPT, PITCH = ji_rows<T, SUMMED>::PITCH;

  __device__ __forceinline__ static int row() { return threadIdx.x / PARTS; }
  __device__ __forceinline__ static bool is_first() { return threadIdx.x % PARTS == 0; }

  // The first `count` numbers of the row, combined with `start`.
  template <class Combine> __device__ __forceinline__ static T reduce(const T* square, int count, T start, Combine combine) {
    T found = start;
    for (int p = threadIdx.x % PARTS; p < count; p += PARTS) found = combine(found, square[row() * PITCH + p]);
#pragma unroll
    for (int far = PARTS / 2; far > 0; far /= 2) found = combine(found, __shfl_xor_sync(0xffffffffu, found, far));
    return found;
  }
};

// What a softmax knows of the rows so far: the largest score, and the sum of the weights.
template <class T, int KEPT, int SUMMED> struct ji_softmax {
  typedef ji_row<T, KEPT, SUMMED> Row;
  T top, total;

  __device__ __forceinline__ void clear(T least) { top = least, total = 0; }

  // Weights in place of scores: `weigh(score, top)`, times `unit`. What has been summed so far shrinks by `shrink[row]`.
  template <class Weigh, class Larger>
  __device__ __forceinline__ void step(T* square, T* shrink, int count, T least, T unit, Weigh weigh, Larger larger) {
    const T highest = larger(top, Row::reduce(square, count, least, larger));
    const T shift = highest == least ? T(0) : highest;  // all are -inf so far, and weigh nothing
    const T factor = weigh(top, shift);
    T* row = square + Row::row() * Row::PITCH;
    T sum = 0;
    for (int p = threadIdx.x % Row::PARTS; p < SUMMED; p += Row::PARTS) {
      const T weight = p < count ? weigh(row[p], shift) : T(0);
      sum += weight;
      row[p] = weight * unit;
    }
#pragma unroll
    for (int far = Row::PARTS / 2; far > 0; far /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, far);
    if (Row::is_first()) shrink[Row::row()] = factor;
    total = total * factor + sum;
    top = highest;
  }

  // The sum of weights: nan in a row of nothing but -inf, as -inf - -inf is.
  __device__ __forceinline__ T sum(T least) const { return top == least ? top - top : total; }
};
