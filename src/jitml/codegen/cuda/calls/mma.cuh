// Matrix products by tensor cores: factors of f16, or of f32 rounded to TF32 or bfloat16, and sums in f32.
//
// 256 threads are eight warps, two down and four across a tile of TILE x TILE. A step along k takes 64 bytes of memory of each
// row of both factors; the next ones are on the way meanwhile. A factor lies in shared memory as it does in memory, along the sum or along its
// rows; what is between rows keeps the banks apart.

#ifdef __CUDA_ARCH__
// D += A B of a warp. A lane holds of A rows lane / 4 and 8 more, of B column lane / 4, of D two columns from 2 (lane % 4) on.
__device__ __forceinline__ void ji_mma_m16n8k16_f16(float* d, const unsigned* a, const unsigned* b) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
__device__ __forceinline__ void ji_mma_m16n8k16_bf16(float* d, const unsigned* a, const unsigned* b) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
__device__ __forceinline__ void ji_mma_m16n8k8_tf32(float* d, const unsigned* a, const unsigned* b) {
  asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
// Four matrices of 8 x 8 numbers of 16 bits; lane 8 i + r gives the address of row r of matrix i.
template <bool TRANSPOSED> __device__ __forceinline__ void ji_ldmatrix4(unsigned* d, const void* row) {
  const unsigned at = (unsigned)__cvta_generic_to_shared(row);
  if (TRANSPOSED)
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(d[0]), "=r"(d[1]), "=r"(d[2]), "=r"(d[3]) : "r"(at) : "memory");
  else
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(d[0]), "=r"(d[1]), "=r"(d[2]), "=r"(d[3]) : "r"(at) : "memory");
}
__device__ __forceinline__ unsigned ji_tf32(float x) {  // ties away from zero
  unsigned y;
  asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(y) : "f"(x));
  return y;
}
__device__ __forceinline__ unsigned ji_bf16x2(float low, float high) {  // ties to even
  unsigned y;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(y) : "f"(high), "f"(low));
  return y;
}
#endif

// What a factor is multiplied as: f16 is `unsigned short`, TF32 is `float`.
struct ji_bf16 { unsigned short bits; };
template <class T> struct ji_in_memory { typedef T type; };
template <> struct ji_in_memory<ji_bf16> { typedef float type; };

// A factor in shared memory. Element (row, depth) is at `at`.
template <class T, int TILE, bool ALONG> struct ji_factor {
  typedef typename ji_in_memory<T>::type M;
  static constexpr int LANES = 16 / sizeof(M), DEEP = 64 / sizeof(M), EACH = TILE * 4 / 256;
  static constexpr int PITCH = ALONG ? DEEP + 16 / (int)sizeof(T) : TILE + 8, PLACES = PITCH * (ALONG ? TILE : DEEP);
  // Two of these have room for sums, too: of each warp 16 rows of TILE / 4, and one more.
  static constexpr int OF_SUMS = 8 * 16 * (TILE / 4 + 1) * 2 / (int)sizeof(T), SIZE = PLACES > OF_SUMS ? PLACES : OF_SUMS;

  __device__ __forceinline__ static int at(int row, int depth) { return ALONG ? row * PITCH + depth : depth * PITCH + row; }
};

// Stores 16 bytes of a factor, as they are multiplied.
__device__ __forceinline__ void ji_store(float* to, const float* x) {
  *(uint4*)to = make_uint4(ji_tf32(x[0]), ji_tf32(x[1]), ji_tf32(x[2]), ji_tf32(x[3]));
}
__device__ __forceinline__ void ji_store(ji_bf16* to, const float* x) {
  *(uint2*)to = make_uint2(ji_bf16x2(x[0], x[1]), ji_bf16x2(x[2], x[3]));
}
__device__ __forceinline__ void ji_store(unsigned short* to, const unsigned short* x) { *(uint4*)to = *(const uint4*)x; }

// What one thread brings of a factor: pieces of 16 bytes along the axis that is dense.
template <class T, int TILE, bool ALONG> struct ji_factor_bringing {
  typedef ji_factor<T, TILE, ALONG> F;
  typedef typename F::M M;
  alignas(16) M lanes[F::EACH][F::LANES];

  __device__ __forceinline__ static int row(int u) {
    const int piece = threadIdx.x + 256 * u;
    return ALONG ? piece / 4 : piece % (TILE / F::LANES) * F::LANES;
  }
  __device__ __forceinline__ static int depth(int u) {
    const int piece = threadIdx.x + 256 * u;
    return ALONG ? piece % 4 * F::LANES : piece / (TILE / F::LANES);
  }

  template <class Operand>
  __device__ __forceinline__ void load(const Operand& x, long long i0, long long p0, long long rows, long long deep) {
#pragma unroll
    for (int u = 0; u < F::EACH; u++) {
      const long long i = i0 + row(u), p = p0 + depth(u), left = ALONG ? deep - p : rows - i;
      const bool is_inside = ALONG ? i < rows : p < deep;
      if (is_inside && left >= F::LANES && x.is_aligned) {
        *(uint4*)lanes[u] = *(const uint4*)x.at(i, p);
      } else {
#pragma unroll
        for (int k = 0; k < F::LANES; k++) lanes[u][k] = is_inside && k < left ? *x.at(ALONG ? i : i + k, ALONG ? p + k : p) : M(0);
      }
    }
  }

  __device__ __forceinline__ void store(T* tile) {
#pragma unroll
    for (int u = 0; u < F::EACH; u++) ji_store(tile + F::at(row(u), depth(u)), lanes[u]);
  }
};

// Of the left factor rows i to i + 15, of the right one its columns j to j + 15, and 32 bytes along the sum.
template <int TILE, bool ALONG, class T> __device__ __forceinline__ void ji_left(unsigned* a, const T* tile, int i, int p) {
  const int lane = threadIdx.x % 32, near = lane % 8, second = lane / 8 % 2 * 8, third = lane / 16 * 8;
  ji_ldmatrix4<!ALONG>(a, tile + ji_factor<T, TILE, ALONG>::at(i + (ALONG ? near + second : second), p + third + (ALONG ? 0 : near)));
}
template <int TILE, bool ALONG, class T> __device__ __forceinline__ void ji_right(unsigned* b, const T* tile, int j, int p) {
  const int lane = threadIdx.x % 32, near = lane % 8, second = lane / 8 % 2 * 8, third = lane / 16 * 8;
  ji_ldmatrix4<!ALONG>(b, tile + ji_factor<T, TILE, ALONG>::at(j + third + (ALONG ? near : 0), p + second + (ALONG ? 0 : near)));
}
// Of f32, half as deep: two steps of eight numbers each make the 64 bytes.
template <int TILE, bool ALONG> __device__ __forceinline__ void ji_left(unsigned* a, const float* tile, int i, int p) {
  const int row = threadIdx.x % 32 / 4, deep = threadIdx.x % 4;
#pragma unroll
  for (int k = 0; k < 4; k++) a[k] = *(const unsigned*)(tile + ji_factor<float, TILE, ALONG>::at(i + row + k % 2 * 8, p + deep + k / 2 * 4));
}
template <int TILE, bool ALONG> __device__ __forceinline__ void ji_right(unsigned* b, const float* tile, int j, int p) {
  const int col = threadIdx.x % 32 / 4, deep = threadIdx.x % 4;
#pragma unroll
  for (int k = 0; k < 4; k++) b[k] = *(const unsigned*)(tile + ji_factor<float, TILE, ALONG>::at(j + col + k / 2 * 8, p + deep + k % 2 * 4));
}
__device__ __forceinline__ void ji_multiply(float* d, const unsigned* a, const unsigned* b, const unsigned short*) { ji_mma_m16n8k16_f16(d, a, b); }
__device__ __forceinline__ void ji_multiply(float* d, const unsigned* a, const unsigned* b, const ji_bf16*) { ji_mma_m16n8k16_bf16(d, a, b); }
__device__ __forceinline__ void ji_multiply(float* d, const unsigned* a, const unsigned* b, const float*) { ji_mma_m16n8k8_tf32(d, a, b); }

// The tile of x @ y at (i0, j0), with the sum over p from `begin` to `end`. `put(row, column, sum)` takes each of them.
template <class T, int TILE, bool X_ALONG, bool Y_ALONG, class Left, class Right, class Put>
__device__ __forceinline__ void ji_mma_tile(T* xs, T* ys, const Left& x, const Right& y, long long i0, long long j0, long long m,
                                            long long n, long long begin, long long end, Put put) {
  typedef ji_factor<T, TILE, X_ALONG> X;
  typedef ji_factor<T, TILE, Y_ALONG> Y;
  constexpr int DEEP = X::DEEP, STEP = 32 / sizeof(T), DOWN = TILE / 32, ACROSS = TILE / 32;
  const int warp = threadIdx.x / 32, i = warp / 4 * (TILE / 2), j = warp % 4 * (TILE / 4);
  float sums[DOWN][ACROSS][4] = {};
  ji_factor_bringing<T, TILE, X_ALONG> x_next;
  ji_factor_bringing<T, TILE, Y_ALONG> y_next;
  int side = 0;  // of the two that take turns: one is read while the other is filled
  x_next.load(x, i0, begin, m, end);
  y_next.load(y, j0, begin, n, end);
  for (long long p = begin; p < end; p += DEEP) {
    x_next.store(xs + side * X::SIZE);
    y_next.store(ys + side * Y::SIZE);
    __syncthreads();
    if (p + DEEP < end) {
      x_next.load(x, i0, p + DEEP, m, end);
      y_next.load(y, j0, p + DEEP, n, end);
    }
#pragma unroll
    for (int k = 0; k < DEEP; k += STEP) {
      unsigned left[DOWN][4], right[ACROSS / 2][4];
#pragma unroll
      for (int u = 0; u < DOWN; u++) ji_left<TILE, X_ALONG>(left[u], xs + side * X::SIZE, i + 16 * u, k);
#pragma unroll
      for (int v = 0; v < ACROSS / 2; v++) ji_right<TILE, Y_ALONG>(right[v], ys + side * Y::SIZE, j + 16 * v, k);
#pragma unroll
      for (int u = 0; u < DOWN; u++)
#pragma unroll
        for (int v = 0; v < ACROSS; v++) ji_multiply(sums[u][v], left[u], right[v / 2] + v % 2 * 2, xs);
    }
    side ^= 1;
  }
  // Sums go through shared memory, 16 rows of each warp at a time: then its lanes stand side by side, and `put` stands here few times.
  __syncthreads();
  constexpr int WIDE = TILE / 4, PITCH = WIDE + 1;
  static_assert(8 * 16 * PITCH * sizeof(float) <= 2 * X::SIZE * sizeof(T), "the left factor's memory has room for it");
  const int lane = threadIdx.x % 32;
  float* own = (float*)xs + warp * 16 * PITCH;
#pragma unroll
  for (int u = 0; u < DOWN; u++) {
#pragma unroll
    for (int v = 0; v < ACROSS; v++)
#pragma unroll
      for (int k = 0; k < 4; k++) own[(lane / 4 + k / 2 * 8) * PITCH + 8 * v + lane % 4 * 2 + k % 2] = sums[u][v][k];
    __syncwarp();
#pragma unroll 1
    for (int e = lane; e < 16 * WIDE; e += 32) {
      const long long row = i0 + i + 16 * u + e / WIDE, col = j0 + j + e % WIDE;
      if (row < m && col < n) put(row, col, own[e / WIDE * PITCH + e % WIDE]);
    }
    __syncwarp();
  }
  __syncthreads();  // before the next tile fills it
}
