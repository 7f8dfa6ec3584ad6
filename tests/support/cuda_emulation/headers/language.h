// CUDA C++ for a host compiler: its words, its vector types, and what a kernel knows of its place.
#pragma once
#include "machine.h"

#define JITML_EMULATION 1
#define __CUDACC_VER_MAJOR__ 13
#define __CUDACC_VER_MINOR__ 0
#define __cudart_builtin__
#define __global__ static
#define __device__
#define __host__
#define __grid_constant__
#define __constant__ static
#define __forceinline__ inline
#define __noinline__ __attribute__((noinline))
#define __launch_bounds__(...)
#define __align__(n) __attribute__((aligned(n)))
// One block of memory holds all shared arrays of a library, those of templates too, so that the machine can fill it.
#define __shared__ static thread_local

#define VECTOR_TYPES(T, NAME, ALIGN2, ALIGN4)                              \
  struct alignas(ALIGN2) NAME##2 { T x, y; };                              \
  struct NAME##3 { T x, y, z; };                                           \
  struct alignas(ALIGN4) NAME##4 { T x, y, z, w; };                        \
  inline NAME##2 make_##NAME##2(T x, T y) { return {x, y}; }               \
  inline NAME##3 make_##NAME##3(T x, T y, T z) { return {x, y, z}; }       \
  inline NAME##4 make_##NAME##4(T x, T y, T z, T w) { return {x, y, z, w}; }
typedef unsigned char uchar;
typedef unsigned short ushort;
typedef unsigned int uint;
VECTOR_TYPES(signed char, char, 2, 4)
VECTOR_TYPES(uchar, uchar, 2, 4)
VECTOR_TYPES(short, short, 4, 8)
VECTOR_TYPES(ushort, ushort, 4, 8)
VECTOR_TYPES(int, int, 8, 16)
#define uint3 same_uint3  // machine.h has it
VECTOR_TYPES(uint, uint, 8, 16)
#undef uint3
VECTOR_TYPES(long long, longlong, 16, 16)
VECTOR_TYPES(unsigned long long, ulonglong, 16, 16)
VECTOR_TYPES(float, float, 8, 16)
VECTOR_TYPES(double, double, 16, 16)
#undef VECTOR_TYPES

#define threadIdx (::emulation::here.thread)
#define blockIdx (::emulation::here.block)
#define blockDim (::emulation::here.block_size)
#define gridDim (::emulation::here.grid_size)
static constexpr int warpSize = 32;

typedef unsigned long long cudaGraphConditionalHandle;
