// What the test programs share: they load the library as PyTorch does, by path
// and symbol, and leave with a line on standard error when something is wrong.
#ifndef ASHLAR_STANDIN_CHECK_H
#define ASHLAR_STANDIN_CHECK_H

#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>

#define CHECK(condition, ...)                                      \
  do {                                                             \
    if (!(condition)) {                                            \
      std::fprintf(stderr, "%s:%d: %s: ", __FILE__, __LINE__, #condition); \
      std::fprintf(stderr, __VA_ARGS__);                           \
      std::fputc('\n', stderr);                                    \
      std::exit(1);                                                \
    }                                                              \
  } while (0)

inline void *load(const char *path) {
  void *handle = dlopen(path, RTLD_NOW);
  CHECK(handle != nullptr, "%s", dlerror());
  return handle;
}

template <typename Function>
Function symbol(void *handle, const char *name) {
  void *address = dlsym(handle, name);
  CHECK(address != nullptr, "%s", dlerror());
  return reinterpret_cast<Function>(address);
}

using Malloc = void *(*)(size_t, int, void *);
using Free = void (*)(void *, size_t, int, void *);

#endif
