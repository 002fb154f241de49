/* Writes down, five times a second, what malloc says that the program holds: a line
 * "ms in-use held" in $ASHLAR_MALLOC_INSIDE/PID. It asks whichever malloc is
 * in the process: jemalloc, tcmalloc or glibc. mimalloc does not tell. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static int (*mallctl)(const char *, void *, size_t *, void *, size_t);
static int (*property)(const char *, size_t *);
static void *mimalloc;

static size_t ask(const char *name) {
  size_t value = 0, length = sizeof value;
  if (mallctl)
    mallctl(name, &value, &length, 0, 0);
  else
    property(name, &value);
  return value;
}

static int inside(size_t *used, size_t *held) {
  if (mallctl) {
    size_t epoch = 1; /* has the figures counted again */
    mallctl("epoch", 0, 0, &epoch, sizeof epoch);
    *used = ask("stats.allocated");
    *held = ask("stats.resident");
  } else if (property) {
    *used = ask("generic.current_allocated_bytes");
    *held = ask("generic.heap_size") - ask("tcmalloc.pageheap_unmapped_bytes");
  } else if (mimalloc) {
    return 0;
  } else {
#if defined(__GLIBC__) && __GLIBC_PREREQ(2, 33)
    struct mallinfo2 m = mallinfo2();
    *used = m.uordblks + m.hblkhd;
    *held = m.arena + m.hblkhd;
#else
    return 0;
#endif
  }
  return 1;
}

static void *watch(void *unused) {
  char file[4096], line[96];
  snprintf(file, sizeof file, "%s/%d", getenv("ASHLAR_MALLOC_INSIDE"), (int)getpid());
  int to = -1;
  for (;; usleep(200000)) {
    size_t used, held;
    struct timespec now;
    if (!inside(&used, &held)) return unused;
    if (to < 0) to = open(file, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    clock_gettime(CLOCK_MONOTONIC, &now);
    int n = snprintf(line, sizeof line, "%lld %zu %zu\n", now.tv_sec * 1000LL + now.tv_nsec / 1000000, used, held);
    if (to < 0 || write(to, line, n) != n) return unused;
  }
}

static void start(void) {
  sigset_t all, before; /* signals are for the program's own threads */
  pthread_t thread;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  if (pthread_create(&thread, 0, watch, 0) == 0) pthread_detach(thread);
  pthread_sigmask(SIG_SETMASK, &before, 0);
}

__attribute__((constructor)) static void load(void) {
  if (!getenv("ASHLAR_MALLOC_INSIDE")) return;
  mallctl = dlsym(RTLD_DEFAULT, "mallctl");
  property = dlsym(RTLD_DEFAULT, "MallocExtension_GetNumericProperty");
  mimalloc = dlsym(RTLD_DEFAULT, "mi_malloc");
  pthread_atfork(0, 0, start); /* a forked child has no threads */
  start();
}
