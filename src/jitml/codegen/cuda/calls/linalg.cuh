// Factorizations by one block for each matrix. Matrices and right sides lie dense, row by row, in memory of the block's own.

__device__ __forceinline__ float ji_fused(float a, float b, float c) { return fmaf(a, b, c); }
__device__ __forceinline__ double ji_fused(double a, double b, double c) { return fma(a, b, c); }
__device__ __forceinline__ float ji_size(float x) { return fabsf(x); }
__device__ __forceinline__ double ji_size(double x) { return fabs(x); }
__device__ __forceinline__ float ji_root(float x) { return sqrtf(x); }
__device__ __forceinline__ double ji_root(double x) { return sqrt(x); }
__device__ __forceinline__ float ji_logarithm(float x) { return logf(x); }
__device__ __forceinline__ double ji_logarithm(double x) { return log(x); }
__device__ __forceinline__ float ji_exponential(float x) { return expf(x); }
__device__ __forceinline__ double ji_exponential(double x) { return exp(x); }
__device__ __forceinline__ float ji_least(float) { return 1.17549435e-38f; }
__device__ __forceinline__ double ji_least(double) { return 2.2250738585072014e-308; }

// The first of the largest elements of column k from row k on. One warp looks; it is a number of a row whatever it finds.
template <class T>
__device__ __forceinline__ void ji_find_pivot(const T* a, int n, int k, int* pivot) {
  if (threadIdx.x >= 32) return;
  T best = ji_size(a[k * n + k]);
  int row = k;
  for (int i = k + threadIdx.x; i < n; i += 32) {
    const T size = ji_size(a[i * n + k]);
    if (size > best) best = size, row = i;
  }
  for (int far = 16; far > 0; far /= 2) {
    const T other = __shfl_xor_sync(0xffffffffu, best, far);
    const int place = __shfl_xor_sync(0xffffffffu, row, far);
    if (other > best || (other == best && place < row)) best = other, row = place;
  }
  if (threadIdx.x == 0) *pivot = row;
}

// Eliminates a below its diagonal, with rows exchanged as LAPACK does it, and does the same to the m right sides x. False, for
// all threads, if there is a column of zeros. What is below the diagonal is left as it comes.
template <class T>
__device__ bool ji_eliminate(T* a, T* x, int n, int m, int* pivot, bool* is_odd) {
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, warps = blockDim.x / 32;
  *is_odd = false;
  for (int k = 0; k < n; k++) {
    ji_find_pivot(a, n, k, pivot);
    __syncthreads();
    const int row = *pivot;
    if (row != k) {
      *is_odd = !*is_odd;
      for (int j = k + threadIdx.x; j < n + m; j += blockDim.x) {
        T* above = j < n ? a + k * n + j : x + k * m + (j - n);
        T* below = j < n ? a + row * n + j : x + row * m + (j - n);
        const T kept = *above;
        *above = *below, *below = kept;
      }
    }
    __syncthreads();
    const T head = a[k * n + k];
    if (head == 0) return false;
    const T inverse = 1 / head;
    const bool is_tiny = ji_size(head) < ji_least(head);
    const auto factor = [=](int i) { return is_tiny ? a[i * n + k] / head : a[i * n + k] * inverse; };
    for (int i = k + 1 + warp; i < n; i += warps) {
      const T times = -factor(i);
      for (int j = k + 1 + lane; j < n; j += 32) a[i * n + j] = ji_fused(times, a[k * n + j], a[i * n + j]);
    }
    for (int e = threadIdx.x; e < (n - k - 1) * m; e += blockDim.x) {
      const int i = k + 1 + e / m, j = e % m;
      x[i * m + j] = ji_fused(-factor(i), x[k * m + j], x[i * m + j]);
    }
    __syncthreads();
  }
  return true;
}

// x = the solution of a x = x, where a is zero below its diagonal. Thread t has the elements t, t + blockDim.x, ... of it.
template <class T>
__device__ void ji_substitute(const T* a, T* x, int n, int m) {
  for (int k = n - 1; k > 0; k--) {
    for (int e = threadIdx.x; e < k * m; e += blockDim.x) {
      const int i = e / m, j = e % m;
      x[i * m + j] = ji_fused(-a[i * n + k], x[k * m + j] / a[k * n + k], x[i * m + j]);
    }
    __syncthreads();
  }
  for (int e = threadIdx.x; e < n * m; e += blockDim.x) x[e] /= a[e / m * n + e / m];
}

// The lower half of a becomes L, of L L^T = a, but for what each column is to be divided by: the root of its diagonal. False, for
// all threads, if a is not positive definite.
template <class T>
__device__ bool ji_cholesky(T* a, int n) {
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, warps = blockDim.x / 32;
  for (int k = 0; k < n; k++) {
    const T head = a[k * n + k];
    if (!(head > 0)) return false;
    const T inverse = 1 / ji_root(head);
    for (int i = k + 1 + warp; i < n; i += warps) {
      const T times = -(a[i * n + k] * inverse);
      for (int j = k + 1 + lane; j <= i; j += 32) a[i * n + j] = ji_fused(times, a[j * n + k] * inverse, a[i * n + j]);
    }
    __syncthreads();
  }
  return true;
}

// An element of L, from what ji_cholesky leaves.
template <class T>
__device__ __forceinline__ T ji_cholesky_element(const T* a, int n, int i, int j) {
  const T root = ji_root(a[j * n + j]);
  return i < j ? 0 : i == j ? root : a[i * n + j] * (1 / root);
}

// The sign of the determinant and the logarithm of its size, by one thread, from what ji_eliminate leaves.
template <class T>
__device__ __forceinline__ void ji_determinant(const T* a, int n, bool is_odd, T* sign, T* logarithm) {
  T total = 0;
  for (int k = 0; k < n; k++) {
    const T x = a[k * n + k];
    is_odd ^= x < 0;
    total += ji_logarithm(ji_size(x));
  }
  *sign = is_odd ? -1 : 1, *logarithm = total;
}

__device__ __forceinline__ void ji_note_failure(long long* error, long long number) {
  if (threadIdx.x == 0) atomicCAS((unsigned long long*)error, 0ULL, (unsigned long long)number);
}
