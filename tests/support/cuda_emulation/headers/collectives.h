// Collectives and atomics: barriers, operations of a warp, read-modify-write.
#pragma once
#include "machine.h"
#include <string.h>

namespace emulation {

template <class T> inline Slot pack(const T& value) {
  static_assert(sizeof(T) <= sizeof(Slot));
  Slot slot{};
  memcpy(&slot, &value, sizeof value);
  return slot;
}
// What lanes exchange they have in registers: nothing of it is an access.
template <class T> __attribute__((no_sanitize("thread"), noinline)) T unpack(const Slot& slot) {
  T value;
  memcpy(&value, &slot, sizeof value);
  return value;
}

// From lane `source`, or its own value where that lies outside the lane's part of the warp.
template <class T> inline T shuffle(uint32_t mask, T value, unsigned source, bool own, int line) {
  const Slot* slots = exchange(SHUFFLE, mask, line, pack(value));
  if (own) return value;
  if (!(mask & here.warp_lanes & 1u << (source & 31))) fail("a shuffle reads a lane outside its mask", line);
  return unpack<T>(slots[source & 31]);
}
template <class T> inline T shuffle_from(int line, uint32_t mask, T value, int source, int width = 32) {
  return shuffle(mask, value, (here.lane & ~(width - 1)) + (source & (width - 1)), false, line);
}
template <class T> inline T shuffle_down(int line, uint32_t mask, T value, unsigned by, int width = 32) {
  return shuffle(mask, value, here.lane + by, (here.lane & (width - 1)) + by >= unsigned(width), line);
}
template <class T> inline T shuffle_up(int line, uint32_t mask, T value, unsigned by, int width = 32) {
  return shuffle(mask, value, here.lane - by, (here.lane & (width - 1)) < by, line);
}
template <class T> inline T shuffle_xor(int line, uint32_t mask, T value, int bits, int width = 32) {
  unsigned source = here.lane ^ bits;
  return shuffle(mask, value, source, source >= (here.lane & ~(width - 1)) + width, line);
}

template <class T, class F> inline unsigned lanes_where(Operation operation, int line, uint32_t mask, T value, F holds) {
  const Slot* slots = exchange(operation, mask, line, pack(value));
  unsigned lanes = 0;
  for (unsigned i = 0; i < 32; i++) {
    if ((mask & here.warp_lanes) >> i & 1) lanes |= unsigned(holds(unpack<T>(slots[i]))) << i;
  }
  return lanes;
}
inline unsigned ballot(int line, uint32_t mask, int predicate) {
  return lanes_where(VOTE, line, mask, predicate, [](int other) { return other != 0; });
}
template <class T> inline unsigned match_any(int line, uint32_t mask, T value) {
  return lanes_where(MATCH, line, mask, value, [&](T other) { return other == value; });
}
template <class T, class F> inline T reduce(int line, uint32_t mask, T value, F combine) {
  const Slot* slots = exchange(REDUCE, mask, line, pack(value));
  mask &= here.warp_lanes;
  unsigned first = __builtin_ctz(mask);
  T result = unpack<T>(slots[first]);
  for (unsigned i = first + 1; i < 32; i++) {
    if (mask >> i & 1) result = combine(result, unpack<T>(slots[i]));
  }
  return result;
}
inline void synchronize_warp(int line, uint32_t mask = ~0u) { exchange(SYNCHRONIZE, mask, line, Slot{}); }

// All threads run on one of the system's, and none is interrupted here.
template <class T> struct Same { typedef T type; };  // a value is converted to the type of the cell, and does not decide it
template <class T> using Of = typename Same<T>::type;
template <class T, class F> __attribute__((no_sanitize("thread"), noinline)) T modify(T* cell, F change) {
  if (uintptr_t(cell) % sizeof(T)) fail("misaligned atomic operation", 0);
  note_atomic(cell, sizeof(T), __builtin_return_address(0));
  T old = *cell;
  *cell = change(old);
  return old;
}

}  // namespace emulation

#define __syncthreads() ::emulation::barrier(__LINE__)
#define __syncthreads_count(p) ::emulation::voting_barrier((p), __LINE__).count
#define __syncthreads_and(p) ::emulation::voting_barrier((p), __LINE__).all
#define __syncthreads_or(p) ::emulation::voting_barrier((p), __LINE__).any
#define __syncwarp(...) ::emulation::synchronize_warp(__LINE__ __VA_OPT__(, ) __VA_ARGS__)
#define __shfl_sync(...) ::emulation::shuffle_from(__LINE__, __VA_ARGS__)
#define __shfl_down_sync(...) ::emulation::shuffle_down(__LINE__, __VA_ARGS__)
#define __shfl_up_sync(...) ::emulation::shuffle_up(__LINE__, __VA_ARGS__)
#define __shfl_xor_sync(...) ::emulation::shuffle_xor(__LINE__, __VA_ARGS__)
#define __ballot_sync(mask, p) ::emulation::ballot(__LINE__, mask, p)
#define __any_sync(mask, p) (::emulation::ballot(__LINE__, mask, p) != 0)
#define __all_sync(mask, p) (::emulation::ballot(__LINE__, mask, !(p)) == 0)
#define __match_any_sync(mask, value) ::emulation::match_any(__LINE__, mask, value)
#define __reduce_add_sync(mask, value) ::emulation::reduce(__LINE__, mask, value, [](auto a, auto b) { return a + b; })
#define __reduce_min_sync(mask, value) ::emulation::reduce(__LINE__, mask, value, [](auto a, auto b) { return a < b ? a : b; })
#define __reduce_max_sync(mask, value) ::emulation::reduce(__LINE__, mask, value, [](auto a, auto b) { return a > b ? a : b; })
#define __activemask() static_assert(false, "which lanes are active depends on the device")

inline void __threadfence() {}
inline void __threadfence_block() {}
inline void __threadfence_system() {}
inline void __nanosleep(unsigned) {}

template <class T> inline T atomicAdd(T* p, emulation::Of<T> v) { return emulation::modify(p, [&](T a) { return T(a + v); }); }
template <class T> inline T atomicSub(T* p, emulation::Of<T> v) { return emulation::modify(p, [&](T a) { return T(a - v); }); }
template <class T> inline T atomicMin(T* p, emulation::Of<T> v) {
  return emulation::modify(p, [&](T a) { return v < a ? v : a; });
}
template <class T> inline T atomicMax(T* p, emulation::Of<T> v) {
  return emulation::modify(p, [&](T a) { return a < v ? v : a; });
}
template <class T> inline T atomicAnd(T* p, emulation::Of<T> v) { return emulation::modify(p, [&](T a) { return T(a & v); }); }
template <class T> inline T atomicOr(T* p, emulation::Of<T> v) { return emulation::modify(p, [&](T a) { return T(a | v); }); }
template <class T> inline T atomicXor(T* p, emulation::Of<T> v) { return emulation::modify(p, [&](T a) { return T(a ^ v); }); }
template <class T> inline T atomicExch(T* p, emulation::Of<T> v) { return emulation::modify(p, [&](T) { return v; }); }
template <class T> inline T atomicCAS(T* p, emulation::Of<T> was, emulation::Of<T> v) {
  return emulation::modify(p, [&](T a) { return a == was ? v : a; });
}
inline unsigned atomicInc(unsigned* p, unsigned most) {
  return emulation::modify(p, [&](unsigned a) { return a >= most ? 0u : a + 1; });
}
