/* usage: costs MILLISECONDS THREADS...
 * What the malloc of this process costs. It prints lines:
 *   class FROM USABLE       requests from FROM bytes on get USABLE bytes
 *   bytes SIZE EACH         memory for each of many blocks of SIZE bytes
 *   time SIZE THREADS NS    a malloc and a free by each of THREADS at once
 *   thread BYTES            memory that malloc keeps for an idle thread
 */
#define _GNU_SOURCE
#include <malloc.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static const size_t sizes[] = {16, 100, 256, 513, 1024, 4096, 16384, 65536, 100000, 1048576};
enum { SIZES = sizeof sizes / sizeof *sizes, CLASSES = 1 << 17, SLOTS = 64, IDLE = 32 };

static double seconds(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec + t.tv_nsec / 1e9;
}

static size_t resident(void) {
  FILE *f = fopen("/proc/self/statm", "r");
  size_t total = 0, pages = 0;
  if (!f || fscanf(f, "%zu %zu", &total, &pages) != 2) exit(2);
  fclose(f);
  return pages * sysconf(_SC_PAGESIZE);
}

static void *get(size_t size) {
  char *p = malloc(size);
  if (!p) exit(2);
  for (size_t i = 0; i < size; i += 1024) *(volatile char *)(p + i) = 1;
  *(volatile char *)(p + size - 1) = 1;
  return p;
}

static void classes(void) {
  size_t last = 0;
  for (size_t n = 1; n <= CLASSES; n += n < 4096 ? 1 : 64) {
    void *p = malloc(n);
    size_t usable = malloc_usable_size(p);
    free(p);
    if (usable != last) printf("class %zu %zu\n", n, usable);
    last = usable;
  }
}

/* In a process of its own, so that nothing that was freed is used again. */
static void apart(void (*f)(size_t), size_t size) {
  fflush(stdout);
  pid_t child = fork();
  if (child == 0) {
    f(size);
    fflush(stdout);
    _exit(0);
  }
  int status;
  if (child < 0 || waitpid(child, &status, 0) < 0 || status) exit(2);
}

static void bytes(size_t size) {
  size_t n = ((size_t)32 << 20) / size;
  if (n > 200000) n = 200000;
  void **all = calloc(n, sizeof *all);
  memset(all, 1, n * sizeof *all);
  get(size); /* what is set up once */
  size_t before = resident();
  for (size_t i = 0; i < n; i++) all[i] = get(size);
  printf("bytes %zu %.1f\n", size, (double)(resident() - before) / n);
}

static struct {
  size_t size;
  double ms;
  pthread_barrier_t start;
} job;

struct result {
  double seconds;
  long pairs;
};

static void *work(void *to) {
  struct result *result = to;
  void *slots[SLOTS];
  for (int i = 0; i < SLOTS; i++) slots[i] = get(job.size);
  pthread_barrier_wait(&job.start);
  double begin = seconds();
  do {
    for (int i = 0; i < SLOTS; i++, result->pairs++) {
      free(slots[i]);
      if (!(slots[i] = malloc(job.size))) exit(2);
      *(volatile char *)slots[i] = 1;
    }
    result->seconds = seconds() - begin;
  } while (result->seconds < job.ms / 1e3);
  for (int i = 0; i < SLOTS; i++) free(slots[i]);
  return 0;
}

static void timing(size_t size, int threads, double ms) {
  pthread_t all[64];
  struct result results[64] = {0}, sum = {0};
  job.size = size;
  job.ms = ms;
  pthread_barrier_init(&job.start, 0, threads);
  for (int i = 0; i < threads; i++)
    if (pthread_create(&all[i], 0, work, &results[i])) exit(2);
  for (int i = 0; i < threads; i++) {
    pthread_join(all[i], 0);
    sum.seconds += results[i].seconds;
    sum.pairs += results[i].pairs;
  }
  printf("time %zu %d %.1f\n", size, threads, sum.seconds * 1e9 / sum.pairs);
}

static pthread_barrier_t idle;
static int allocates;

static void *sleeper(void *unused) {
  static _Thread_local void *held[1000];
  for (int i = 0; i < 1000; i++) held[i] = allocates ? get(16 + i * 8) : 0;
  for (int i = 0; i < 1000; i++) free(held[i]);
  pthread_barrier_wait(&idle);
  for (;;) pause();
  return unused;
}

static size_t sleeping(int with) {
  pthread_t thread;
  size_t before = resident();
  allocates = with;
  for (int i = 0; i < IDLE; i++)
    if (pthread_create(&thread, 0, sleeper, 0)) exit(2);
  pthread_barrier_wait(&idle);
  return resident() - before;
}

static void threads(size_t unused) {
  (void)unused;
  pthread_barrier_init(&idle, 0, IDLE + 1); /* once: those of the first round may still be leaving it in the second */
  size_t plain = sleeping(0), full = sleeping(1);
  printf("thread %.0f\n", full > plain ? (double)(full - plain) / IDLE : 0.0);
}

int main(int argc, char **argv) {
  double ms = argc > 1 ? atof(argv[1]) : 20;
  classes();
  for (int i = 0; i < SIZES; i++) apart(bytes, sizes[i]);
  apart(threads, 0);
  for (int i = 0; i < SIZES; i++)
    for (int k = 2; k < argc; k++) {
      int n = atoi(argv[k]);
      timing(sizes[i], n < 1 ? 1 : n > 64 ? 64 : n, ms);
    }
  return 0;
}
