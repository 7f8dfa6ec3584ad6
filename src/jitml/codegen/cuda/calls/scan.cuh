// Cumulative operations. `Op` combines; `get(k)` and `put(k, value)` reach the k-th element of a row, in the order of the scan.

#define JI_SCAN_EACH 8
#define JI_SCAN_TILE 2048

// A place in a tile in which every 32nd element is left out, so that eight neighbours of each thread lie in all banks.
__device__ __forceinline__ int ji_scan_place(int e) { return e + e / 32; }

template <class T>
struct ji_scan_shared {
  T tile[JI_SCAN_TILE + JI_SCAN_TILE / 32], totals[8];
};

// A tile of at most 2048 elements by one block, after `carry`; the answer is the carry for what follows.
template <class Op, class Get, class Put>
__device__ __forceinline__ typename Op::type ji_scan_tile(ji_scan_shared<typename Op::type>* shared, typename Op::type carry,
                                                          int count, Get get, Put put) {
  typedef typename Op::type T;
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  for (int e = threadIdx.x; e < JI_SCAN_TILE; e += 256) shared->tile[ji_scan_place(e)] = e < count ? get(e) : Op::identity();
  __syncthreads();
  T sums[JI_SCAN_EACH];
#pragma unroll
  for (int u = 0; u < JI_SCAN_EACH; u++) {
    const T x = shared->tile[ji_scan_place(threadIdx.x * JI_SCAN_EACH + u)];
    sums[u] = u ? Op::combine(sums[u - 1], x) : x;
  }
  T total = sums[JI_SCAN_EACH - 1];
#pragma unroll
  for (int far = 1; far < 32; far *= 2) {
    const T before = __shfl_up_sync(0xffffffffu, total, far);
    if (lane >= far) total = Op::combine(before, total);
  }
  if (lane == 31) shared->totals[warp] = total;
  const T before = __shfl_up_sync(0xffffffffu, total, 1);
  __syncthreads();
  T all = carry, ahead = carry;
#pragma unroll
  for (int k = 0; k < 8; k++) {
    if (k == warp) ahead = all;
    all = Op::combine(all, shared->totals[k]);
  }
  if (lane > 0) ahead = Op::combine(ahead, before);
#pragma unroll
  for (int u = 0; u < JI_SCAN_EACH; u++)
    shared->tile[ji_scan_place(threadIdx.x * JI_SCAN_EACH + u)] = Op::combine(ahead, sums[u]);
  __syncthreads();
  for (int e = threadIdx.x; e < count; e += 256) put(e, shared->tile[ji_scan_place(e)]);
  __syncthreads();
  return all;
}

// A whole row by one block, tile by tile.
template <class Op, class Get, class Put>
__device__ __forceinline__ void ji_scan_row(ji_scan_shared<typename Op::type>* shared, long long n, Get get, Put put) {
  typename Op::type carry = Op::identity();
  for (long long first = 0; first < n; first += JI_SCAN_TILE)
    carry = ji_scan_tile<Op>(
        shared, carry, n - first < JI_SCAN_TILE ? (int)(n - first) : JI_SCAN_TILE, [=](int e) { return get(first + e); },
        [=](int e, typename Op::type x) { put(first + e, x); });
}

// Elements from `begin` to `end` by one thread, after `carry`, with eight loads in flight; the answer is the carry for what follows.
template <class Op, class Get, class Put>
__device__ __forceinline__ typename Op::type ji_scan_alone(typename Op::type carry, long long begin, long long end, Get get,
                                                           Put put) {
  typedef typename Op::type T;
  for (; begin + 8 <= end; begin += 8) {
    T x[8];
#pragma unroll
    for (int u = 0; u < 8; u++) x[u] = get(begin + u);
#pragma unroll
    for (int u = 0; u < 8; u++) put(begin + u, carry = Op::combine(carry, x[u]));
  }
  for (; begin < end; begin++) put(begin, carry = Op::combine(carry, get(begin)));
  return carry;
}
