// Functions that every kernel has without a header: of bits, with a rounding, and those of the C library's names.
#pragma once
#include <math.h>
#include <string.h>

#include <algorithm>
#include <type_traits>

namespace emulation {

template <class To, class From> inline To bits_as(From value) {
  static_assert(sizeof(To) == sizeof(From));
  To to;
  memcpy(&to, &value, sizeof to);
  return to;
}

// Floats of 16 bits, rounded to nearest, ties to even.
inline float from_bfloat16(uint16_t half) { return bits_as<float>(uint32_t(half) << 16); }
inline uint16_t to_bfloat16(float value) {
  uint32_t bits = bits_as<uint32_t>(value);
  if ((bits & 0x7FFFFFFF) > 0x7F800000) return 0x7FFF;
  return uint16_t((bits + 0x7FFF + (bits >> 16 & 1)) >> 16);
}
inline float from_float16(uint16_t half) {
  uint32_t sign = uint32_t(half & 0x8000) << 16, exponent = half >> 10 & 31, fraction = half & 1023;
  if (exponent == 31) return bits_as<float>(sign | 0x7F800000 | fraction << 13);
  if (exponent == 0) return (sign ? -1.f : 1.f) * ldexpf(float(fraction), -24);
  return bits_as<float>(sign | (exponent + 112) << 23 | fraction << 13);
}
inline uint16_t to_float16(float value) {
  uint32_t bits = bits_as<uint32_t>(value), sign = bits >> 16 & 0x8000;
  bits &= 0x7FFFFFFF;
  if (bits > 0x7F800000) return 0x7FFF;
  if (bits >= 0x477FF000) return uint16_t(sign | 0x7C00);
  if (bits < 0x38800000) return uint16_t(sign | uint32_t(nearbyintf(ldexpf(bits_as<float>(bits), 24))));
  return uint16_t(sign | ((bits - 0x38000000 + 0xFFF + (bits >> 13 & 1)) >> 13));
}

}  // namespace emulation

template <class T> inline T __ldg(const T* p) { return *p; }
template <class T> inline T __ldcs(const T* p) { return *p; }
template <class T> inline T __ldcg(const T* p) { return *p; }
template <class T> inline void __stcs(T* p, T v) { *p = v; }
template <class T> inline void __stcg(T* p, T v) { *p = v; }
#define __builtin_assume(claim) ((claim) ? (void)0 : __builtin_trap())

inline void sincospi(double x, double* sine, double* cosine) {
  const long double turn = 3.14159265358979323846264338327950288L * x;
  *sine = double(sinl(turn)), *cosine = double(cosl(turn));
}
inline void sincospif(float x, float* sine, float* cosine) {
  double wide[2];
  sincospi(x, wide, wide + 1);
  *sine = float(wide[0]), *cosine = float(wide[1]);
}

using std::isfinite;
using std::isinf;
using std::isnan;
using std::max;
using std::min;
using std::signbit;
inline int min(int a, unsigned b) { return int(std::min(unsigned(a), b)); }

inline int __float_as_int(float f) { return emulation::bits_as<int>(f); }
inline unsigned __float_as_uint(float f) { return emulation::bits_as<unsigned>(f); }
inline float __int_as_float(int i) { return emulation::bits_as<float>(i); }
inline float __uint_as_float(unsigned i) { return emulation::bits_as<float>(i); }
inline long long __double_as_longlong(double d) { return emulation::bits_as<long long>(d); }
inline double __longlong_as_double(long long i) { return emulation::bits_as<double>(i); }
inline int __double2hiint(double d) { return int(__double_as_longlong(d) >> 32); }
inline int __double2loint(double d) { return int(__double_as_longlong(d)); }
inline double __hiloint2double(int high, int low) {
  return __longlong_as_double(static_cast<long long>(uint64_t(unsigned(high)) << 32 | unsigned(low)));
}

inline float __fadd_rn(float a, float b) { return a + b; }
inline float __fsub_rn(float a, float b) { return a - b; }
inline float __fmul_rn(float a, float b) { return a * b; }
inline float __fdiv_rn(float a, float b) { return a / b; }
inline float __fmaf_rn(float a, float b, float c) { return fmaf(a, b, c); }
inline float __fsqrt_rn(float a) { return sqrtf(a); }
inline float __frcp_rn(float a) { return 1.f / a; }
inline double __dadd_rn(double a, double b) { return a + b; }
inline double __dsub_rn(double a, double b) { return a - b; }
inline double __dmul_rn(double a, double b) { return a * b; }
inline double __ddiv_rn(double a, double b) { return a / b; }
inline double __fma_rn(double a, double b, double c) { return fma(a, b, c); }
inline double __dsqrt_rn(double a) { return sqrt(a); }
inline double __drcp_rn(double a) { return 1. / a; }
inline float __double2float_rn(double d) { return float(d); }
inline float rsqrtf(float x) { return 1.f / sqrtf(x); }
inline double rsqrt(double x) { return 1. / sqrt(x); }
inline float __expf(float x) { return expf(x); }
inline float __logf(float x) { return logf(x); }
inline float __fdividef(float a, float b) { return a / b; }

inline int __popc(unsigned x) { return __builtin_popcount(x); }
inline int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
inline int __clz(int x) { return x ? __builtin_clz(unsigned(x)) : 32; }
inline int __clzll(long long x) { return x ? __builtin_clzll(static_cast<unsigned long long>(x)) : 64; }
inline int __ffs(int x) { return __builtin_ffs(x); }
inline int __ffsll(long long x) { return __builtin_ffsll(x); }
inline unsigned __umulhi(unsigned a, unsigned b) { return unsigned(uint64_t(a) * b >> 32); }
inline int __mulhi(int a, int b) { return int(int64_t(a) * b >> 32); }
inline unsigned long long __umul64hi(unsigned long long a, unsigned long long b) {
  return static_cast<unsigned long long>(static_cast<unsigned __int128>(a) * b >> 64);
}
inline long long __mul64hi(long long a, long long b) { return static_cast<long long>(static_cast<__int128>(a) * b >> 64); }
inline unsigned __funnelshift_l(unsigned low, unsigned high, unsigned by) {
  return unsigned((uint64_t(high) << 32 | low) << (by & 31) >> 32);
}
inline unsigned __funnelshift_r(unsigned low, unsigned high, unsigned by) {
  return unsigned((uint64_t(high) << 32 | low) >> (by & 31));
}
inline unsigned __brev(unsigned x) {
  unsigned reversed = 0;
  for (int i = 0; i < 32; i++) reversed |= (x >> i & 1) << (31 - i);
  return reversed;
}
inline unsigned long long __brevll(unsigned long long x) {
  return static_cast<unsigned long long>(__brev(unsigned(x))) << 32 | __brev(unsigned(x >> 32));
}
