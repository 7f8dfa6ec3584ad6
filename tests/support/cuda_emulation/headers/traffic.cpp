// Traffic: what do the accesses of a warp ask of memory? Sectors of 32 bytes of the device's, rounds of the shared memory's banks.
//
// Lanes of a warp access together what they access at one place of the code, each for the same time. That is how a device runs them
// where lanes have gone the same way; where they have not, it asks for no less.
#include "races.h"

#include "machine.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <set>
#include <tuple>

namespace emulation {

bool counts_traffic = false;

namespace {

constexpr uintptr_t SECTOR = 32, BANK = 4, BANKS = 32;

struct Totals { uint64_t global_bytes, sectors, shared_requests, shared_rounds; } totals;
struct Request {
  bool is_shared;
  std::set<uintptr_t> bytes;
};
typedef std::tuple<unsigned, const void*, unsigned> Site;  // a warp, or a thread; where in the code; how often before

std::map<Site, Request> requests;
std::map<Site, unsigned> times;
bool in_kernel = false;

// Of each bank, the words that are asked for, one a round. Wider accesses are taken in as many parts as they have words.
uint64_t rounds_of(const std::set<uintptr_t>& bytes) {
  std::map<uintptr_t, std::set<uintptr_t>> words;
  for (uintptr_t byte : bytes) words[byte / BANK % BANKS].insert(byte / BANK);
  size_t most = 0;
  for (auto& [bank, asked] : words) most = std::max(most, asked.size());
  return most;
}

uint64_t least_rounds(const std::set<uintptr_t>& bytes) {
  std::set<uintptr_t> words;
  for (uintptr_t byte : bytes) words.insert(byte / BANK);
  return (words.size() + BANKS - 1) / BANKS;
}

void add_requests() {
  for (auto& [site, request] : requests) {
    if (request.is_shared) {
      totals.shared_requests += least_rounds(request.bytes);
      totals.shared_rounds += rounds_of(request.bytes);
    } else {
      std::set<uintptr_t> sectors;
      for (uintptr_t byte : request.bytes) sectors.insert(byte / SECTOR);
      totals.global_bytes += request.bytes.size();
      totals.sectors += sectors.size();
    }
  }
  requests.clear();
  times.clear();
}

}  // namespace

void note_traffic(uintptr_t byte, size_t bytes, bool is_shared, const void* code) {
  if (!in_kernel) return;
  unsigned occurrence = times[{accessor.thread, code, 0}]++;
  Request& request = requests[{accessor.thread >> 5u, code, occurrence}];
  request.is_shared = is_shared;
  for (uintptr_t end = byte + bytes; byte < end; byte++) request.bytes.insert(byte);
}

void begin_traffic_of_block() {
  add_requests();
  in_kernel = true;
}

void end_traffic_of_launch() {
  add_requests();
  in_kernel = false;
}

}  // namespace emulation

extern "C" void emulation_count_traffic(int counts) {
  emulation::counts_traffic = counts;
  emulation::totals = {};
}
// Bytes of the device's memory that lanes have asked for, sectors that hold them; rounds of shared memory at least, and in truth.
extern "C" void emulation_traffic(uint64_t* traffic) {
  std::memcpy(traffic, &emulation::totals, sizeof(emulation::totals));
}
