/* usage: mallocs throughput|contention|producer
 * A fixed number of allocations and frees, by one thread, by several at once, or
 * freed by another thread than the one that allocated. When it is done it keeps
 * what is live, and its threads, so that one can see what malloc holds for them. */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SLOTS = 1 << 14, OPS = 6000000, THREADS = 4, RING = 1 << 12 };

static uint64_t next(uint64_t *state) { /* xorshift */
  *state ^= *state << 13;
  *state ^= *state >> 7;
  *state ^= *state << 17;
  return *state;
}

/* Most are small, one in sixteen is up to 8 KiB, one in 256 up to 128 KiB. */
static size_t size_of(uint64_t r) {
  uint64_t most = r % 256 == 0 ? 131072 : r % 16 == 0 ? 8192 : 512;
  return 16 + (r >> 32) % most;
}

static void *get(uint64_t r) {
  size_t n = size_of(r);
  char *p = malloc(n);
  if (!p) abort();
  p[0] = p[n - 1] = 1; /* the memory is used */
  return p;
}

/* All threads meet here when they are done. */
static pthread_barrier_t finish;

static void churn(uint64_t seed, long ops) {
  void **slots = calloc(SLOTS, sizeof *slots);
  uint64_t state = seed * 2654435761u + 1;
  for (long i = 0; i < ops; i++) {
    uint64_t r = next(&state);
    void **slot = &slots[(r >> 8) % SLOTS];
    free(*slot);
    *slot = get(next(&state));
  }
}

static void *stay(void) {
  pthread_barrier_wait(&finish);
  for (;;) pause();
}

static void *churner(void *seed) {
  churn((uintptr_t)seed, OPS / THREADS);
  return stay();
}

/* A ring between a producer and a consumer. */
struct ring {
  void *slots[RING];
  int head, count;
  pthread_mutex_t lock;
  pthread_cond_t changed;
};

static struct ring rings[THREADS / 2];
enum { BATCH = 64 };

static void *producer(void *which) {
  struct ring *q = &rings[(uintptr_t)which];
  uint64_t state = (uintptr_t)which + 1;
  for (long i = 0; i < OPS / (THREADS / 2) / BATCH; i++) {
    void *batch[BATCH];
    for (int k = 0; k < BATCH; k++) batch[k] = get(next(&state));
    pthread_mutex_lock(&q->lock);
    while (q->count + BATCH > RING) pthread_cond_wait(&q->changed, &q->lock);
    for (int k = 0; k < BATCH; k++) q->slots[(q->head + q->count++) % RING] = batch[k];
    pthread_cond_signal(&q->changed);
    pthread_mutex_unlock(&q->lock);
  }
  return stay();
}

static void *consumer(void *which) {
  struct ring *q = &rings[(uintptr_t)which];
  for (long i = 0; i < OPS / (THREADS / 2) / BATCH; i++) {
    void *batch[BATCH];
    pthread_mutex_lock(&q->lock);
    while (q->count < BATCH) pthread_cond_wait(&q->changed, &q->lock);
    for (int k = 0; k < BATCH; k++, q->count--) {
      batch[k] = q->slots[q->head];
      q->head = (q->head + 1) % RING;
    }
    pthread_cond_signal(&q->changed);
    pthread_mutex_unlock(&q->lock);
    for (int k = 0; k < BATCH; k++) free(batch[k]);
  }
  return stay();
}

static void together(void *(*even)(void *), void *(*odd)(void *)) {
  pthread_t thread;
  pthread_barrier_init(&finish, 0, THREADS + 1);
  for (uintptr_t i = 0; i < THREADS; i++) {
    void *(*work)(void *) = i % 2 ? odd : even;
    void *arg = (void *)(even == odd ? i + 1 : i / 2);
    if (pthread_create(&thread, 0, work, arg)) abort();
  }
  pthread_barrier_wait(&finish);
}

int main(int argc, char **argv) {
  const char *mode = argc > 1 ? argv[1] : "";
  puts("ready");
  fflush(stdout);
  while (getchar() != EOF) continue;
  if (!strcmp(mode, "throughput")) {
    churn(1, OPS);
  } else if (!strcmp(mode, "contention")) {
    together(churner, churner);
  } else if (!strcmp(mode, "producer")) {
    for (int i = 0; i < THREADS / 2; i++) {
      pthread_mutex_init(&rings[i].lock, 0);
      pthread_cond_init(&rings[i].changed, 0);
    }
    together(producer, consumer);
  } else {
    fprintf(stderr, "mallocs: unknown mode %s\n", mode);
    return 2;
  }
  puts("done");
  fflush(stdout);
  for (;;) pause();
}
