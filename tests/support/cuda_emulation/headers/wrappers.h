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

// D += A B of a warp: A is 16 x 16, B 16 x 8. A lane holds rows lane / 4 and 8 more, and columns 2 (lane % 4) and one more.
inline void ji_mma_m16n8k16_bf16(float* d, const uint32_t* a, const uint32_t* b) {
  struct Fragment { uint32_t a[4], b[2]; } mine;
  memcpy(mine.a, a, sizeof mine.a);
  memcpy(mine.b, b, sizeof mine.b);
  const emulation::Slot* lanes = emulation::exchange(emulation::MULTIPLY_MATRICES, ~0u, __LINE__, emulation::pack(mine));
  unsigned row = emulation::here.lane >> 2, column = (emulation::here.lane & 3) * 2;
  for (unsigned i = 0; i < 4; i++) {
    float sum = 0;
    for (unsigned k = 0; k < 16; k++) {
      unsigned lane = (k & 7) >> 1, half = k >> 3, shift = 16 * (k & 1);
      Fragment left = emulation::unpack<Fragment>(lanes[row * 4 + lane]);
      Fragment right = emulation::unpack<Fragment>(lanes[(column + (i & 1)) * 4 + lane]);
      sum += emulation::from_bfloat16(uint16_t(left.a[half * 2 + (i >> 1)] >> shift)) *
             emulation::from_bfloat16(uint16_t(right.b[half] >> shift));
    }
    d[i] += sum;
  }
}
