// Scatters. Order is free where it makes no difference; elsewhere updates are sorted by where they go, and each place takes its own
// in their order.

// An index that may count from the end, from 0 to n - 1: it has been checked, but memory stays safe if it has not.
__device__ __forceinline__ long long ji_wrapped(long long i, long long n) {
  return ji_clamped(i < 0 ? i + n : i, 0, n - 1 < 0 ? 0 : n - 1);
}

__device__ __forceinline__ void ji_atomic_add(int* at, int x) { atomicAdd(at, x); }
__device__ __forceinline__ void ji_atomic_add(unsigned int* at, unsigned int x) { atomicAdd(at, x); }
__device__ __forceinline__ void ji_atomic_add(unsigned long long* at, unsigned long long x) { atomicAdd(at, x); }
__device__ __forceinline__ void ji_atomic_add(float* at, float x) { atomicAdd(at, x); }
__device__ __forceinline__ void ji_atomic_add(double* at, double x) { atomicAdd(at, x); }
__device__ __forceinline__ void ji_atomic_add(long long* at, long long x) {
  atomicAdd((unsigned long long*)at, (unsigned long long)x);
}
template <class T> __device__ __forceinline__ void ji_atomic_max(T* at, T x) { atomicMax(at, x); }
template <class T> __device__ __forceinline__ void ji_atomic_min(T* at, T x) { atomicMin(at, x); }

// Sums that go to few places: counted in shared memory, and added up once for each block. Integers that come to nothing are left
// out; 0.0 may still change the sign of a zero, which -0.0 does not.
template <class T, class Place, class Get, class Put>
__device__ __forceinline__ void ji_histogram(T* bins, int count, long long n, Place place, Get get, Put put) {
  for (int e = threadIdx.x; e < count; e += 256) bins[e] = (T)-0.0;
  __syncthreads();
  for (long long i = blockIdx.x * 256LL + threadIdx.x; i < n; i += gridDim.x * 256LL) ji_atomic_add(&bins[place(i)], get(i));
  __syncthreads();
  for (int e = threadIdx.x; e < count; e += 256)
    if ((T)0.5 != 0 || bins[e] != 0) put(e, bins[e]);
}

// What belongs to one place, in sorted updates: `key(i)` tells the place, `get(i)` what is put there.
// Each place has a thread, which takes them one after the other; `at(key)` is the element.
template <class Op, class Key, class Get, class At>
__device__ __forceinline__ void ji_scatter_alone(long long i, long long n, Key key, Get get, At at) {
  const auto mine = key(i);
  if (i > 0 && key(i - 1) == mine) return;
  auto* const element = at(mine);
  typename Op::type sum = *element;
  for (; i < n && key(i) == mine; i++) sum = Op::combine(sum, get(i));
  *element = sum;
}

// Each place has a warp, whose lanes take turns.
template <class Op, class Key, class Get, class At>
__device__ __forceinline__ void ji_scatter_warp(long long first, long long n, Key key, Get get, At at) {
  typedef typename Op::type T;
  const int lane = threadIdx.x % 32;
  const long long i = first + lane;
  unsigned int heads = __ballot_sync(0xffffffffu, i < n && (i == 0 || key(i) != key(i - 1)));
  for (; heads; heads &= heads - 1) {
    const long long begin = first + __ffs(heads) - 1;
    const auto mine = key(begin);
    T sum = Op::identity();
    bool goes_on = true;
    for (long long k = begin + lane; goes_on; k += 32) {
      const bool is_mine = k < n && key(k) == mine;
      if (is_mine) sum = Op::combine(sum, get(k));
      goes_on = __all_sync(0xffffffffu, is_mine);
    }
#pragma unroll
    for (int far = 16; far > 0; far /= 2) sum = Op::combine(sum, __shfl_xor_sync(0xffffffffu, sum, far));
    if (lane == 0) {
      auto* const element = at(mine);
      *element = Op::combine(*element, sum);
    }
  }
}
