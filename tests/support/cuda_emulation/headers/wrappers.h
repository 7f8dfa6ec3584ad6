// Host versions of the back end's own functions whose device versions are lines of PTX.
#pragma once
#include "collectives.h"
#include "intrinsics.h"

inline void ji_cp_async16(void* to, const void* from) {
  if ((uintptr_t(to) | uintptr_t(from)) % 16) emulation::fail("misaligned asynchronous copy of 16 bytes", 0);
  emulation::start_copy(to, from, 16);
}
inline void ji_cp_async_commit() { emulation::commit_copies(); }
template <int N> inline void ji_cp_async_wait() { emulation::wait_for_copies(N); }

// Four matrices of 8 x 8 numbers of 16 bits; lane 8 i + r gives the address of row r of matrix i.
template <bool TRANSPOSED> inline void ji_ldmatrix4(uint32_t* registers, const void* row) {
  if (uintptr_t(row) % 16) emulation::fail("misaligned row of a matrix", 0);
  const emulation::Slot* rows = emulation::exchange(emulation::LOAD_MATRIX, ~0u, __LINE__, emulation::pack(row));
  unsigned group = emulation::here.lane >> 2, pair = (emulation::here.lane & 3) * 2;
  for (int i = 0; i < 4; i++) {
    auto at = [&](unsigned r, unsigned c) { return emulation::unpack<const uint16_t*>(rows[8 * i + r])[c]; };
    uint32_t low = TRANSPOSED ? at(pair, group) : at(group, pair);
    uint32_t high = TRANSPOSED ? at(pair + 1, group) : at(group, pair + 1);
    registers[i] = low | high << 16;
  }
}

// D += A B of a warp. A lane holds of A rows lane / 4 and 8 more, of B column lane / 4, of D two columns from 2 (lane % 4) on, and of
// each row of A and column of B words lane % 4 and 4 more along the sum: of `PER_WORD` numbers, which `number(word, n)` reads.
template <int PER_WORD, class Number> inline void multiply_matrices(float* d, const uint32_t* a, const uint32_t* b, Number number) {
  struct Fragment { uint32_t a[4], b[2]; } mine;
  memcpy(mine.a, a, sizeof mine.a);
  memcpy(mine.b, b, sizeof mine.b);
  const emulation::Slot* lanes = emulation::exchange(emulation::MULTIPLY_MATRICES, ~0u, __LINE__, emulation::pack(mine));
  unsigned row = emulation::here.lane >> 2, column = (emulation::here.lane & 3) * 2;
  for (unsigned i = 0; i < 4; i++) {
    float sum = 0;
    for (unsigned word = 0; word < 8; word++) {
      unsigned lane = word & 3, half = word >> 2;
      Fragment left = emulation::unpack<Fragment>(lanes[row * 4 + lane]);
      Fragment right = emulation::unpack<Fragment>(lanes[(column + (i & 1)) * 4 + lane]);
      for (int n = 0; n < PER_WORD; n++) sum += number(left.a[half * 2 + (i >> 1)], n) * number(right.b[half], n);
    }
    d[i] += sum;
  }
}
inline void ji_mma_m16n8k16_bf16(float* d, const uint32_t* a, const uint32_t* b) {
  multiply_matrices<2>(d, a, b, [](uint32_t word, int n) { return emulation::from_bfloat16(uint16_t(word >> 16 * n)); });
}
inline void ji_mma_m16n8k16_f16(float* d, const uint32_t* a, const uint32_t* b) {
  multiply_matrices<2>(d, a, b, [](uint32_t word, int n) { return emulation::from_float16(uint16_t(word >> 16 * n)); });
}
// The device reads the upper 19 bits of a word; here a word that has not been rounded to them is a fault.
inline void ji_mma_m16n8k8_tf32(float* d, const uint32_t* a, const uint32_t* b) {
  multiply_matrices<1>(d, a, b, [](uint32_t word, int) {
    if (word & 0x1fff) emulation::fail("a factor is not rounded to TF32", 0);
    return emulation::bits_as<float>(word);
  });
}
inline uint32_t ji_bf16x2(float low, float high) {
  return uint32_t(emulation::to_bfloat16(low)) | uint32_t(emulation::to_bfloat16(high)) << 16;
}
inline uint32_t ji_tf32(float x) {  // ties away from zero; what is nan stays one
  uint32_t bits = emulation::bits_as<uint32_t>(x);
  if ((bits & 0x7fffffff) > 0x7f800000) return 0x7fffe000;
  return (bits & 0x7f800000) == 0x7f800000 ? bits : (bits + 0x1000) & ~0x1fffu;
}
