// Races: two threads access a byte, one of them writes, and neither a barrier nor the end of a launch lies between.
//
// g++ calls `__tsan_*` at every access of a kernel (-fsanitize=thread); these functions are ours, and not the sanitizer's. For
// each byte they keep who wrote it last and who read it last. Blocks are never in any order among each other. An atomic
// operation races with plain writes alone.
#include "races.h"

#include "machine.h"

#include <cstdio>
#include <cstdlib>
#include <unordered_map>

namespace emulation {

Accessor accessor;
bool looks_for_races = true;

namespace {

constexpr uint16_t ALL = 0xFFFF, LANES = 0x8000, IS_ATOMIC = 0x4000;  // many threads; many lanes of a warp, whose number follows
constexpr size_t BYTES = 4096, MOST_PAGES = 2048;  // of a page; kept between launches

// Phases are numbered through all blocks and launches, so that nothing has to be cleared.
struct Record {
  uint32_t phase;
  uint16_t thread, synchronizations;
};
struct Cell { Record written, read; };

Range shared_memory[2];
uint32_t phase = 1, first_of_launch = 1, first_of_block = 1;
std::unordered_map<uintptr_t, Cell*> pages;
uintptr_t last_page = 0;
Cell* last_cells = nullptr;

Cell* cells_of(uintptr_t page) {
  if (page == last_page && last_cells) return last_cells;
  Cell*& cells = pages[page];
  if (!cells) cells = static_cast<Cell*>(std::calloc(BYTES, sizeof(Cell)));
  last_page = page;
  return last_cells = cells;
}

// Whether what is on record is neither before this access, nor this thread's own.
bool is_unordered(const Record& record, bool is_shared) {
  if (record.phase < first_of_launch) return false;
  if (record.phase < first_of_block) return !is_shared;
  if (record.phase != phase) return false;
  if (record.thread == ALL) return true;
  uint16_t thread = record.thread & ~IS_ATOMIC;
  unsigned warp = thread & LANES ? thread & ~LANES : thread >> 5;
  return thread != accessor.thread && (warp != accessor.thread >> 5u || record.synchronizations == accessor.synchronizations);
}

void note_reader(Record& record) {
  uint16_t thread = accessor.thread, warp = thread >> 5;
  bool others = record.phase == phase && record.thread != thread;
  if (others) {
    uint16_t before = record.thread & LANES ? record.thread & ~LANES : record.thread >> 5;
    if (record.thread == ALL || before != warp) thread = ALL;
    else if (record.synchronizations == accessor.synchronizations) thread = LANES | warp;
  }
  record = {phase, thread, accessor.synchronizations};
}

[[noreturn]] void report(const Record& record, Access access, const char* before, const void* at, const void* code) {
  char text[240];
  const char* now = access == READ ? "reads" : access == WRITE ? "writes" : "changes";
  const char* block = record.phase < first_of_block ? " in another block" : "";
  char who[40];
  if (record.thread == ALL || record.thread & LANES) std::snprintf(who, sizeof who, "other threads%s", block);
  else std::snprintf(who, sizeof who, "thread %u%s", record.thread & ~IS_ATOMIC, block);
  std::snprintf(text, sizeof text, "race: a thread %s what %s %s, with no barrier between, at address %p", now, who, before, at);
  fail_at(text, code);
}

}  // namespace

void begin_races_of_launch(Range shared, Range dynamic_shared) {
  shared_memory[0] = shared;
  shared_memory[1] = dynamic_shared;
  if (pages.size() > MOST_PAGES) {
    for (auto& [page, cells] : pages) std::free(cells);
    pages.clear();
    last_cells = nullptr;
  }
  first_of_launch = first_of_block = ++phase;
}

void begin_races_of_block() {
  if (counts_traffic) begin_traffic_of_block();
  first_of_block = ++phase;
}

void begin_races_of_phase() { ++phase; }

void note_access(const void* address, size_t bytes, Access access, const void* code) {
  const char* at = static_cast<const char*>(address);
  if (!(looks_for_races || counts_traffic) || (at >= accessor.stack && at < accessor.stack_end)) return;
  if (at >= reinterpret_cast<const char*>(&here) && at < reinterpret_cast<const char*>(&here + 1)) return;
  bool is_shared = shared_memory[0].has(at) || shared_memory[1].has(at);
  uintptr_t byte = reinterpret_cast<uintptr_t>(at);
  if (counts_traffic) note_traffic(byte, bytes, is_shared, code);
  if (!looks_for_races) return;
  for (uintptr_t end = byte + bytes; byte < end; byte++) {
    Cell& cell = cells_of(byte / BYTES)[byte % BYTES];
    bool both_atomic = access != WRITE && cell.written.thread != ALL && cell.written.thread & IS_ATOMIC;
    if (!both_atomic && is_unordered(cell.written, is_shared)) report(cell.written, access, "has written", at, code);
    if (access == WRITE && is_unordered(cell.read, is_shared)) report(cell.read, access, "has read", at, code);
    if (access == READ) note_reader(cell.read);
    else cell.written = {phase, uint16_t(accessor.thread | (access == ATOMIC ? IS_ATOMIC : 0)), accessor.synchronizations};
  }
}

}  // namespace emulation

#define ACCESS(name, bytes, access)                                                   \
  extern "C" void __tsan_##name(void* at) {                                           \
    ::emulation::note_access(at, bytes, ::emulation::access, __builtin_return_address(0)); \
  }
#define ACCESSES(bytes)                       \
  ACCESS(read##bytes, bytes, READ)            \
  ACCESS(write##bytes, bytes, WRITE)          \
  ACCESS(unaligned_read##bytes, bytes, READ)  \
  ACCESS(unaligned_write##bytes, bytes, WRITE) \
  ACCESS(volatile_read##bytes, bytes, READ)   \
  ACCESS(volatile_write##bytes, bytes, WRITE)
ACCESSES(1)
ACCESSES(2)
ACCESSES(4)
ACCESSES(8)
ACCESSES(16)
extern "C" void __tsan_read_range(void* at, unsigned long bytes) {
  emulation::note_access(at, bytes, emulation::READ, __builtin_return_address(0));
}
extern "C" void __tsan_write_range(void* at, unsigned long bytes) {
  emulation::note_access(at, bytes, emulation::WRITE, __builtin_return_address(0));
}
extern "C" void __tsan_init() {}
