//go:build cgo

/* What Go asks of the front, most often with the engine's lock. Whoever has the
 * turn may be waiting for that one, so nobody waits for turns here. */
#include "bridge.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "front_bins.h"
#include "front_count.h"
#include "front_queue.h"
#include "front_stack.h"

struct outbox *front_open(int slot, int device) {
    struct front *f = front_known(slot);
    if (f == NULL && (f = front_make(slot, device)) == NULL) return NULL;
    return &f->outbox;
}

void front_fill(int device, bool all) {
    struct front *f = front_known(device);
    if (f == NULL) return;
    lock_word(f->lock);
    if (all) {
        stack_forget(f);
        bins_spill(f, FRONT_KEEP_BLOCKS);
        if (f->queue.blocks > 0) f->changes++;
    }
    queue_send(f);
    lock_unlock(f->lock);
}

void front_mode(int device, int off) {
    struct front *f = front_known(device);
    if (f == NULL) return;
    lock_lock(f->lock);
    stack_forget(f);
    f->off = (uint32_t)off;
    f->epoch++;
    f->changes++;
    lock_unlock(f->lock);
}

void front_read(int device, struct front_state *out) {
    memset(out, 0, sizeof *out);
    struct front *f = front_known(device);
    if (f == NULL) return;
    lock_word(f->lock);
    out->counts = f->counts;
    out->hits = f->hits;
    out->misses = f->misses;
    out->held = f->held;
    out->queued = f->queued;
    out->direct = f->direct;
    out->returned = f->returned;
    out->turns = f->lock->turns;
    out->wasted = f->lock->wasted;
    out->unknown = atomic_load(&front_unknown);
    out->keep_blocks = f->shelf.blocks;
    out->keep_bytes = f->shelf.bytes;
    out->stack_blocks = f->stack.top;
    out->undone_blocks = f->stack.len - f->stack.top;
    out->queued_blocks = f->queue.blocks + queue_sent(f);
    out->off = f->off;
    out->waiting = f->waiting;
    lock_unlock(f->lock);
}

void front_reset_peaks(int device) {
    struct front *f = front_known(device);
    if (f == NULL) return;
    lock_word(f->lock);
    struct counts *c = &f->counts;
    for (int k = SMALL; k <= LARGE; k++) {
        c->peak[k] = c->live[k];
        c->active_peak[k] = sums_of(&c->live[k], &c->waiting[k]);
    }
    c->peak[ALL] = sums_of(&c->peak[SMALL], &c->peak[LARGE]);
    c->active_peak[ALL] = sums_of(&c->active_peak[SMALL], &c->active_peak[LARGE]);
    lock_unlock(f->lock);
}

void front_reset_sums(int device) {
    struct front *f = front_known(device);
    if (f == NULL) return;
    lock_word(f->lock);
    struct counts *c = &f->counts;
    for (int k = SMALL; k <= LARGE; k++) {
        c->up[k] = (struct sums){0};
        c->live0[k] = c->live[k];
        c->waiting0[k] = c->waiting[k];
    }
    lock_unlock(f->lock);
}

void front_marked(int device) {
    struct front *f = front_known(device);
    if (f == NULL) return;
    lock_word(f->lock);
    lock_marked(f->lock, (uintptr_t)pthread_self());
    lock_unlock(f->lock);
}

void front_named(uint64_t addr) {
    const uint32_t id = table_get(addr);
    if (id == 0) return;
    struct record *r = record_at(id);
    const int slot = r->slot;
    struct front *f = front_known(slot);
    if (f == NULL) return;
    lock_word(f->lock);
    if (r->state == RECORD_LIVE && r->addr == addr && r->slot == slot) r->again = 0;
    lock_unlock(f->lock);
}

bool front_alone(int device) {
    struct front *f = front_known(device);
    if (f == NULL) return false;
    lock_word(f->lock);
    const bool alone = lock_alone(f->lock);
    lock_unlock(f->lock);
    return alone;
}

bool front_mine(int device) {
    struct front *f = front_known(device);
    if (f == NULL) return false;
    lock_word(f->lock);
    const bool mine = lock_mine(f->lock, (uintptr_t)pthread_self());
    lock_unlock(f->lock);
    return mine;
}

/* The bindings of devices, made at their first use. Requests look at those in front_bindings,
 * which has them only while streams are bound or threads are in a region. */
static struct bindings *made[FRONT_DEVICES];
static pthread_mutex_t binding = PTHREAD_MUTEX_INITIALIZER;

/* The bindings of a device; NULL if there is no memory. Called with the mutex. */
static struct bindings *bindings_of(int device) {
    if (made[device] == NULL) made[device] = calloc(1, sizeof *made[device]);
    return made[device];
}

bool front_inside(int device, int by) {
    pthread_mutex_lock(&binding);
    struct bindings *b = bindings_of(device);
    if (b != NULL) {
        const uint32_t inside = atomic_fetch_add(&b->inside, (uint32_t)by) + (uint32_t)by;
        atomic_store_explicit(&front_bindings[device], inside > 0 || b->used > 0 ? b : NULL, memory_order_release);
    }
    pthread_mutex_unlock(&binding);
    return b != NULL;
}

static bool bind_stream(struct bindings *b, struct front *f, uint64_t stream) {
    for (uint32_t i = bound_place(stream + 1);; i = (i + 1) % FRONT_BOUND) {
        const uint64_t key = atomic_load_explicit(&b->at[i].key, memory_order_relaxed);
        if (key != 0 && key != stream + 1) continue;
        if (key == 0 && 2 * b->used++ >= FRONT_BOUND) return false; /* searches end at a free place */
        atomic_store_explicit(&b->at[i].front, f, memory_order_relaxed);
        atomic_store_explicit(&b->at[i].key, stream + 1, memory_order_release);
        return true;
    }
}

bool front_bind(int device, uint64_t stream, int slot) {
    struct front *f = front_known(slot);
    if (f == NULL && (f = front_make(slot, device)) == NULL) return false;
    pthread_mutex_lock(&binding);
    struct bindings *b = bindings_of(device);
    const bool bound = b != NULL && bind_stream(b, f, stream);
    if (bound) atomic_store_explicit(&front_bindings[device], b, memory_order_release);
    pthread_mutex_unlock(&binding);
    return bound;
}

void front_unbind(int device, int slot) {
    struct bindings *b = atomic_load_explicit(&front_bindings[device], memory_order_relaxed);
    struct front *gone = front_known(slot), *f = front_known(device); /* the first has the second's lock */
    if (b == NULL || gone == NULL) return;
    for (uint32_t i = 0; i < FRONT_BOUND; i++)
        if (atomic_load_explicit(&b->at[i].front, memory_order_relaxed) == gone) atomic_store_explicit(&b->at[i].front, f, memory_order_relaxed);
}

void front_waiting(int device, const struct reply *r) {
    struct front *f = front_known(device);
    if (f == NULL) return;
    lock_word(f->lock);
    count_waiting(f, r);
    stack_forget(f); /* memory may have been released */
    f->changes++;
    lock_unlock(f->lock);
}

bool front_accepts(bool (*accept)(void *ctx, void *stream), uintptr_t ctx, uint64_t stream) {
    return accept((void *)ctx, (void *)stream);
}
