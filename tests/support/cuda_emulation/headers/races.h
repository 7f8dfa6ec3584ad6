// Races: what the scheduler tells of its threads, and what it is told of their accesses.
#pragma once
#include <stddef.h>
#include <stdint.h>

namespace emulation {

// The thread that runs, as the races of its accesses are judged.
struct Accessor {
  uint16_t thread;
  uint16_t synchronizations;        // of its warp, since the block began
  const char *stack, *stack_end;    // nobody else knows of what lies here
};
extern Accessor accessor;
extern bool looks_for_races;

struct Range {
  const char* start;
  size_t bytes;
  bool has(const char* at) const { return at >= start && at < start + bytes; }
};
// Each block has its own shared memory, though all find it at the same place.
void begin_races_of_launch(Range shared, Range dynamic_shared);
void begin_races_of_block();
void begin_races_of_phase();        // a barrier has been passed
enum Access { READ, WRITE, ATOMIC };
// The traffic that accesses make, if it is counted (traffic.cpp).
extern bool counts_traffic;
void note_traffic(uintptr_t byte, size_t bytes, bool is_shared, const void* code);
void begin_traffic_of_block();
void end_traffic_of_launch();
void note_access(const void* at, size_t bytes, Access access, const void* code);

}  // namespace emulation
