/*
 * front_lock.h: the lock of a front cache.
 *
 * Its critical sections last some tens of nanoseconds. What makes many threads
 * slow is not that they wait for each other but that every change of hands
 * moves cache lines between cores: those of the cache, and those of the mutex
 * and the hash table that PyTorch keeps around each call. So when threads
 * really hammer, one of them gets the turn: for some microseconds it works on
 * alone, and the others wait here instead of meeting at PyTorch's mutex.
 *
 * A turn is handed out only after the lock has changed hands many times in a
 * row within some microseconds each, and it ends early when its holder stays
 * away. If it turns out that the holder did not make much of it, because it has
 * other things to do between its calls, turns would only keep the others from
 * theirs: then there are none for a millisecond, and for longer each time.
 */
#ifndef ASHLAR_FRONT_LOCK_H
#define ASHLAR_FRONT_LOCK_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#pragma GCC visibility push(hidden)

struct lock {
    _Atomic uint32_t word;       /* 0 open, 1 taken, 2 taken and somebody sleeps */
    uint32_t heat;               /* changes of hands in quick succession; guarded */
    uintptr_t last;              /* the thread that used the lock last; guarded */
    uint64_t switched;           /* when it came; guarded */
    _Atomic uintptr_t holder;    /* whose turn it is; 0 for nobody's */
    _Atomic uint64_t until;      /* when the turn ends */
    _Atomic uint64_t seen;       /* when the holder was here last */
    _Atomic uint32_t uses;       /* of the lock in this turn */
    uint32_t vain;               /* turns in a row of which little was made; guarded, as what follows */
    uint64_t began, resting;     /* when the turn began; no turns until then */
    uint64_t turns, wasted;      /* statistics */
    uintptr_t worker, giver;     /* who works alone, and who waits for it: lock_handed */
    uint64_t strangers;          /* others that came since */
    uint32_t wary;               /* marks for which those that came before are still looked out for */
    bool both;                   /* the one that waits came after the one that works */
    _Alignas(64) _Atomic uint32_t waiters; /* threads that wait for their turn */
};

void lock_wait(struct lock *l, uintptr_t me);   /* somebody else has the turn */
void lock_sleep(struct lock *l);                /* the word is taken */
void lock_wake(struct lock *l);
void lock_changed(struct lock *l, uintptr_t me); /* another thread than last */
void lock_used(struct lock *l);                  /* by the holder of the turn */

static inline void lock_word(struct lock *l) {
    uint32_t open = 0;
    if (__builtin_expect(!atomic_compare_exchange_strong_explicit(&l->word, &open, 1, memory_order_acquire,
                                                                  memory_order_relaxed), 0))
        lock_sleep(l);
}

static inline void lock_unlock(struct lock *l) {
    if (__builtin_expect(atomic_exchange_explicit(&l->word, 0, memory_order_release) == 2, 0)) lock_wake(l);
}

static inline void lock_lock(struct lock *l) {
    const uintptr_t me = (uintptr_t)pthread_self();
    const uintptr_t holder = atomic_load_explicit(&l->holder, memory_order_relaxed);
    if (__builtin_expect(holder != 0 && holder != me, 0)) {
        lock_wait(l, me);
        return;
    }
    lock_word(l);
    if (__builtin_expect(l->last != me, 0))
        lock_changed(l, me);
    else if (__builtin_expect(holder == me, 0))
        lock_used(l);
}

/* From now on one thread uses the lock, as far as is known: this one, or if there is none, whichever comes next while the
 * giver waits. The giver may come before it. Called with the lock. */
static inline void lock_handed(struct lock *l, uintptr_t to, uintptr_t giver) {
    l->last = to; /* so that the next one is seen */
    l->worker = to;
    l->giver = giver;
    l->strangers = 0;
    l->both = false;
}

/* A thread came after another one. */
static inline void lock_came(struct lock *l, uintptr_t me) {
    if (me == l->worker) return;
    if (me == l->giver)
        l->both = l->worker != 0;
    else if (l->worker == 0)
        l->worker = me;
    else
        l->strangers++;
}

/* A thread that came not long ago may have work under way that asks for nothing. */
enum { WARY = 16 };

/* A step has ended: this thread uses the lock from now on. Called with the lock. */
static inline void lock_marked(struct lock *l, uintptr_t me) {
    if (l->strangers != 0)
        l->wary = WARY;
    else if (l->wary != 0)
        l->wary--;
    lock_handed(l, me, 0);
}

/* Whether no other thread than this one has used the lock since the last mark. Called with the lock. */
static inline bool lock_since_mark(const struct lock *l, uintptr_t me) {
    return l->strangers == 0 && !l->both && (l->worker == me || (l->worker == 0 && l->giver == 0));
}

/* Whether only one thread has used the lock since, and in the marks before. Called with the lock. */
static inline bool lock_alone(const struct lock *l) { return l->strangers == 0 && l->wary == 0 && !l->both; }

/* Whether no other thread than this one has. Called with the lock. */
static inline bool lock_mine(const struct lock *l, uintptr_t me) { return l->wary == 0 && lock_since_mark(l, me); }

#pragma GCC visibility pop

#endif
