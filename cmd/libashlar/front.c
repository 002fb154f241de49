//go:build cgo

/*
 * The front cache: it answers requests with blocks that were freed before,
 * without entering Go, and enters Go for the rest. It knows no rule of the
 * allocator: it holds only blocks that the engine gave it, and only those of
 * which the engine said that it may.
 */
#define _GNU_SOURCE
#include "front.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "_cgo_export.h"
#include "front_bins.h"
#include "front_count.h"
#include "front_queue.h"
#include "front_stack.h"

_Atomic(struct front *) fronts[FRONT_SLOTS];
_Atomic(struct bindings *) front_bindings[FRONT_DEVICES];
_Atomic uint64_t front_unknown;

_Static_assert(FRONT_UNIT == 1 << FRONT_UNIT_BITS, "both name the unit of addresses");

int no_device(int device) {
    char text[64];
    snprintf(text, sizeof text, "there is no device %d", device);
    return error_set(ASHLAR_FAILED, text);
}

struct front *front_make(int slot, int device) {
    if ((unsigned)slot >= FRONT_SLOTS) {
        no_device(slot);
        return NULL;
    }
    struct front *of = NULL;
    if (slot != device && (of = front_known(device)) == NULL && (of = front_make(device, device)) == NULL) return NULL;
    /* Each begins at another place of its page: threads go from front to front, and
     * addresses with the same low bits are taken for each other by the processor. */
    const size_t shift = (size_t)slot % 16 * 256;
    char *pages = mmap(NULL, sizeof(struct front) + shift, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (pages == MAP_FAILED) {
        error_set(ASHLAR_FAILED, "no host memory for the front cache");
        return NULL;
    }
    struct front *f = (struct front *)(pages + shift);
    f->slot = (uint8_t)slot;
    f->lock = of != NULL ? of->lock : &f->own;
    f->off = 1; /* until Go has set the device up */
    struct front *other = NULL;
    if (atomic_compare_exchange_strong(&fronts[slot], &other, f)) return f;
    munmap(pages, sizeof *f + shift);
    return other;
}

uint32_t record_new(struct front *f) {
    if (f->spare == 0) {
        uint32_t first;
        if (!record_chunk(&first)) return 0;
        for (uint32_t id = first + (1u << CHUNK_BITS) - 1; id > first || (id == first && id != 0); id--) {
            record_at(id)->next = f->spare;
            f->spare = id;
        }
    }
    const uint32_t id = f->spare;
    f->spare = record_at(id)->next;
    return id;
}

void record_forget(struct front *f, uint32_t id, struct record *r) {
    table_set(r->addr, r->size, 0);
    r->state = RECORD_SPARE;
    r->next = f->spare;
    f->spare = id;
}

/* A call of the engine under way. What the stack says of the engine is true
 * only if nobody else has called it meanwhile. changes tells: it rises with
 * the beginning and the end of each call and with every free that the engine
 * has yet to hear of. Called with the lock. */
static uint64_t crossing_begin(struct front *f) {
    f->crossings++;
    return ++f->changes;
}

static bool crossing_end(struct front *f, uint64_t begun) {
    f->crossings--;
    return f->changes++ == begun && f->crossings == 0;
}

/* What every answer of the engine tells. */
static void learn(struct front *f, const struct reply *r) {
    count_waiting(f, r);
    if (f->waiting) stack_forget(f); /* the engine changes by itself now */
}

/* Has the engine take back what is queued, and a block that is not, if addr is
 * not 0. A free has nobody to tell that it failed: the first time it goes to
 * stderr. Called with the lock, and gives it up meanwhile. */
static void give_back(struct front *f, uint64_t addr) {
    static atomic_flag told = ATOMIC_FLAG_INIT;
    struct reply reply = {0};
    queue_send(f);
    const uint64_t begun = crossing_begin(f);
    lock_unlock(f->lock);
    ashlarGoFree(f->slot, addr, (char *)metadata_current(), &reply);
    if (reply.text != NULL && !atomic_flag_test_and_set(&told))
        fprintf(stderr, "ashlar: a free failed: %s; further failures are not shown\n", reply.text);
    free(reply.text);
    lock_lock(f->lock);
    crossing_end(f, begun);
    learn(f, &reply);
}

static void record_fill(struct front *f, struct record *r, const struct reply *reply, uint64_t size, uint64_t stream) {
    atomic_store_explicit(&r->addr, reply->addr, memory_order_relaxed);
    r->size = reply->size;
    r->requested = size;
    r->stream = stream;
    r->slot = f->slot;
    r->large = reply->large;
    r->again = reply->again;
    r->keep = 0;
    r->state = RECORD_LIVE;
}

/* Decides what becomes of a block, or a failure, that the engine has answered
 * with: alone says that nobody else has called it since the request was made.
 * Called with the lock. */
static void settle(struct front *f, uint32_t id, struct record *r, const struct reply *reply, bool alone) {
    const bool moved = reply->layout != f->layout;
    const bool undone = f->stack.top != f->stack.len; /* since the request was made */
    f->layout = reply->layout;
    if (r != NULL && !r->large) {
        r->keep = bins_asked(f, r->requested, r->stream);
        if (moved || !alone) stack_forget(f);
        return;
    }
    /* A block of new memory does not go onto the stack either: freed, it may be
     * one that max_split_size keeps for others, or not the best of those that a
     * release has made. */
    if (r != NULL && r->again && r->epoch == f->epoch && alone && !moved && !undone && !f->waiting)
        stack_push(f, id, r);
    else
        stack_forget(f);
}

/* Asks the engine, which takes what is queued back first. Called with the lock,
 * returns without. */
static __attribute__((noinline)) int miss(struct front *f, int device, uint64_t size, uint64_t stream, void **out) {
    stack_give_back(f);
    queue_send(f);
    f->misses++;
    const uint32_t id = record_new(f), epoch = f->epoch;
    struct record *r = id != 0 ? record_at(id) : NULL;
    struct reply reply = {0};
    int code = ASHLAR_FAILED;
    if (r == NULL) {
        lock_unlock(f->lock);
        return error_set(code, "no host memory to keep track of device memory");
    }
    const uint64_t begun = crossing_begin(f);
    lock_unlock(f->lock);
    code = ashlarGoMalloc(f->slot, size, stream, (char *)metadata_current(), &reply);
    bool entered = false;
    if (code == ASHLAR_OK) {
        record_fill(f, r, &reply, size, stream);
        r->epoch = epoch;
        entered = table_set(reply.addr, reply.size, id);
    }

    lock_lock(f->lock);
    const bool alone = crossing_end(f, begun);
    learn(f, &reply);
    settle(f, id, entered ? r : NULL, &reply, alone);
    if (entered) {
        count_malloc(f, r);
    } else {
        r->state = RECORD_SPARE;
        r->next = f->spare;
        f->spare = id;
        if (code == ASHLAR_OK) give_back(f, reply.addr);
    }
    lock_unlock(f->lock);

    if (__builtin_expect(reply.note != NULL, 0)) overflow_note(reply.note);
    if (entered) {
        *out = (void *)reply.addr;
        return ASHLAR_OK;
    }
    if (code == ASHLAR_OK) return error_set(ASHLAR_FAILED, "no host memory to keep track of device memory");
    if (reply.text == NULL) return error_set(code, "the allocator failed and did not say why");
    if (code == ASHLAR_OOM) observers_call(device, reply.tried, reply.total, reply.free);
    return error_take(code, reply.text);
}

/* The front of a device, or of this thread's region, at its first request; those that
 * streams are bound to are there. */
static __attribute__((noinline, cold)) struct front *first_request(int device) {
    if ((unsigned)device >= FRONT_DEVICES) {
        no_device(device);
        return NULL;
    }
    const int region = thread_region(device);
    return front_make(region != 0 ? region : device, device);
}

int ashlar_front_malloc(size_t size, int device, void *stream, void **out) {
    *out = NULL;
    if (!gate_open()) return gate_refuse();
    if (size == 0) return ASHLAR_OK;
    struct front *f = front_of(device, (uint64_t)stream);
    if (__builtin_expect(f == NULL, 0) && (f = first_request(device)) == NULL) return ASHLAR_FAILED;
    lock_lock(f->lock);
    if (__builtin_expect(!f->off && !f->waiting, 1)) {
        uint32_t id = stack_redo(f, size, (uint64_t)stream);
        if (id == 0) id = bins_pop(f, size, (uint64_t)stream);
        if (__builtin_expect(id != 0, 1)) {
            const struct record *r = record_at(id);
            count_malloc(f, r);
            f->hits++;
            *out = (void *)r->addr;
            lock_unlock(f->lock);
            return ASHLAR_OK;
        }
    }
    return miss(f, device, size, (uint64_t)stream, out);
}

/* A pointer that is not allocated: said once, counted always. */
static __attribute__((noinline, cold)) void unknown(const void *p) {
    if (atomic_fetch_add(&front_unknown, 1) == 0)
        fprintf(stderr, "ashlar: %p was freed but is not allocated: freed twice, or not from here; further ones are only counted\n", p);
}

/* A block that is not held. It goes back with the next request, or when many are
 * waiting; now if the engine wants it at once, with what this thread has to say of
 * it. Called with the lock, returns without. */
static __attribute__((noinline)) void give_up(struct front *f, uint32_t id, struct record *r, bool now) {
    if (r->large) {
        stack_forget(f); /* it was not the latest, or has rules of its own */
        f->changes++;
    } else if (r->keep && f->shelf.blocks > 0) {
        bins_spill(f, FRONT_BATCH); /* there was no room */
    }
    if (now) {
        const uint64_t addr = r->addr;
        f->direct++;
        record_forget(f, id, r);
        give_back(f, addr);
    } else {
        f->queued++;
        queue_push(f, id, r);
        if (f->queue.blocks >= FRONT_BATCH) give_back(f, 0);
    }
    lock_unlock(f->lock);
}

void ashlar_front_free(void *p, size_t size, int device, void *stream) {
    (void)size, (void)device, (void)stream;
    if (p == NULL || !gate_open()) return;
    const uint32_t id = table_get((uint64_t)p);
    if (__builtin_expect(id == 0, 0)) {
        unknown(p);
        return;
    }
    struct record *r = record_at(id);
    struct front *f = front_known(r->slot);
    if (__builtin_expect(f == NULL, 0)) return;
    lock_lock(f->lock);
    if (__builtin_expect(r->state != RECORD_LIVE || r->addr != (uint64_t)p, 0)) {
        lock_unlock(f->lock);
        unknown(p);
        return;
    }
    count_free(f, r);
    const bool may = r->again && r->epoch == f->epoch && !f->off;
    if (__builtin_expect(may && (r->large ? stack_undo(f, id, r) : r->keep && bins_push(f, id, r)), 1)) {
        f->held++;
        lock_unlock(f->lock);
        return;
    }
    give_up(f, id, r, !may);
}

int ashlar_front_record_stream(void *p, void *stream) {
    if (p == NULL) return ASHLAR_OK;
    if (!gate_open()) return gate_refuse();
    const uint32_t id = table_get((uint64_t)p);
    if (id == 0) return ASHLAR_OK;
    struct record *r = record_at(id);
    struct front *f = front_known(r->slot);
    if (f == NULL) return ASHLAR_OK;
    lock_lock(f->lock);
    const bool other = r->state == RECORD_LIVE && r->addr == (uint64_t)p && r->stream != (uint64_t)stream;
    if (other) r->again = 0; /* its free is the engine's business */
    lock_unlock(f->lock);
    if (!other) return ASHLAR_OK;
    char *text = NULL;
    return error_take(ashlarGoRecordStream(f->slot, (uint64_t)p, (uint64_t)stream, &text), text);
}
