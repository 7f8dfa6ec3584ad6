// A driver of CUDA without a GPU: the host's memory is the device's, and work is done when it is asked for.
//
// It is strict where the real one is undefined: handles must be its own, work needs the current context, memory must be allocated,
// and what may not happen while a graph is recorded fails. `FAKE_CUDA_INIT` is what `cuInit` gives.

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#define API extern "C" __attribute__((visibility("default"))) int
typedef void *Handle;
typedef unsigned long long Address;

enum { OK = 0, INVALID = 1, NO_MEMORY = 2, NO_CONTEXT = 201, NO_HANDLE = 400, NOT_FOUND = 500, ILLEGAL = 700, CAPTURE = 900 };

struct Function { std::string name; int shared = 48 << 10; };
struct Node { std::function<void()> work; Function *function = nullptr; };  // of a launch, its function
struct Condition;
struct Graph { std::vector<Node *> nodes; Graph *whole = this; std::set<Condition *> conditions; std::set<Graph *> bodies; };
struct Condition { Graph *graph; bool is_taken = false, is_set = false; unsigned value = 0; };
struct Executable { Graph *graph; std::vector<std::function<void()>> work; };
struct Launch { Function *function; unsigned gx, gy, gz, bx, by, bz, shared; void **parameters, **extra; void *kernel, *context; };

static thread_local std::vector<Handle> contexts;
static const Handle CONTEXT = (Handle)0x1000, POOL = (Handle)0x2000;
static std::map<Address, size_t> memory, pinned;
static std::set<Handle> streams, events, modules, graphs, executables;
static std::set<Condition *> conditions;
static Graph *recorded = nullptr, *running = nullptr;
static int sticky = OK, retained = 0;
static size_t limit = 1 << 26, used = 0;
static Handle next = (Handle)0x10000;

static Handle fresh(std::set<Handle> &kind) { kind.insert(next = (char *)next + 16); return next; }
static int forget(std::set<Handle> &kind, Handle h) { return kind.erase(h) ? OK : NO_HANDLE; }

static int ready() {
  if (sticky) return sticky;
  return contexts.empty() || contexts.back() != CONTEXT ? NO_CONTEXT : OK;
}
static bool holds(const std::map<Address, size_t> &kind, Address at, size_t n) {
  auto after = kind.upper_bound(at);
  if (after == kind.begin()) return false;
  auto block = std::prev(after);
  return at + n <= block->first + block->second;
}
static int ask(Handle stream, std::function<void()> work) {
  if (int status = ready()) return status;
  if (!streams.count(stream) && (size_t)stream > 2) return NO_HANDLE;  // 1 and 2 are streams that all processes have
  if (recorded) recorded->nodes.push_back(new Node{work}); else work();
  return OK;
}

API cuInit(unsigned) { const char *text = getenv("FAKE_CUDA_INIT"); return text ? atoi(text) : OK; }
API cuDriverGetVersion(int *version) { const char *text = getenv("FAKE_CUDA_VERSION"); *version = text ? atoi(text) : 13000; return OK; }
API cuDeviceGetCount(int *count) { *count = 1; return OK; }
API cuDeviceGet(int *device, int ordinal) { *device = ordinal; return ordinal ? 101 : OK; }
API cuDeviceGetName(char *name, int length, int) { strncpy(name, "NVIDIA H100 80GB HBM3", length); return OK; }
API cuDeviceGetAttribute(int *value, int attribute, int) {
  std::map<int, int> known = {{75, 9}, {76, 0}, {115, 1}, {16, 132}, {97, 232448}, {36, 2619000}, {37, 5120}};
  *value = known.count(attribute) ? known[attribute] : 0;
  return OK;
}
API cuGetErrorString(int status, const char **text) { *text = status == NO_HANDLE ? "invalid handle" : "some error"; return OK; }
API cuGetErrorName(int, const char **text) { *text = "CUDA_ERROR"; return OK; }

API cuDevicePrimaryCtxRetain(Handle *context, int) { retained++; *context = CONTEXT; return OK; }
API cuDevicePrimaryCtxRelease_v2(int) { return retained-- ? OK : INVALID; }
API cuCtxGetCurrent(Handle *context) { *context = contexts.empty() ? nullptr : contexts.back(); return OK; }
API cuCtxSetCurrent(Handle context) { if (!contexts.empty()) contexts.pop_back(); contexts.push_back(context); return OK; }
API cuCtxPushCurrent_v2(Handle context) { contexts.push_back(context); return OK; }
API cuCtxPopCurrent_v2(Handle *context) { *context = contexts.back(); contexts.pop_back(); return OK; }

API cuStreamCreate(Handle *stream, unsigned flags) { if (flags != 1) return INVALID; *stream = fresh(streams); return ready(); }
API cuStreamDestroy_v2(Handle stream) { return forget(streams, stream); }
API cuStreamSynchronize(Handle stream) { return recorded ? CAPTURE : ask(stream, [] {}); }
API cuStreamWaitEvent(Handle stream, Handle event, unsigned flags) { return flags || !events.count(event) ? INVALID : ask(stream, [] {}); }
API cuEventCreate(Handle *event, unsigned flags) { if (flags != 2) return INVALID; *event = fresh(events); return ready(); }
API cuEventRecord(Handle event, Handle stream) { return events.count(event) && (streams.count(stream) || (size_t)stream <= 2) ? ready() : NO_HANDLE; }
API cuEventSynchronize(Handle event) { return events.count(event) ? ready() : NO_HANDLE; }
API cuEventDestroy_v2(Handle event) { return forget(events, event); }

API cuMemGetInfo_v2(size_t *free, size_t *total) { *free = limit - used; *total = limit; return ready(); }
API cuMemPoolCreate(Handle *pool, const int *properties) {
  *pool = POOL;
  return properties[0] == 1 && properties[2] == 1 && properties[3] == 0 ? ready() : INVALID;  // pinned, of device 0
}
API cuMemPoolDestroy(Handle pool) { for (auto &[at, n] : memory) free((void *)at); memory.clear(); return pool == POOL ? OK : NO_HANDLE; }
API cuMemPoolSetAttribute(Handle pool, int attribute, void *value) {
  const char *most = getenv("JITML_DEVICE_BYTES");
  const size_t all = most ? std::min<size_t>(limit, strtoull(most, nullptr, 10)) : limit;
  return pool == POOL && attribute == 4 && *(uint64_t *)value == all / 4 ? OK : INVALID;
}
API cuMemPoolGetAttribute(Handle, int attribute, void *value) { *(uint64_t *)value = used; return attribute == 5 || attribute == 7 ? OK : INVALID; }
API cuMemPoolTrimTo(Handle, size_t) { return ready(); }
API cuMemAllocFromPoolAsync(Address *at, size_t n, Handle pool, Handle stream) {
  if (recorded || pool != POOL || !streams.count(stream)) return INVALID;
  if (int status = ready()) return status;
  if (used + n > limit) return NO_MEMORY;
  *at = (Address)aligned_alloc(256, (n + 255) / 256 * 256);
  memory[*at] = n; used += n;
  return OK;
}
API cuMemFreeAsync(Address at, Handle stream) {
  if (recorded) return CAPTURE;
  if (!memory.count(at)) return INVALID;
  return ask(stream, [=] { used -= memory[at]; memory.erase(at); free((void *)at); });
}
API cuMemHostAlloc(void **at, size_t n, unsigned flags) { if (flags) return INVALID; *at = malloc(n); pinned[(Address)*at] = n; return ready(); }
API cuMemFreeHost(void *at) { if (!pinned.erase((Address)at)) return INVALID; free(at); return OK; }
API cuMemcpyHtoDAsync_v2(Address to, const void *from, size_t n, Handle stream) {
  if (recorded || !holds(memory, to, n) || !holds(pinned, (Address)from, n)) return INVALID;
  return ask(stream, [=] { memcpy((void *)to, from, n); });
}
API cuMemcpyDtoHAsync_v2(void *to, Address from, size_t n, Handle stream) {
  if (recorded || !holds(memory, from, n) || !holds(pinned, (Address)to, n)) return INVALID;
  return ask(stream, [=] { memcpy(to, (void *)from, n); });
}
API cuMemcpyDtoDAsync_v2(Address to, Address from, size_t n, Handle stream) {
  if (!holds(memory, to, n) || !holds(memory, from, n)) return INVALID;
  return ask(stream, [=] { memcpy((void *)to, (void *)from, n); });
}
API cuMemsetD8Async(Address at, unsigned char byte, size_t n, Handle stream) {
  return holds(memory, at, n) ? ask(stream, [=] { memset((void *)at, byte, n); }) : INVALID;
}

API cuModuleLoadData(Handle *module, const void *image) { if (memcmp(image, "\177ELF", 4)) return 200; *module = fresh(modules); return ready(); }
API cuModuleUnload(Handle module) { return forget(modules, module); }
API cuModuleGetFunction(Function **function, Handle module, const char *name) {
  if (!modules.count(module)) return NO_HANDLE;
  if (strcmp(name, "add_one") && strcmp(name, "fault") && strcmp(name, "count_down")) return NOT_FOUND;
  *function = new Function{name};
  return ready();
}
API cuFuncSetAttribute(Function *function, int attribute, int value) { if (attribute != 8) return INVALID; function->shared = value; return ready(); }
static int work_of(const Launch &l, std::function<void()> &work) {
  if (l.extra || !l.gx || l.gy != 1 || l.gz != 1 || !l.bx || l.by != 1 || l.bz != 1 || (int)l.shared > l.function->shared) return INVALID;
  double *x = *(double **)l.parameters[0];
  long long n = *(long long *)l.parameters[1];
  if (!holds(memory, (Address)x, 8 * n)) return INVALID;
  work = [=] { for (long long i = 0; i < n; i++) x[i] += 1; };
  if (l.function->name == "count_down") {  // x[0] -= n, and two conditions are whether something is left, and whether nothing is
    Condition *left[] = {*(Condition **)l.parameters[2], *(Condition **)l.parameters[3]};
    if (!conditions.count(left[0]) || !conditions.count(left[1])) return INVALID;
    work = [=] {
      x[0] -= n;
      for (Condition *each : {left[0], left[1]}) {
        if (each->graph != running) sticky = ILLEGAL;
        each->is_set = true;
        each->value = (each == left[0]) == (x[0] > 0);
      }
    };
  }
  return OK;
}
API cuLaunchKernel(Function *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared,
                   Handle stream, void **parameters, void **extra) {
  if (function->name == "fault") { sticky = ILLEGAL; return ready(); }
  std::function<void()> work;
  if (int status = work_of({function, gx, gy, gz, bx, by, bz, shared, parameters, extra, nullptr, nullptr}, work)) return status;
  return ask(stream, work);
}

API cuStreamBeginCapture_v2(Handle stream, int mode) {
  if (recorded || mode != 2 || !streams.count(stream)) return INVALID;
  recorded = new Graph;
  return ready();
}
API cuStreamEndCapture(Handle, Graph **graph) { *graph = recorded; graphs.insert(recorded); recorded = nullptr; return ready(); }
// Nodes are done in the order in which they were added, and so each has to depend on the one before it.
static bool is_graph(Graph *graph) {
  return graphs.count(graph) || std::any_of(graphs.begin(), graphs.end(), [=](Handle h) { return ((Graph *)h)->bodies.count(graph); });
}
static int add(Graph *graph, Node **after, size_t count, Node node, Node **added) {
  if (!is_graph(graph)) return NO_HANDLE;
  if (count != !graph->nodes.empty() || (count && *after != graph->nodes.back())) return INVALID;
  graph->nodes.push_back(*added = new Node(node));
  return ready();
}
API cuGraphCreate(Graph **graph, unsigned flags) { graphs.insert(*graph = new Graph); return flags ? INVALID : ready(); }
API cuGraphGetNodes(Graph *graph, Node **nodes, size_t *count) {
  *count = graph->nodes.size();
  return nodes || !graphs.count(graph) ? INVALID : ready();
}
API cuGraphAddKernelNode_v2(Node **added, Graph *graph, Node **after, size_t count, const Launch *launch) {
  Node node{{}, launch->function};
  if (int status = launch->kernel || recorded ? INVALID : work_of(*launch, node.work)) return status;
  return add(graph, after, count, node, added);
}
API cuGraphAddChildGraphNode(Node **added, Graph *graph, Node **after, size_t count, Graph *child) {
  if (!graphs.count(child) || child->nodes.empty()) return INVALID;
  std::vector<Node> nodes;
  for (Node *node : child->nodes) nodes.push_back(*node);
  return add(graph, after, count, Node{[=] { for (auto &node : nodes) node.work(); }}, added);
}
API cuGraphConditionalHandleCreate(Condition **condition, Graph *graph, Handle context, unsigned, unsigned flags) {
  if (!graphs.count(graph) || context != CONTEXT || flags) return INVALID;
  conditions.insert(*condition = new Condition{graph});
  graph->conditions.insert(*condition);
  return ready();
}
struct NodeParameters { int type, reserved[3]; Condition *condition; int kind; unsigned size; Graph **bodies; Handle context; };
API cuGraphAddNode_v2(Node **added, Graph *graph, Node **after, const void *data, size_t count, NodeParameters *given) {
  Condition *condition = given->condition;
  const bool repeats = given->kind == 1;
  if (data || given->type != 13 || given->kind > 1 || given->size != 1 || given->context != CONTEXT) return INVALID;
  if (!is_graph(graph) || !conditions.count(condition) || condition->is_taken || condition->graph != graph->whole) return INVALID;
  condition->is_taken = true;
  Graph *body = new Graph;
  body->whole = graph->whole;
  graph->whole->bodies.insert(body);
  given->bodies = new Graph *[1]{body};
  auto work = [=] {
    do {
      if (!condition->is_set) sticky = ILLEGAL;
      if (sticky || !condition->value) return;
      for (Node *node : body->nodes) node->work();
    } while (repeats);
  };
  return add(graph, after, count, Node{work}, added);
}
API cuGraphInstantiateWithFlags(Executable **executable, Graph *graph, unsigned long long flags) {
  for (Condition *each : graph->conditions) if (!each->is_taken) return INVALID;
  *executable = new Executable{graph, {}};
  for (Node *node : graph->nodes) (*executable)->work.push_back(node->work);
  executables.insert(*executable);
  return flags ? INVALID : ready();
}
API cuGraphExecKernelNodeSetParams_v2(Executable *executable, Node *node, const Launch *launch) {
  if (!executables.count(executable) || !graphs.count(executable->graph)) return NO_HANDLE;  // whose node it is
  auto &nodes = executable->graph->nodes;
  for (size_t n = 0; n < nodes.size(); n++)
    if (nodes[n] == node && node->function == launch->function && !launch->kernel) return work_of(*launch, executable->work[n]);
  return INVALID;
}
API cuGraphDestroy(Handle graph) { return forget(graphs, graph); }
API cuGraphLaunch(Executable *executable, Handle stream) {
  if (!executables.count(executable)) return NO_HANDLE;
  running = executable->graph;
  for (Condition *each : running->conditions) each->is_set = false;
  for (auto &work : executable->work) if (int status = ask(stream, work)) return status;
  running = nullptr;
  return OK;
}
API cuGraphExecDestroy(Handle executable) { return forget(executables, executable); }

// What is there and has not been given back: memory, pinned memory, streams, events, modules, graphs, contexts.
API fake_left(int *counts) {
  size_t all[] = {memory.size(), pinned.size(), streams.size(), events.size(), modules.size(), graphs.size() + executables.size(),
                  (size_t)retained};
  for (int n = 0; n < 7; n++) counts[n] = (int)all[n];
  return OK;
}
API fake_push_context(Handle context) { contexts.push_back(context); return OK; }
API fake_context(Handle *context) { return cuCtxGetCurrent(context); }

API cuGetProcAddress_v2(const char *name, void **function, int, uint64_t, int *found) {
  std::string names[] = {std::string(name) + "_v2", name, std::string(name) + "WithFlags"};
  *function = nullptr;
  for (auto &each : names)
    if (!*function) {
      static void *self = dlopen(getenv("FAKE_CUDA_LIBRARY"), RTLD_NOW | RTLD_NOLOAD);
      *function = dlsym(self, each.c_str());
    }
  if (found) *found = *function ? 0 : 1;
  return *function ? OK : NOT_FOUND;
}
