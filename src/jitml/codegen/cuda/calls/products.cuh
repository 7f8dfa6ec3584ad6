// Products that tiles do not suit: matrices times vectors, which take as long as the matrix takes to read, and very small ones.
// Sums are split among threads in one way, whatever the addresses are, and their parts added up in a fixed order.

// Bring LANES elements of a matrix that are neighbours, if `is_inside`; `left` says how many of them there are.
template <class T>
__device__ __forceinline__ void ji_bring(T* lanes, const T* at, long long step, long long left, bool is_aligned) {
  constexpr int LANES = 16 / sizeof(T);
  if (left >= LANES && is_aligned) {
    *(typename ji_wide<T>::type*)lanes = *(const typename ji_wide<T>::type*)at;
  } else {
#pragma unroll
    for (int k = 0; k < LANES; k++) lanes[k] = k < left ? at[k * step] : T(0);
  }
}

// The sum of x[p * x_step] * y[p * y_step] over p from `begin` to `end`, by GROUP threads that stand together; all of a block
// must come here. Every thread of the group's first warp has the answer.
template <class T, int GROUP>
__device__ __forceinline__ T ji_dot(T* shared, const T* x, const T* y, long long x_step, long long y_step, bool x_aligned,
                                    bool y_aligned, long long begin, long long end) {
  constexpr int LANES = 16 / sizeof(T), AHEAD = 4;
  alignas(16) T left[AHEAD][LANES], right[AHEAD][LANES];
  T sums[LANES] = {};
  const int me = threadIdx.x % GROUP;
  for (long long p = begin + me * LANES; p < end; p += AHEAD * GROUP * LANES) {
#pragma unroll
    for (int u = 0; u < AHEAD; u++) {
      const long long at = p + u * GROUP * LANES;
      ji_bring(left[u], x + at * x_step, x_step, end - at, x_aligned);
      ji_bring(right[u], y + at * y_step, y_step, end - at, y_aligned);
    }
#pragma unroll
    for (int u = 0; u < AHEAD; u++)
#pragma unroll
      for (int k = 0; k < LANES; k++) sums[k] = ji_multiply_add(left[u][k], right[u][k], sums[k]);
  }
  T sum = sums[0];
#pragma unroll
  for (int k = 1; k < LANES; k++) sum += sums[k];
#pragma unroll
  for (int far = 16; far > 0; far /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, far);
  if (GROUP > 32) {
    if (threadIdx.x % 32 == 0) shared[threadIdx.x / 32] = sum;
    __syncthreads();
    sum = shared[threadIdx.x % (GROUP / 32)];
#pragma unroll
    for (int far = GROUP / 64; far > 0; far /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, far);
    __syncthreads();  // before the next sum comes here
  }
  return sum;
}

// z[i] = the sum of x[i, p] * y[p] for the 32 * LANES rows from i0 on, by one block: neighbours are along i, and its eight warps
// take turns along p. `put(i, sum)` stores one of them.
template <class T, class Put>
__device__ __forceinline__ void ji_columns(T (*shared)[32 * 16 / sizeof(T)], const T* x, const T* y, long long row, long long deep,
                                           long long y_step, bool x_aligned, long long i0, long long m, long long begin,
                                           long long end, Put put) {
  constexpr int LANES = 16 / sizeof(T), AHEAD = 4, WIDE = 32 * LANES;
  const int lane = threadIdx.x % 32 * LANES, warp = threadIdx.x / 32;
  const long long left = m - i0 - lane;
  T sums[LANES] = {};
  for (long long p = begin + warp; p < end; p += 8 * AHEAD) {
    alignas(16) T lanes[AHEAD][LANES];
    T factors[AHEAD];
#pragma unroll
    for (int u = 0; u < AHEAD; u++) {
      const long long at = p + 8 * u;
      factors[u] = at < end ? y[at * y_step] : T(0);
      ji_bring(lanes[u], x + (i0 + lane) * row + at * deep, row, at < end ? left : 0, x_aligned);
    }
#pragma unroll
    for (int u = 0; u < AHEAD; u++)
#pragma unroll
      for (int k = 0; k < LANES; k++) sums[k] = ji_multiply_add(lanes[u][k], factors[u], sums[k]);
  }
#pragma unroll
  for (int k = 0; k < LANES; k++) shared[warp][lane + k] = sums[k];
  __syncthreads();
  for (int i = threadIdx.x; i < WIDE; i += 256) {
    T sum = shared[0][i];
#pragma unroll
    for (int part = 1; part < 8; part++) sum += shared[part][i];
    if (i0 + i < m) put(i0 + i, sum);
  }
  __syncthreads();
}

// The sum of x[p * x_step] * y[p * y_step] over p, by one thread.
template <class T>
__device__ __forceinline__ T ji_short_dot(const T* x, const T* y, long long x_step, long long y_step, long long k) {
  T sum = 0;
#pragma unroll 4
  for (long long p = 0; p < k; p++) sum = ji_multiply_add(x[p * x_step], y[p * y_step], sum);
  return sum;
}
