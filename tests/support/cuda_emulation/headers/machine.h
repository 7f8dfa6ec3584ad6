// The emulated machine, as kernels and their collectives see it: where a thread stands, and what it may ask of the scheduler.
// machine.cpp has the rest; it is compiled once, and kernels are linked with it.
#pragma once
#include <stddef.h>
#include <stdint.h>

struct uint3 { unsigned x, y, z; };
struct dim3 {
  unsigned x, y, z;
  constexpr dim3(unsigned a = 1, unsigned b = 1, unsigned c = 1) : x(a), y(b), z(c) {}
};

namespace emulation {

// Where the thread that runs stands; the scheduler sets it whenever a thread goes on.
struct Place {
  uint3 thread, block;
  dim3 block_size, grid_size;
  unsigned lane;
  unsigned warp_lanes;          // those that there are in this warp: the last one of a block may be short
  unsigned char* dynamic_shared;
};
extern Place here;

// What a lane hands to the others of its warp.
struct Slot { uint64_t words[8]; };
enum Operation { SHUFFLE = 1, VOTE, SYNCHRONIZE, MATCH, REDUCE, LOAD_MATRIX, MULTIPLY_MATRICES };
struct Votes { int count, all, any; };

[[noreturn]] void fail(const char* what, int line);
[[noreturn]] void fail_at(const char* what, const void* code);  // the address of an instruction, or after it
void barrier(int line);
Votes voting_barrier(int predicate, int line);
// All lanes of `mask` hand in a slot and get all of them; each waits until the last one has come.
const Slot* exchange(Operation operation, uint32_t mask, int line, const Slot& mine);

void note_atomic(const void* at, size_t bytes, const void* code);

// Asynchronous copies are made when they are waited for, not before: a missing wait shows.
void start_copy(void* to, const void* from, unsigned bytes);
void commit_copies();
void wait_for_copies(int groups_left);

struct Start {
  void (*call)(void**);
  void** arguments;
  const unsigned *grid, *block;
  size_t dynamic_shared;
  unsigned order;               // 0 ascending, 1 descending, else the seed of a shuffle that is renewed at every phase
  void* anchor;                 // a variable among the shared ones of the kernel
};
int launch(const Start& start); // not 0: a fault, see emulation_error

}  // namespace emulation
