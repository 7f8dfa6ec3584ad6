// Chains of products by tensor cores, with factors of f32 rounded to TF32, or matrices of halves: the structs of `chain.cuh`,
// otherwise shared out. Squares are f32; what is multiplied with halves is rounded to them.
//
// Eight warps take pieces of 16 x 8 of a tile. A lane holds of a piece rows lane / 4 and 8 more, and two columns from 2 (lane % 4) on.

template <int KEPT, int COLUMNS> struct ji_pieces {
  static constexpr int WARPS_DOWN = KEPT / 16, WARPS_ACROSS = 8 / WARPS_DOWN;
  static constexpr int COUNT = ((COLUMNS + 7) / 8 + WARPS_ACROSS - 1) / WARPS_ACROSS;  // of a warp

  __device__ __forceinline__ static int row() { return threadIdx.x / 32 / WARPS_ACROSS * 16 + threadIdx.x % 32 / 4; }
  __device__ __forceinline__ static int first(int c) { return (threadIdx.x / 32 % WARPS_ACROSS + c * WARPS_ACROSS) * 8; }

  // Of rows `row()` and 8 more, what stands from `p` on: four numbers each, and four more if `is_whole`.
  template <int PITCH> __device__ __forceinline__ static void left(unsigned* a, const float* tile, int p, bool is_whole) {
#pragma unroll
    for (int k = 0; k < 4; k++)
      a[k] = k < 2 || is_whole ? ji_tf32(tile[(row() + k % 2 * 8) * PITCH + p + threadIdx.x % 4 + k / 2 * 4]) : 0;
  }
};

template <int KEPT, int SUMMED> struct ji_square_pieces {
  typedef ji_pieces<KEPT, SUMMED> P;
  static constexpr int DOWN = 2, ACROSS = 2 * P::COUNT;
  static_assert(P::COUNT * P::WARPS_ACROSS * 8 == SUMMED, "no warp is without a piece");
  float sums[DOWN][ACROSS];

  __device__ __forceinline__ static int row(int u) { return P::row() + 8 * u; }
  __device__ __forceinline__ static int column(int v) { return P::first(v / 2) + threadIdx.x % 4 * 2 + v % 2; }

  __device__ __forceinline__ void keep(const float (&own)[P::COUNT][4]) {
#pragma unroll
    for (int c = 0; c < P::COUNT; c++)
#pragma unroll
      for (int k = 0; k < 4; k++) sums[k / 2][2 * c + k % 2] = own[c][k];
  }
};

template <int KEPT, int SUMMED> struct ji_square_tf32 : ji_square_pieces<KEPT, SUMMED> {
  typedef ji_pieces<KEPT, SUMMED> P;

  template <int DEPTH> __device__ __forceinline__ void make(const float* kept, const float* summed) {
    typedef ji_rows<float, DEPTH> R;
    float own[P::COUNT][4] = {};
#pragma unroll 2
    for (int p = 0; p < R::QUADS * 4; p += 8) {
      const bool is_whole = p + 4 < R::QUADS * 4;
      unsigned a[4];
      P::template left<R::PITCH>(a, kept, p, is_whole);
#pragma unroll
      for (int c = 0; c < P::COUNT; c++) {
        const float* at = summed + (P::first(c) + threadIdx.x % 32 / 4) * R::PITCH + p + threadIdx.x % 4;
        const unsigned b[2] = {ji_tf32(at[0]), is_whole ? ji_tf32(at[4]) : 0};
        ji_mma_m16n8k8_tf32(own[c], a, b);
      }
    }
    this->keep(own);
  }
};

template <int KEPT, int SUMMED> struct ji_square_f16 : ji_square_pieces<KEPT, SUMMED> {
  typedef ji_pieces<KEPT, SUMMED> P;

  template <int DEPTH> __device__ __forceinline__ void make(const unsigned short* kept, const unsigned short* summed) {
    typedef ji_rows<unsigned short, DEPTH> R;
    float own[P::COUNT][4] = {};
    const int near = threadIdx.x % 4 * 2;
#pragma unroll 2
    for (int p = 0; p < R::QUADS * 8; p += 16) {
      const bool is_whole = p + 8 < R::QUADS * 8;
      unsigned a[4];
#pragma unroll
      for (int k = 0; k < 4; k++)
        a[k] = k < 2 || is_whole ? *(const unsigned*)(kept + (P::row() + k % 2 * 8) * R::PITCH + p + near + k / 2 * 8) : 0;
#pragma unroll
      for (int c = 0; c < P::COUNT; c++) {
        const unsigned short* at = summed + (P::first(c) + threadIdx.x % 32 / 4) * R::PITCH + p + near;
        const unsigned b[2] = {*(const unsigned*)at, is_whole ? *(const unsigned*)(at + 8) : 0};
        ji_mma_m16n8k16_f16(own[c], a, b);
      }
    }
    this->keep(own);
  }
};

template <int KEPT, int WIDTH> struct ji_end_pieces_at {
  typedef ji_pieces<KEPT, WIDTH> P;
  static constexpr int LANES = 2, DOWN = 2, CHUNKS = P::COUNT;

  __device__ __forceinline__ static int row(int u) { return P::row() + 8 * u; }
  __device__ __forceinline__ static int column(int c) { return P::first(c) + threadIdx.x % 4 * 2; }
};

template <int KEPT, int WIDTH> struct ji_end_pieces : ji_end_sums<float, KEPT, WIDTH, ji_end_pieces_at<KEPT, WIDTH>> {
  // `multiply` adds to the four sums of a piece.
  template <class Multiply> __device__ __forceinline__ void add_piece(int c, Multiply multiply) {
    float own[4];
#pragma unroll
    for (int k = 0; k < 4; k++) own[k] = this->sums[k / 2][c][k % 2];
    multiply(own);
#pragma unroll
    for (int k = 0; k < 4; k++) this->sums[k / 2][c][k % 2] = own[k];
  }
};

template <int KEPT, int SUMMED, int WIDTH> struct ji_end_tf32 : ji_end_pieces<KEPT, WIDTH> {
  typedef ji_end_pieces_at<KEPT, WIDTH> At;
  typedef ji_rows<float, SUMMED> S;
  typedef ji_rows<float, WIDTH> M;

  __device__ __forceinline__ void add(const float* square, const float* matrix) {
#pragma unroll 2
    for (int p = 0; p < SUMMED; p += 8) {
      unsigned a[4];
      At::P::template left<S::PITCH>(a, square, p, true);
#pragma unroll
      for (int c = 0; c < At::CHUNKS; c++) {
        const int column = At::P::first(c) + threadIdx.x % 32 / 4;
        const float* at = matrix + (p + threadIdx.x % 4) * M::PITCH + column;
        const bool is_inside = column < WIDTH;
        const unsigned b[2] = {is_inside ? ji_tf32(at[0]) : 0, is_inside ? ji_tf32(at[4 * M::PITCH]) : 0};
        this->add_piece(c, [&](float* own) { ji_mma_m16n8k8_tf32(own, a, b); });
      }
    }
  }
};

__device__ __forceinline__ unsigned ji_halves(float x, float y) {  // x in the lower bits
#ifdef __CUDA_ARCH__
  unsigned z;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(z) : "f"(y), "f"(x));
  return z;
#else
  return ji_narrow(x) | (unsigned)ji_narrow(y) << 16;
#endif
}

template <int KEPT, int SUMMED, int WIDTH> struct ji_end_f16 : ji_end_pieces<KEPT, WIDTH> {
  typedef ji_end_pieces_at<KEPT, WIDTH> At;
  typedef ji_rows<float, SUMMED> S;
  typedef ji_rows<unsigned short, WIDTH> M;

  __device__ __forceinline__ void add(const float* square, const unsigned short* matrix) {
    const int lane = threadIdx.x % 32;
#pragma unroll 1
    for (int p = 0; p < SUMMED; p += 32) {
      unsigned a[2][4];
#pragma unroll
      for (int k = 0; k < 8; k++) {
        const float* at = square + (At::P::row() + k % 2 * 8) * S::PITCH + p + lane % 4 * 2 + k / 2 * 8;
        a[k / 4][k % 4] = ji_halves(at[0], at[1]);
      }
#pragma unroll
      for (int c = 0; c < At::CHUNKS; c++) {
        const int column = At::P::first(c);
        if (column >= M::QUADS * 8) continue;  // for all lanes of the warp
        unsigned b[4];
        ji_ldmatrix4<true>(b, matrix + (p + lane) * M::PITCH + column);
        this->add_piece(c, [&](float* own) {
          ji_mma_m16n8k16_f16(own, a[0], b);
          ji_mma_m16n8k16_f16(own, a[1], b + 2);
        });
      }
    }
  }
};
