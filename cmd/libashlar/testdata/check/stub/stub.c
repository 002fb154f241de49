/* The C side alone, for the compiler's sanitizers: threads hammer the front
 * over an engine that is as simple as can be. Blocks have real memory behind
 * them here, which each owner fills and checks. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "../../../front.h"
#include "_cgo_export.h"

enum { THREADS = 8, UNITS = 1 << 16, OPERATIONS = 30000 };

static char *memory;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static unsigned char used[UNITS]; /* by the engine's reckoning: units of 512 bytes */
static int waiting;               /* a free said that a block waits; the next malloc ends it */
static uint64_t seq;

static uint64_t units_of(uint64_t size) { return (size + 511) / 512; }
static uint64_t sizes[UNITS];

static void put_back(uint64_t addr) {
    const uint64_t at = (addr - (uint64_t)memory) / 512;
    if (sizes[at] == 0) abort(); /* given back twice */
    memset(used + at, 0, units_of(sizes[at]));
    sizes[at] = 0;
}

/* What the engine does under its lock. */
static bool recall(bool all) {
    struct outbox *o = front_open(0, 0);
    const uint64_t begin = o->taken;
    if (all) front_fill(0, true);
    for (;;) {
        const uint64_t put = __atomic_load_n(&o->put, __ATOMIC_ACQUIRE);
        uint64_t taken = o->taken;
        for (; taken != put; taken++) put_back(o->block[taken % OUTBOX]);
        __atomic_store_n(&o->taken, taken, __ATOMIC_RELEASE);
        if (__atomic_load_n(&o->rest, __ATOMIC_RELAXED) == 0) return o->taken != begin;
        front_fill(0, false);
    }
}

static void say_waiting(struct reply *r) {
    r->waiting_seq = ++seq;
    r->waiting[SMALL].blocks = waiting;
}

int ashlarGoMalloc(int device, uint64_t size, uint64_t stream, char *meta, struct reply *r) {
    (void)device, (void)stream, (void)meta;
    pthread_mutex_lock(&mutex);
    recall(false);
    waiting = 0;
    const uint64_t want = units_of(size);
    uint64_t at, run;
    do {
        at = run = 0;
        while (at < UNITS && run < want) run = used[at++] ? 0 : run + 1;
    } while (run < want && recall(true));
    if (run < want) {
        say_waiting(r);
        pthread_mutex_unlock(&mutex);
        r->text = strdup("full");
        return ASHLAR_OOM;
    }
    at -= want;
    memset(used + at, 1, want);
    sizes[at] = size;
    r->addr = (uint64_t)memory + at * 512;
    r->size = want * 512;
    r->large = size > 4096;
    r->again = size % 5 != 0;
    say_waiting(r);
    pthread_mutex_unlock(&mutex);
    return ASHLAR_OK;
}

void ashlarGoFree(int device, uint64_t addr, char *meta, struct reply *r) {
    (void)device, (void)meta;
    pthread_mutex_lock(&mutex);
    recall(false);
    if (addr != 0) put_back(addr);
    waiting = seq % 50 == 0;
    say_waiting(r);
    pthread_mutex_unlock(&mutex);
}

int ashlarGoRecordStream(int device, uint64_t addr, uint64_t stream, char **text) {
    (void)device, (void)addr, (void)stream, (void)text;
    return ASHLAR_OK;
}

/* Regions a and b have slots; no other is known. */
int ashlarGoRegion(int device, char *name, int *slot, char **text) {
    (void)device;
    if (strcmp(name, "a") != 0 && strcmp(name, "b") != 0) {
        *text = strdup("no such region");
        return ASHLAR_FAILED;
    }
    *slot = name[0] - 'a' + 1;
    return ASHLAR_OK;
}

static _Atomic int heard;

static void hear(const char *text) {
    if (strcmp(text, "moved") != 0) abort();
    heard++;
}

/* regions goes into two regions, one in the other, and out of them, and does what is refused. */
static void regions(unsigned rng) {
    int outer, inner, none;
    void *p;
    if (ashlar_region_leave(0, 0) == ASHLAR_OK || ashlar_region_enter(0, NULL, &none) == ASHLAR_OK) abort();
    if (ashlar_region_enter(0, "a", &outer) != ASHLAR_OK || outer != 0) abort();
    if (ashlar_region_enter(0, "b", &inner) != ASHLAR_OK || inner != 1) abort();
    if (ashlar_front_malloc(512, 0, NULL, &p) == ASHLAR_OK) ashlar_front_free(p, 0, 0, NULL);
    if (ashlar_region_leave(0, -1) == ASHLAR_OK || ashlar_region_leave(-1, 0) == ASHLAR_OK) abort();
    if (ashlar_region_leave(0, inner) != ASHLAR_OK || ashlar_region_leave(0, outer) != ASHLAR_OK) abort();
    ashlar_set_overflow_observer(hear);
    if (rng % 2 == 0) overflow_note(strdup("moved"));
}

static void *work(void *number) {
    unsigned rng = (unsigned)(uintptr_t)number;
    struct {
        char *p;
        size_t size;
        char mark;
    } own[16] = {{0}};
    for (int i = 0; i < OPERATIONS; i++) {
        rng = rng * 1664525u + 1013904223u;
        const unsigned k = (rng >> 10) % 16;
        if (own[k].p == NULL) {
            static const size_t some[] = {512, 700, 1024, 5000, 6000, 20001};
            own[k].size = some[(rng >> 16) % 6];
            own[k].mark = (char)(rng >> 24);
            void *p;
            if (ashlar_front_malloc(own[k].size, 0, (void *)(uintptr_t)((rng >> 20) % 2), &p) == ASHLAR_OK) {
                own[k].p = p;
                memset(p, own[k].mark, own[k].size);
            }
            continue;
        }
        for (size_t j = 0; j < own[k].size; j += 100)
            if (own[k].p[j] != own[k].mark) abort(); /* somebody else writes there */
        if (rng >> 28 == 0) ashlar_front_record_stream(own[k].p, (void *)3);
        ashlar_front_free(own[k].p, 0, 0, NULL);
        own[k].p = NULL;
        if (rng % 997 == 0) {
            pthread_mutex_lock(&mutex);
            recall(true);
            pthread_mutex_unlock(&mutex);
            front_mode(0, rng % 3 == 0);
            front_reset_peaks(0);
            regions(rng >> 8);
        }
    }
    for (int k = 0; k < 16; k++) ashlar_front_free(own[k].p, 0, 0, NULL);
    return NULL;
}

int main(void) {
    memory = mmap((void *)0x10000000000, UNITS * 512ull, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED || (uint64_t)memory >> 49 != 0) return 3;
    front_mode(0, 0);
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++) pthread_create(&threads[i], NULL, work, (void *)(uintptr_t)(i + 1));
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    recall(true);
    for (int i = 0; i < UNITS; i++)
        if (used[i]) return 4;
    struct front_state s;
    front_read(0, &s);
    if (s.counts.live[SMALL].blocks != 0 || s.counts.live[LARGE].bytes != 0 || s.unknown != 0) return 5;
    printf("%llu hits, %llu misses, %llu turns\n", (unsigned long long)s.hits, (unsigned long long)s.misses, (unsigned long long)s.turns);
    return s.hits > 1000 && s.turns > 0 && heard > 0 ? 0 : 6;
}
