/* Times each cudaMalloc and cudaFree of a program it is preloaded into:
 *   cc -O2 -shared -fPIC -o calls.so calls.c -ldl; LD_PRELOAD=./calls.so python3 ...
 * The program reads the calls through ctypes. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { CALLS = 1 << 16 };
struct call {
  uint64_t size; /* 0: cudaFree */
  uint64_t nanoseconds;
};
struct call calls[CALLS]; /* the first of the program's calls */
uint64_t calls_made;

/* The runtime is loaded by torch, out of reach of RTLD_NEXT. */
static void *real(const char *name) {
  static const char *const runtimes[] = {"libcudart.so.13", "libcudart.so.12", "libcudart.so.11.0"};
  for (size_t i = 0; i < sizeof runtimes / sizeof *runtimes; i++) {
    void *runtime = dlopen(runtimes[i], RTLD_LAZY | RTLD_NOLOAD);
    void *found = runtime ? dlsym(runtime, name) : NULL;
    if (found) return found;
  }
  fprintf(stderr, "calls.c: no CUDA runtime with %s is loaded\n", name);
  abort();
}

static uint64_t now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void add(size_t size, uint64_t since) {
  uint64_t took = now() - since, i = __atomic_fetch_add(&calls_made, 1, __ATOMIC_RELAXED);
  if (i < CALLS) calls[i] = (struct call){size, took};
}

int cudaMalloc(void **p, size_t size) {
  static int (*call)(void **, size_t);
  if (!call) call = (int (*)(void **, size_t))real("cudaMalloc");
  uint64_t begin = now();
  int result = call(p, size);
  add(size, begin);
  return result;
}

int cudaFree(void *p) {
  static int (*call)(void *);
  if (!call) call = (int (*)(void *))real("cudaFree");
  uint64_t begin = now();
  int result = call(p);
  add(0, begin);
  return result;
}
