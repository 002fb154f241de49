/* Counts and times cudaMalloc and cudaFree of a program it is preloaded into:
 *   cc -O2 -shared -fPIC -o calls.so calls.c -ldl; LD_PRELOAD=./calls.so python3 ...
 * The program reads the numbers with calls_read, through ctypes. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { MALLOC, FREE };
static uint64_t count[2], nanoseconds[2];

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

static void add(int call, uint64_t since) {
  __atomic_fetch_add(&nanoseconds[call], now() - since, __ATOMIC_RELAXED);
  __atomic_fetch_add(&count[call], 1, __ATOMIC_RELAXED);
}

int cudaMalloc(void **p, size_t size) {
  static int (*call)(void **, size_t);
  if (!call) call = (int (*)(void **, size_t))real("cudaMalloc");
  uint64_t begin = now();
  int result = call(p, size);
  add(MALLOC, begin);
  return result;
}

int cudaFree(void *p) {
  static int (*call)(void *);
  if (!call) call = (int (*)(void *))real("cudaFree");
  uint64_t begin = now();
  int result = call(p);
  add(FREE, begin);
  return result;
}

/* Counts and nanoseconds of cudaMalloc, then of cudaFree. */
void calls_read(uint64_t out[4]) {
  for (int i = 0; i < 2; i++) {
    out[2 * i] = __atomic_load_n(&count[i], __ATOMIC_RELAXED);
    out[2 * i + 1] = __atomic_load_n(&nanoseconds[i], __ATOMIC_RELAXED);
  }
}
