// Around factorizations of a library: failures, and determinants from triangles.

__device__ __forceinline__ void ji_note(long long* error, long long number) {
  atomicCAS((unsigned long long*)error, 0ULL, (unsigned long long)number);
}
__device__ __forceinline__ float ji_modulus(float re, float im) { return hypotf(re, im); }
__device__ __forceinline__ double ji_modulus(double re, double im) { return hypot(re, im); }
__device__ __forceinline__ float ji_natural_logarithm(float x) { return logf(x); }
__device__ __forceinline__ double ji_natural_logarithm(double x) { return log(x); }
__device__ __forceinline__ float ji_exponential_of(float x) { return expf(x); }
__device__ __forceinline__ double ji_exponential_of(double x) { return exp(x); }
__device__ __forceinline__ float ji_endless(float) { return __int_as_float(0x7f800000); }
__device__ __forceinline__ double ji_endless(double) { return __longlong_as_double(0x7ff0000000000000LL); }

// Of the diagonal of a triangle, n numbers of W parts, `step` parts apart: the product of signs, and the sum of logarithms. All
// threads of a block get them, by its shared memory; rows that have changed places turn the sign.
template <class T, int W, int THREADS>
__device__ void ji_triangle(T (*parts)[THREADS], const T* a, long long step, const long long* rows, int n, T* re, T* im,
                            T* logarithm) {
  T x = 1, y = 0, sum = 0;
  for (int k = threadIdx.x; k < n; k += THREADS) {
    T u = a[k * step], v = W == 2 ? a[k * step + 1] : 0;
    T size;
    if (W == 2) {
      size = ji_modulus(u, v);
      u /= size, v /= size;
    } else {
      size = u < 0 ? -u : u;
      u = u < 0 ? -1 : 1;
    }
    if (rows[k] != k + 1) u = -u, v = -v;
    const T old = x;
    x = old * u - (W == 2 ? y * v : 0);
    if (W == 2) y = old * v + y * u;
    sum += ji_natural_logarithm(size);
  }
  parts[0][threadIdx.x] = x, parts[1][threadIdx.x] = y, parts[2][threadIdx.x] = sum;
  __syncthreads();
  for (int far = THREADS / 2; far > 0; far /= 2) {
    if (threadIdx.x < far) {
      const int other = threadIdx.x + far;
      const T u = parts[0][other], v = parts[1][other], old = parts[0][threadIdx.x];
      if (W == 2) {
        parts[0][threadIdx.x] = old * u - parts[1][threadIdx.x] * v;
        parts[1][threadIdx.x] = old * v + parts[1][threadIdx.x] * u;
      } else {
        parts[0][threadIdx.x] = old * u;
      }
      parts[2][threadIdx.x] += parts[2][other];
    }
    __syncthreads();
  }
  *re = parts[0][0], *im = parts[1][0], *logarithm = parts[2][0];
  __syncthreads();
}
