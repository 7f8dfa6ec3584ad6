// What all kernels of a program share. No header is included: this text is all that the compiler sees, NVRTC or, with the
// emulation of the tests, a compiler for the host. What is one line of PTX has a twin for the host.

typedef signed char i8;
typedef unsigned char u8;
typedef short i16;
typedef unsigned short u16;
typedef int i32;
typedef unsigned int u32;
typedef long long i64;
typedef unsigned long long u64;
typedef unsigned short f16;  // its bits: numbers of 16 bits are computed as float, and rounded

#define JI_INLINE __device__ __forceinline__

// ---------------------------------------------------------------------------------------------------------------- bits

#ifdef __CUDA_ARCH__
JI_INLINE i32 ji_bits(float x) { return __float_as_int(x); }
JI_INLINE i64 ji_bits(double x) { return __double_as_longlong(x); }
JI_INLINE float ji_float(i32 x) { return __int_as_float(x); }
JI_INLINE double ji_double(i64 x) { return __longlong_as_double(x); }
#else
JI_INLINE i32 ji_bits(float x) { i32 y; __builtin_memcpy(&y, &x, 4); return y; }
JI_INLINE i64 ji_bits(double x) { i64 y; __builtin_memcpy(&y, &x, 8); return y; }
JI_INLINE float ji_float(i32 x) { float y; __builtin_memcpy(&y, &x, 4); return y; }
JI_INLINE double ji_double(i64 x) { double y; __builtin_memcpy(&y, &x, 8); return y; }
#endif

#define ji_inff ji_float(0x7f800000)
#define ji_nanf ji_float(0x7fc00000)
#define ji_inf ji_double(0x7ff0000000000000LL)
#define ji_nan ji_double(0x7ff8000000000000LL)

// --------------------------------------------------------------------------------------------------- numbers of 16 bits

#ifdef __CUDA_ARCH__
JI_INLINE float ji_widen(f16 x) { float y; asm("cvt.f32.f16 %0, %1;" : "=f"(y) : "h"(x)); return y; }
JI_INLINE f16 ji_narrow(float x) { f16 y; asm("cvt.rn.f16.f32 %0, %1;" : "=h"(y) : "f"(x)); return y; }
JI_INLINE f16 ji_narrow(double x) { f16 y; asm("cvt.rn.f16.f64 %0, %1;" : "=h"(y) : "d"(x)); return y; }
#else
JI_INLINE float ji_widen(f16 x) {
  u32 magnitude = (x & 0x7fffu) << 13;
  // The exponent is 112 too small, of subnormals too; multiplied, it is right.
  u32 bits = magnitude < 0x0f800000u ? (u32)ji_bits(ji_float((i32)magnitude) * 0x1p112f) : magnitude | 0x7f800000u;
  return ji_float((i32)(bits | (x & 0x8000u) << 16));
}
JI_INLINE f16 ji_narrow(float x) {  // ties to even
  u32 bits = (u32)ji_bits(x), magnitude = bits & 0x7fffffffu, rounded;
  if (magnitude > 0x7f800000u) rounded = 0x7e00u;
  else if (magnitude >= 0x47800000u) rounded = 0x7c00u;
  else if (magnitude < 0x38800000u) rounded = (u32)ji_bits(ji_float((i32)magnitude) + 0.5f) - 0x3f000000u;
  else rounded = (magnitude - 0x38000000u + 0xfffu + (magnitude >> 13 & 1u)) >> 13;
  return (f16)(rounded | (bits >> 16 & 0x8000u));
}
JI_INLINE f16 ji_narrow(double x) {  // through a float with the last bit set if it is not exact: the second rounding sees it
  float near = (float)x;
  i32 bits = ji_bits(near);
  double exact = x < 0.0 ? -x : x, there = near < 0.0f ? -(double)near : (double)near;
  if (there > exact) bits -= 1;
  if ((double)near != x) bits |= 1;
  return ji_narrow(ji_float(bits));
}
#endif

// --------------------------------------------------------------------------------- casts to integers, as NumPy's on x86
// What does not fit, nan too, is the least integer of the 32 or 64 bits that it goes through.

JI_INLINE i32 ji_to_i32(float x) { return x >= -0x1p31f && x < 0x1p31f ? (i32)x : -2147483647 - 1; }
JI_INLINE i32 ji_to_i32(double x) { return x > -0x1p31 - 1.0 && x < 0x1p31 ? (i32)x : -2147483647 - 1; }
JI_INLINE i64 ji_to_i64(float x) { return x >= -0x1p63f && x < 0x1p63f ? (i64)x : -9223372036854775807LL - 1; }
JI_INLINE i64 ji_to_i64(double x) { return x >= -0x1p63 && x < 0x1p63 ? (i64)x : -9223372036854775807LL - 1; }
JI_INLINE u32 ji_to_u32(float x) { return x >= 0x1p31f ? (u32)ji_to_i32(x - 0x1p31f) ^ 1u << 31 : (u32)ji_to_i32(x); }
JI_INLINE u32 ji_to_u32(double x) { return x >= 0x1p31 ? (u32)ji_to_i32(x - 0x1p31) ^ 1u << 31 : (u32)ji_to_i32(x); }
JI_INLINE u64 ji_to_u64(float x) { return x >= 0x1p63f ? (u64)ji_to_i64(x - 0x1p63f) ^ 1ULL << 63 : (u64)ji_to_i64(x); }
JI_INLINE u64 ji_to_u64(double x) { return x >= 0x1p63 ? (u64)ji_to_i64(x - 0x1p63) ^ 1ULL << 63 : (u64)ji_to_i64(x); }

JI_INLINE i32 ji_least(i32 x, i32 y) { return x < y ? x : y; }
JI_INLINE i64 ji_least(i64 x, i64 y) { return x < y ? x : y; }
JI_INLINE i32 ji_most(i32 x, i32 y) { return x > y ? x : y; }
JI_INLINE i64 ji_most(i64 x, i64 y) { return x > y ? x : y; }

// ------------------------------------------------------------------------------- functions for a few difficult operands
// Called, and not written into each kernel: they are long.

__device__ __noinline__ float ji_rare_sin(float x) { return sinf(x); }
__device__ __noinline__ double ji_rare_sin(double x) { return sin(x); }
__device__ __noinline__ float ji_rare_cos(float x) { return cosf(x); }
__device__ __noinline__ double ji_rare_cos(double x) { return cos(x); }
__device__ __noinline__ float ji_rare_tan(float x) { return tanf(x); }
__device__ __noinline__ double ji_rare_tan(double x) { return tan(x); }
__device__ __noinline__ float ji_rare_fmod(float x, float y) { return fmodf(x, y); }
__device__ __noinline__ double ji_rare_fmod(double x, double y) { return fmod(x, y); }

// --------------------------------------------------------------------------------------------------------------- checks

// Whether this thread is the first of the program whose check has failed: it then writes the values behind the number.
JI_INLINE bool ji_claims(i64* error, i64 number) { return atomicCAS((u64*)error, 0ULL, (u64)number) == 0ULL; }

// --------------------------------------------------------------------------------------------------------- wide accesses

struct __align__(16) ji_16 { u32 x, y, z, w; };
struct __align__(8) ji_8 { u32 x, y; };
template <int bytes> struct ji_chunk;
template <> struct ji_chunk<16> { typedef ji_16 type; };
template <> struct ji_chunk<8> { typedef ji_8 type; };
template <> struct ji_chunk<4> { typedef u32 type; };
template <> struct ji_chunk<2> { typedef u16 type; };

// N neighbours at once, in pieces of up to 16 bytes, if `wide` says that the address is a multiple of that; else one by one.
template <bool wide, class T, int N> JI_INLINE void ji_load(T (&to)[N], const T* from) {
  constexpr int bytes = N * (int)sizeof(T) < 16 ? N * (int)sizeof(T) : 16, each = bytes / (int)sizeof(T);
  if (wide) {
#pragma unroll
    for (int k = 0; k < N; k += each) {
      union { typename ji_chunk<bytes>::type whole; T part[each]; } piece;
      piece.whole = *(const typename ji_chunk<bytes>::type*)(from + k);
#pragma unroll
      for (int j = 0; j < each; j += 1) to[k + j] = piece.part[j];
    }
  } else {
#pragma unroll
    for (int k = 0; k < N; k += 1) to[k] = from[k];
  }
}

template <bool wide, class T, int N> JI_INLINE void ji_store(T* to, const T (&from)[N]) {
  constexpr int bytes = N * (int)sizeof(T) < 16 ? N * (int)sizeof(T) : 16, each = bytes / (int)sizeof(T);
  if (wide) {
#pragma unroll
    for (int k = 0; k < N; k += each) {
      union { typename ji_chunk<bytes>::type whole; T part[each]; } piece;
#pragma unroll
      for (int j = 0; j < each; j += 1) piece.part[j] = from[k + j];
      *(typename ji_chunk<bytes>::type*)(to + k) = piece.whole;
    }
  } else {
#pragma unroll
    for (int k = 0; k < N; k += 1) to[k] = from[k];
  }
}

JI_INLINE bool ji_aligned(const void* x) { return ((u64)x & 15) == 0; }

// --------------------------------------------------------------------------------------------------------------- blocks

// Rows of shared memory with a number for each warp of a block: what lane 0 has, and what warp `k` has put there.
template <class T> JI_INLINE void ji_put(T x, u64* row) {
  if (threadIdx.x % 32 == 0) *(T*)(row + threadIdx.x / 32) = x;
}
template <class T> JI_INLINE T ji_get(const u64* row, int k) { return *(const T*)(row + k); }
