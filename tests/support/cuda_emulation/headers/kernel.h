// All that a kernel's source sees; build.py compiles it once ahead.
#pragma once
#include "collectives.h"
#include "intrinsics.h"
#include "language.h"
#include "machine.h"
#include "wrappers.h"

namespace emulation {
// What is read of parameters is no access.
template <class T> __attribute__((no_sanitize("thread"), noinline)) T parameter(void** arguments, size_t n) {
  return *static_cast<T*>(arguments[n]);
}
template <class... A, size_t... I> inline void apply(void (*kernel)(A...), void** arguments, std::index_sequence<I...>) {
  kernel(parameter<std::remove_cv_t<std::remove_reference_t<A>>>(arguments, I)...);
}
template <class... A> inline void call(void (*kernel)(A...), void** arguments) {
  apply(kernel, arguments, std::index_sequence_for<A...>{});
}
}  // namespace emulation

static thread_local char emulation_anchor;  // by which the machine finds the shared arrays

#define EMULATION_EXPORT(name, kernel)                                                                                     \
  extern "C" int name(const unsigned* grid, const unsigned* block, size_t dynamic_shared, unsigned order, void** arguments) { \
    emulation_anchor = 0;                                                                                                  \
    auto run = [](void** a) { ::emulation::call(&kernel, a); };                                                            \
    return ::emulation::launch({run, arguments, grid, block, dynamic_shared, order, &emulation_anchor});                   \
  }
