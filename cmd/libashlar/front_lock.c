//go:build cgo

#define _GNU_SOURCE
#include "front_lock.h"

#include <linux/futex.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* Times in nanoseconds. ASHLAR_FRONT_LOCK="slice=20000,idle=1000" changes them;
 * engage=0 turns turns off. */
static struct {
    const char *name;
    uint64_t value;
} knobs[] = {
    {"engage", 16},    /* quick changes of hands before turns begin */
    {"window", 3000},  /* what quick means */
    {"slice", 100000}, /* how long a turn lasts */
    {"idle", 5000},    /* a holder that stays away so long has lost it */
    {"grace", 50000},  /* the same at the beginning of a turn */
    {"poll", 1500},    /* pause of a waiting thread, times the number of them */
    {"yield", 200000}, /* from then on a waiting thread lets others run */
    {"gap", 400},      /* a holder that comes less often does not need a turn */
    {"rest", 1000000}, /* then there are none for so long, doubling up to 64 times */
};
enum { ENGAGE, WINDOW, SLICE, IDLE, GRACE, POLL, YIELD, GAP, REST, KNOBS };

/* The clock: what the processor counts, and how much of it a knob is. */
#if defined(__x86_64__)
#include <x86intrin.h>
static inline uint64_t ticks(void) { return __rdtsc(); }
static inline void relax(void) { _mm_pause(); }
#elif defined(__aarch64__)
static inline uint64_t ticks(void) {
    uint64_t t;
    __asm__ volatile("mrs %0, cntvct_el0" : "=r"(t));
    return t;
}
static inline void relax(void) { __asm__ volatile("yield"); }
#else
static inline uint64_t ticks(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}
static inline void relax(void) {}
#endif

static uint64_t nanoseconds(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static uint64_t knob[KNOBS]; /* the first as it is, the others in ticks */
static uint64_t born_ticks, born_ns;
static pthread_once_t once = PTHREAD_ONCE_INIT;

__attribute__((constructor)) static void born(void) {
    born_ticks = ticks();
    born_ns = nanoseconds();
}

static void measure(void) {
    const char *text = getenv("ASHLAR_FRONT_LOCK");
    for (int k = 0; k < KNOBS && text != NULL; k++) {
        const char *at = strstr(text, knobs[k].name);
        unsigned long long v;
        if (at != NULL && sscanf(at + strlen(knobs[k].name), "=%llu", &v) == 1) knobs[k].value = v;
    }
    /* The library has been loaded for a while when two threads first meet in
     * it; if not, wait until the rate can be told to a percent or so. */
    uint64_t ns;
    do {
        ns = nanoseconds() - born_ns;
    } while (ns < 100000);
    const double rate = (double)(ticks() - born_ticks) / (double)ns;
    for (int k = 0; k < KNOBS; k++) knob[k] = k == ENGAGE ? knobs[k].value : (uint64_t)((double)knobs[k].value * rate);
}

static void begin_turn(struct lock *l, uintptr_t me, uint64_t now) {
    l->turns++;
    atomic_store_explicit(&l->uses, 0, memory_order_relaxed);
    l->began = now;
    atomic_store_explicit(&l->until, now + knob[SLICE], memory_order_relaxed);
    atomic_store_explicit(&l->seen, now, memory_order_relaxed);
    atomic_store_explicit(&l->holder, me, memory_order_relaxed);
}

/* Ends a turn and looks at what was made of it. */
static void end_turn(struct lock *l, uint64_t now, bool abandoned) {
    atomic_store_explicit(&l->holder, 0, memory_order_relaxed);
    if (!abandoned && now - l->began <= atomic_load_explicit(&l->uses, memory_order_relaxed) * knob[GAP]) {
        l->vain = 0;
        return;
    }
    l->resting = now + (knob[REST] << (l->vain < 6 ? l->vain : 6));
    l->vain++;
    l->wasted++;
    l->heat = 0;
}

static bool resting(const struct lock *l, uint64_t now) { return (int64_t)(now - l->resting) < 0; }

/* The lock came into other hands. If that happens again and again the new
 * owner gets the turn. */
void lock_changed(struct lock *l, uintptr_t me) {
    pthread_once(&once, measure);
    const uint64_t now = ticks();
    l->heat = now - l->switched < knob[WINDOW] ? l->heat + 1 : 0;
    l->last = me;
    lock_came(l, me);
    l->switched = now;
    if (knob[ENGAGE] != 0 && l->heat >= knob[ENGAGE] && !resting(l, now)) begin_turn(l, me, now);
}

/* The holder is here again. Once its time is over anybody may have the turn;
 * if nobody waits the rush is over. */
void lock_used(struct lock *l) {
    const uint64_t now = ticks();
    atomic_store_explicit(&l->uses, atomic_load_explicit(&l->uses, memory_order_relaxed) + 1, memory_order_relaxed);
    if (now < atomic_load_explicit(&l->until, memory_order_relaxed)) {
        atomic_store_explicit(&l->seen, now, memory_order_relaxed);
        return;
    }
    end_turn(l, now, false);
    if (atomic_load_explicit(&l->waiters, memory_order_relaxed) == 0) l->heat = 0;
}

enum turn { TAKEN, OVER, ABANDONED };
enum { FRESH = 8 }; /* uses of the lock from which on a holder is under way */

static enum turn turn_of(struct lock *l, uintptr_t me) {
    const uintptr_t holder = atomic_load_explicit(&l->holder, memory_order_relaxed);
    if (holder == 0 || holder == me) return OVER;
    const uint64_t now = ticks();
    if ((int64_t)(now - atomic_load_explicit(&l->until, memory_order_relaxed)) >= 0) return OVER;
    const int64_t away = (int64_t)(now - atomic_load_explicit(&l->seen, memory_order_relaxed));
    /* At first the holder may still stand in the queue at PyTorch's mutex. */
    const bool fresh = atomic_load_explicit(&l->uses, memory_order_relaxed) < FRESH;
    return away > (int64_t)knob[fresh ? GRACE : IDLE] ? ABANDONED : TAKEN;
}

/* Waits for the end of another thread's turn, and takes the lock and the turn. */
void lock_wait(struct lock *l, uintptr_t me) {
    pthread_once(&once, measure); /* whoever has the turn has measured, but this thread may not see it yet */
    const uint64_t begin = ticks();
    uint32_t waiters = atomic_fetch_add_explicit(&l->waiters, 1, memory_order_relaxed) + 1;
    enum turn t;
    for (;;) {
        while ((t = turn_of(l, me)) == TAKEN) {
            /* Each look takes the holder's cache line away, so look seldom. */
            const uint64_t start = ticks(), pause = knob[POLL] * waiters;
            while (ticks() - start < pause) relax();
            if (ticks() - begin > knob[YIELD]) sched_yield();
            waiters = atomic_load_explicit(&l->waiters, memory_order_relaxed);
        }
        lock_word(l);
        /* Another waiting thread may have been faster. */
        if ((t = turn_of(l, me)) != TAKEN) break;
        lock_unlock(l);
    }
    atomic_fetch_sub_explicit(&l->waiters, 1, memory_order_relaxed);
    const uint64_t now = ticks();
    if (atomic_load_explicit(&l->holder, memory_order_relaxed) != 0) end_turn(l, now, t == ABANDONED);
    if (l->last != me) lock_came(l, me);
    l->last = me;
    l->switched = now;
    if (!resting(l, now)) begin_turn(l, me, now);
}

/* The word of the lock: spin for as long as a critical section may take, then
 * sleep. A thread that has slept leaves the word at 2: others may sleep too. */
void lock_sleep(struct lock *l) {
    for (int i = 0; i < 200; i++) {
        uint32_t open = 0;
        if (atomic_load_explicit(&l->word, memory_order_relaxed) == 0 &&
            atomic_compare_exchange_weak_explicit(&l->word, &open, 1, memory_order_acquire, memory_order_relaxed))
            return;
        relax();
    }
    while (atomic_exchange_explicit(&l->word, 2, memory_order_acquire) != 0)
        syscall(SYS_futex, &l->word, FUTEX_WAIT_PRIVATE, 2, NULL, NULL, 0);
}

void lock_wake(struct lock *l) { syscall(SYS_futex, &l->word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0); }
