// A machine that runs CUDA threads as fibers: a block at a time, on the thread that launches.
//
// A fiber runs until it ends or meets a collective (a barrier of its block, an operation of its warp). The scheduler finds
// what a device leaves undefined: barriers that threads meet apart, operations of a warp that wait for lanes that are gone,
// reads of lanes outside the mask, accesses of memory that is not there. Shared memory is all ones, NaN in every format,
// before each block.
#include "machine.h"

#include "races.h"

#include <algorithm>
#include <csetjmp>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <link.h>
#include <mutex>
#include <pthread.h>
#include <sys/mman.h>
#include <utility>
#include <vector>

#if defined(__x86_64__) && !defined(EMULATION_UCONTEXT)
#define OWN_SWITCH 1
// Saves the registers that a call keeps on the old stack and takes them from the new one: some 15 times faster than swapcontext,
// which asks the system for the mask of signals.
extern "C" __attribute__((visibility("hidden"))) void emulation_switch(void** save, void* load);
asm(R"(
.text
.hidden emulation_switch
.globl emulation_switch
.type emulation_switch,@function
emulation_switch:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp,(%rdi)
  movq %rsi,%rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size emulation_switch,.-emulation_switch
)");
#endif
#include <ucontext.h>

namespace emulation {

Place here;

namespace {

constexpr size_t STACK_BYTES = 128 << 10, PAGE = 4096, DYNAMIC_ALIGNMENT = 1024;
constexpr unsigned MOST_THREADS = 1024;

enum class State : uint8_t { fresh, ready, at_barrier, in_warp_operation, done };
struct Copy { void* to; const void* from; unsigned bytes; int group; };
struct Thread {
  char* stack = nullptr;
  uint3 index{};
  unsigned number = 0;
  State state = State::fresh;
  int line = 0, group = 0;
  std::vector<Copy> copies;
#ifdef OWN_SWITCH
  void* stack_pointer = nullptr;
#else
  ucontext_t context;
#endif
};
struct Meeting { uint32_t mask, arrived; Operation operation; Slot in[32], out[32]; };
struct Warp { uint32_t lanes; uint16_t synchronizations; std::vector<Meeting*> meetings; };
struct Counts { uint64_t threads, barriers, exchanges, switches; };

struct Machine {
  std::mutex lock;
  pthread_t owner{};
  sigjmp_buf at_fault;
  char error[512] = {0};
  const void* fault = nullptr;  // where in the code
  Counts counts{};
  const Start* start = nullptr;
  Thread* running = nullptr;
  std::vector<Thread> threads;
  std::vector<Warp> warps;
  std::vector<unsigned> order;
  std::vector<char*> free_stacks;
  std::vector<unsigned char> dynamic;
  char* shared = nullptr;
  size_t shared_bytes = 0;
  Votes votes{0, 1, 0}, outcome{0, 1, 0};
#ifdef OWN_SWITCH
  void* scheduler = nullptr;
#else
  ucontext_t scheduler;
#endif
} machine;

// ---------------------------------------------------------------------------------------------------------------- fibers
void to_scheduler() {
  machine.counts.switches++;
#ifdef OWN_SWITCH
  emulation_switch(&machine.running->stack_pointer, machine.scheduler);
#else
  swapcontext(&machine.running->context, &machine.scheduler);
#endif
}

[[noreturn]] void run_fiber() {
  machine.start->call(machine.start->arguments);
  machine.running->state = State::done;
  to_scheduler();
  std::abort();  // nothing resumes a thread that is done
}

char* take_stack() {
  if (!machine.free_stacks.empty()) {
    char* stack = machine.free_stacks.back();
    machine.free_stacks.pop_back();
    return stack;
  }
  void* memory = mmap(nullptr, STACK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) fail("no memory for the stack of a thread", 0);
  mprotect(memory, PAGE, PROT_NONE);  // a stack that overflows faults
  return static_cast<char*>(memory);
}

void give_back_stack(Thread& thread) {
  if (thread.stack) machine.free_stacks.push_back(std::exchange(thread.stack, nullptr));
}

void prepare(Thread& thread) {
  thread.stack = take_stack();
#ifdef OWN_SWITCH
  void** top = reinterpret_cast<void**>(thread.stack + STACK_BYTES);
  std::fill(top - 8, top, nullptr);
  top[-2] = reinterpret_cast<void*>(&run_fiber);  // where emulation_switch returns to; the call's own return address stands above
  thread.stack_pointer = top - 8;
#else
  getcontext(&thread.context);
  thread.context.uc_stack.ss_sp = thread.stack;
  thread.context.uc_stack.ss_size = STACK_BYTES;
  thread.context.uc_link = nullptr;
  makecontext(&thread.context, reinterpret_cast<void (*)()>(run_fiber), 0);
#endif
}

void resume(Thread& thread) {
  machine.running = &thread;
  if (thread.state == State::fresh) prepare(thread);
  thread.state = State::ready;
  here.thread = thread.index;
  here.lane = thread.number & 31;
  here.warp_lanes = machine.warps[thread.number >> 5].lanes;
  accessor.thread = thread.number;
  accessor.synchronizations = machine.warps[thread.number >> 5].synchronizations;
  accessor.stack = thread.stack;
  accessor.stack_end = thread.stack + STACK_BYTES;
#ifdef OWN_SWITCH
  emulation_switch(&machine.scheduler, thread.stack_pointer);
#else
  swapcontext(&machine.scheduler, &thread.context);
#endif
  if (thread.state == State::done) {
    if (!thread.copies.empty()) fail("a thread ended with asynchronous copies not waited for", 0);
    give_back_stack(thread);
  }
  machine.running = nullptr;
}

// ------------------------------------------------------------------------------------------------------------- scheduler
unsigned draw(uint32_t& seed) {
  seed ^= seed << 13;
  seed ^= seed >> 17;
  seed ^= seed << 5;
  return seed;
}

void reset_block(unsigned count) {
  if (machine.shared_bytes) std::memset(machine.shared, 0xFF, machine.shared_bytes);
  if (!machine.dynamic.empty()) std::memset(machine.dynamic.data(), 0xFF, machine.dynamic.size());
  const dim3& size = here.block_size;
  for (unsigned i = 0; i < count; i++) {
    Thread& thread = machine.threads[i];
    thread.state = State::fresh;
    thread.number = i;
    thread.group = 0;
    thread.copies.clear();
    thread.index = {i % size.x, i / size.x % size.y, i / (size.x * size.y)};
  }
  for (unsigned w = 0; w < machine.warps.size(); w++) {
    unsigned lanes = std::min(32u, count - w * 32);
    machine.warps[w].synchronizations = 0;
    machine.warps[w].lanes = lanes == 32 ? ~0u : (1u << lanes) - 1;
    for (Meeting* meeting : machine.warps[w].meetings) meeting->arrived = 0;
  }
  machine.votes = {0, 1, 0};
  machine.counts.threads += count;
  begin_races_of_block();
}

bool go_on(unsigned i) {
  Thread& thread = machine.threads[i];
  if (thread.state > State::ready) return false;
  resume(thread);
  return true;
}

// Run threads until each waits for a barrier, for lanes that do not come, or is done.
void run_phase(unsigned order, uint32_t& seed) {
  unsigned count = machine.threads.size();
  for (unsigned i = 0; i < count; i++) machine.order[i] = order == 1 ? count - 1 - i : i;
  if (order > 1) {
    for (unsigned i = count; i > 1; i--) std::swap(machine.order[i - 1], machine.order[draw(seed) % i]);
  }
  unsigned step = order > 1 ? count : 32;  // a warp after the other keeps what it works on in the cache
  for (bool progress = true; progress;) {
    progress = false;
    for (unsigned first = 0; first < count; first += step) {
      for (bool again = true; again; progress |= again) {
        again = false;
        for (unsigned i = first; i < std::min(count, first + step); i++) again |= go_on(machine.order[i]);
      }
    }
  }
}

// Whether all are done; else lets those at a barrier pass it.
bool end_phase() {
  unsigned done = 0;
  Thread* first = nullptr;
  for (Thread& thread : machine.threads) {
    if (thread.state == State::in_warp_operation) {
      machine.running = &thread;
      fail("an operation of a warp waits for lanes that have ended or never come", thread.line);
    }
    if (thread.state == State::done) done++;
    else if (!first) first = &thread;
  }
  if (!first) return true;
  machine.running = first;
  for (Thread& thread : machine.threads) {
    bool waits = thread.state == State::at_barrier;
    if (waits && thread.line != first->line) fail("threads of a block meet at different barriers", first->line);
  }
  if (done) fail("a barrier waits for threads that have ended", first->line);
  machine.running = nullptr;
  machine.counts.barriers++;
  begin_races_of_phase();
  machine.outcome = std::exchange(machine.votes, Votes{0, 1, 0});
  for (Thread& thread : machine.threads) thread.state = State::ready;
  return false;
}

void run_grid(const Start& start) {
  uint32_t seed = start.order * 2654435761u + 1;
  uint64_t x = start.grid[0], y = start.grid[1], count = x * y * start.grid[2];
  for (uint64_t k = 0; k < count; k++) {
    uint64_t i = start.order == 1 ? count - 1 - k : k;
    here.block = {unsigned(i % x), unsigned(i / x % y), unsigned(i / (x * y))};
    reset_block(machine.threads.size());
    do run_phase(start.order, seed);
    while (!end_phase());
  }
}

// ---------------------------------------------------------------------------------------------------------------- faults
void on_signal(int number, siginfo_t* info, void* context) {
  if (!pthread_equal(pthread_self(), machine.owner)) {  // not ours: it comes again, with the handler that there was before us
    std::signal(number, SIG_DFL);
    return;
  }
  char text[160];
  const char* what = number == SIGILL ? "misaligned access, or an index outside its array"
                     : number == SIGFPE ? "arithmetic fault"
                     : info->si_code == SI_KERNEL ? "misaligned access"
                                                  : "illegal memory access";
  if (number == SIGSEGV && info->si_code != SI_KERNEL) std::snprintf(text, sizeof text, "%s at address %p", what, info->si_addr);
  else std::snprintf(text, sizeof text, "%s", what);
#ifdef __x86_64__
  fail_at(text, reinterpret_cast<void*>(static_cast<ucontext_t*>(context)->uc_mcontext.gregs[REG_RIP] + 1));
#else
  fail(text, 0);
#endif
}

class Handlers {
  static constexpr int NUMBERS[4] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL};
  alignas(16) static char stack_[64 << 10];
  struct sigaction before_[4];
  stack_t stack_before_;

 public:
  Handlers() {
    stack_t stack{};
    stack.ss_sp = stack_;
    stack.ss_size = sizeof stack_;
    sigaltstack(&stack, &stack_before_);
    struct sigaction action{};
    action.sa_sigaction = on_signal;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK;
    for (int i = 0; i < 4; i++) sigaction(NUMBERS[i], &action, &before_[i]);
  }
  ~Handlers() {
    for (int i = 0; i < 4; i++) sigaction(NUMBERS[i], &before_[i], nullptr);
    sigaltstack(&stack_before_, nullptr);
  }
};
alignas(16) char Handlers::stack_[64 << 10];

void clean_up() {
  for (Thread& thread : machine.threads) give_back_stack(thread);
  for (Warp& warp : machine.warps) {
    for (Meeting* meeting : warp.meetings) delete meeting;
    warp.meetings.clear();
  }
}

// Shared arrays are thread-local variables of the kernel's library: one block of memory for each thread of the system.
int find_shared(dl_phdr_info* info, size_t, void* anchor) {
  char *memory = static_cast<char*>(info->dlpi_tls_data), *variable = static_cast<char*>(anchor);
  for (int i = 0; memory && i < info->dlpi_phnum; i++) {
    size_t bytes = info->dlpi_phdr[i].p_memsz;
    if (info->dlpi_phdr[i].p_type == PT_TLS && memory <= variable && variable < memory + bytes) {
      machine.shared = memory;
      machine.shared_bytes = bytes;
      return 1;
    }
  }
  return 0;
}

}  // namespace

void fail(const char* what, int line) {
  const uint3& block = here.block;
  int used = std::snprintf(machine.error, sizeof machine.error, "%s (", what);
  if (line) used += std::snprintf(machine.error + used, sizeof machine.error - used, "line %d, ", line);
  used += std::snprintf(machine.error + used, sizeof machine.error - used, "block %u,%u,%u", block.x, block.y, block.z);
  if (machine.running) {
    const uint3& thread = machine.running->index;
    used += std::snprintf(machine.error + used, sizeof machine.error - used, ", thread %u,%u,%u", thread.x, thread.y, thread.z);
  }
  std::snprintf(machine.error + used, sizeof machine.error - used, ")");
  siglongjmp(machine.at_fault, 1);
}

void fail_at(const char* what, const void* code) {
  machine.fault = code;
  fail(what, 0);
}

int launch(const Start& start) {
  std::lock_guard<std::mutex> hold(machine.lock);
  machine.error[0] = 0;
  machine.fault = nullptr;
  machine.counts = {};
  machine.start = &start;
  machine.running = nullptr;
  machine.owner = pthread_self();
  here.grid_size = {start.grid[0], start.grid[1], start.grid[2]};
  here.block_size = {start.block[0], start.block[1], start.block[2]};
  unsigned count = start.block[0] * start.block[1] * start.block[2];
  if (!count || count > MOST_THREADS) {
    std::snprintf(machine.error, sizeof machine.error, "a block of %u threads", count);
    return 1;
  }
  machine.threads.resize(count);
  machine.order.resize(count);
  machine.warps.resize((count + 31) / 32);
  machine.dynamic.resize(start.dynamic_shared ? start.dynamic_shared + DYNAMIC_ALIGNMENT : 0);
  uintptr_t dynamic = reinterpret_cast<uintptr_t>(machine.dynamic.data());
  here.dynamic_shared = reinterpret_cast<unsigned char*>((dynamic + DYNAMIC_ALIGNMENT - 1) & ~(DYNAMIC_ALIGNMENT - 1));
  machine.shared = nullptr;
  machine.shared_bytes = 0;
  dl_iterate_phdr(find_shared, start.anchor);
  const char* dynamic_start = reinterpret_cast<const char*>(machine.dynamic.data());
  begin_races_of_launch({machine.shared, machine.shared_bytes}, {dynamic_start, machine.dynamic.size()});
  Handlers handlers;
  if (sigsetjmp(machine.at_fault, 1) == 0) run_grid(start);
  else clean_up();
  end_traffic_of_launch();
  return machine.error[0] != 0;
}

// ----------------------------------------------------------------------------------------------------------- collectives
void barrier(int line) {
  machine.running->line = line;
  machine.running->state = State::at_barrier;
  to_scheduler();
}

Votes voting_barrier(int predicate, int line) {
  machine.votes.count += predicate != 0;
  machine.votes.all &= predicate != 0;
  machine.votes.any |= predicate != 0;
  barrier(line);
  return machine.outcome;
}

const Slot* exchange(Operation operation, uint32_t mask, int line, const Slot& mine) {
  Thread& thread = *machine.running;
  Warp& warp = machine.warps[thread.number >> 5];
  uint32_t lane = thread.number & 31, me = 1u << lane;
  mask &= warp.lanes;
  if (!(mask & me)) fail("a lane takes part in an operation of its warp whose mask leaves it out", line);
  auto found = std::find_if(warp.meetings.begin(), warp.meetings.end(), [&](Meeting* m) { return m->mask == mask; });
  if (found == warp.meetings.end()) found = warp.meetings.insert(found, new Meeting{mask, 0, operation, {}, {}});
  Meeting& meeting = **found;
  if (meeting.arrived && meeting.operation != operation) fail("lanes of a warp meet in different operations", line);
  meeting.operation = operation;
  meeting.in[lane] = mine;
  meeting.arrived |= me;
  if (meeting.arrived != mask) {
    thread.line = line;
    thread.state = State::in_warp_operation;
    to_scheduler();
    return meeting.out;
  }
  std::memcpy(meeting.out, meeting.in, sizeof meeting.in);
  meeting.arrived = 0;
  machine.counts.exchanges++;
  if (operation == SYNCHRONIZE && mask == warp.lanes) accessor.synchronizations = ++warp.synchronizations;
  for (unsigned i = 0; i < 32; i++) {
    if ((mask >> i & 1) && i != lane) machine.threads[(thread.number & ~31u) + i].state = State::ready;
  }
  return meeting.out;
}

void note_atomic(const void* at, size_t bytes, const void* code) { note_access(at, bytes, ATOMIC, code); }

// --------------------------------------------------------------------------------------------------- asynchronous copies
void start_copy(void* to, const void* from, unsigned bytes) {
  machine.running->copies.push_back({to, from, bytes, machine.running->group});
}

void commit_copies() { machine.running->group++; }

void wait_for_copies(int groups_left) {
  Thread& thread = *machine.running;
  auto waited = [&](const Copy& copy) { return copy.group < thread.group - groups_left; };
  auto copy = thread.copies.begin();
  for (; copy != thread.copies.end() && waited(*copy); ++copy) {
    note_access(copy->from, copy->bytes, READ, nullptr);
    note_access(copy->to, copy->bytes, WRITE, nullptr);
    std::memcpy(copy->to, copy->from, copy->bytes);
  }
  thread.copies.erase(thread.copies.begin(), copy);
}

}  // namespace emulation

extern "C" const char* emulation_error() { return emulation::machine.error; }
// Where the fault was: the library's path is written, and the place of the instruction in it returned; 0 if nobody knows.
extern "C" size_t emulation_fault(char* path, size_t size) {
  Dl_info info{};
  if (!emulation::machine.fault || !dladdr(emulation::machine.fault, &info) || !info.dli_fname) return 0;
  std::snprintf(path, size, "%s", info.dli_fname);
  return static_cast<const char*>(emulation::machine.fault) - static_cast<char*>(info.dli_fbase) - 1;
}
extern "C" void emulation_look_for_races(int looks) { emulation::looks_for_races = looks; }
extern "C" void emulation_counts(uint64_t* counts) { std::memcpy(counts, &emulation::machine.counts, sizeof(emulation::Counts)); }

// A condition of a graph is a number of the emulated device's, and its handle the number's address.
extern "C" void cudaGraphSetConditional(unsigned long long handle, unsigned value) { *(unsigned*)handle = value; }
