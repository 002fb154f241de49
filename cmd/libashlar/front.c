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
#include "bins.h"
#include "count.h"

_Atomic(struct front *) fronts[FRONT_DEVICES];
_Atomic uint64_t front_unknown;

_Static_assert(FRONT_UNIT == 1 << FRONT_UNIT_BITS, "both name the unit of addresses");

struct front *front_make(int device) {
    if ((unsigned)device >= FRONT_DEVICES) {
        char text[64];
        snprintf(text, sizeof text, "there is no device %d", device);
        error_set(ASHLAR_FAILED, text);
        return NULL;
    }
    struct front *f = mmap(NULL, sizeof *f, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (f == MAP_FAILED) {
        error_set(ASHLAR_FAILED, "no host memory for the front cache");
        return NULL;
    }
    f->device = (uint8_t)device;
    f->off = 1; /* until Go has set the device up */
    struct front *other = NULL;
    if (atomic_compare_exchange_strong(&fronts[device], &other, f)) return f;
    munmap(f, sizeof *f);
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

/* Gives blocks back to the engine. A free has nobody to tell that it failed:
 * the first time it goes to stderr. */
static void give_back(struct front *f, uint64_t *back, int n) {
    static atomic_flag told = ATOMIC_FLAG_INIT;
    struct reply reply = {0};
    ashlarGoFree(f->device, back, n, (char *)metadata_current(), &reply);
    if (reply.text != NULL && !atomic_flag_test_and_set(&told))
        fprintf(stderr, "ashlar: a free failed: %s; further failures are not shown\n", reply.text);
    free(reply.text);
    lock_lock(&f->lock);
    count_waiting(f, &reply);
    lock_unlock(&f->lock);
}

/* Asks the engine. Called with the lock, returns without. */
static __attribute__((noinline)) int miss(struct front *f, uint64_t size, uint64_t stream, void **out) {
    uint64_t back[FRONT_BATCH];
    const int n = bins_take(f, LARGE, back, FRONT_BATCH);
    f->misses++;
    const uint32_t id = record_new(f), epoch = f->epoch;
    lock_unlock(&f->lock);

    struct reply reply = {0};
    int code = ASHLAR_FAILED;
    if (id != 0)
        code = ashlarGoMalloc(f->device, size, stream, back, n, (char *)metadata_current(), &reply);
    else if (n > 0)
        give_back(f, back, n);
    if (code == ASHLAR_OK) {
        struct record *r = record_at(id);
        atomic_store_explicit(&r->addr, reply.addr, memory_order_relaxed);
        r->size = reply.size;
        r->requested = size;
        r->stream = stream;
        r->epoch = epoch;
        r->device = f->device;
        r->large = reply.large;
        r->again = reply.again;
        r->state = RECORD_LIVE;
        if (!table_set(reply.addr, reply.size, id)) {
            give_back(f, &reply.addr, 1);
            code = ASHLAR_FAILED;
        }
    }

    lock_lock(&f->lock);
    count_waiting(f, &reply);
    if (code == ASHLAR_OK) {
        count_malloc(f, record_at(id));
    } else if (id != 0) {
        struct record *r = record_at(id);
        r->state = RECORD_SPARE;
        r->next = f->spare;
        f->spare = id;
    }
    lock_unlock(&f->lock);

    if (code == ASHLAR_OK) {
        *out = (void *)reply.addr;
        return ASHLAR_OK;
    }
    if (reply.text == NULL) return error_set(code, "no host memory to keep track of device memory");
    if (code == ASHLAR_OOM) observers_call(f->device, reply.tried, reply.total, reply.free);
    return error_take(code, reply.text);
}

int ashlar_front_malloc(size_t size, int device, void *stream, void **out) {
    *out = NULL;
    if (!gate_open()) return gate_refuse();
    if (size == 0) return ASHLAR_OK;
    struct front *f = front_known(device);
    if (__builtin_expect(f == NULL, 0) && (f = front_make(device)) == NULL) return ASHLAR_FAILED;
    lock_lock(&f->lock);
    if (__builtin_expect(!f->off && !f->waiting, 1)) {
        const uint32_t id = bins_pop(f, size, (uint64_t)stream);
        if (__builtin_expect(id != 0, 1)) {
            const struct record *r = record_at(id);
            count_malloc(f, r);
            f->hits++;
            *out = (void *)r->addr;
            lock_unlock(&f->lock);
            return ASHLAR_OK;
        }
    }
    return miss(f, size, (uint64_t)stream, out);
}

/* A pointer that is not allocated: said once, counted always. */
static __attribute__((noinline, cold)) void unknown(const void *p) {
    if (atomic_fetch_add(&front_unknown, 1) == 0)
        fprintf(stderr, "ashlar: %p was freed but is not allocated: freed twice, or not from here; further ones are only counted\n", p);
}

/* A block that is not held, because it may not or because there is no room:
 * then some is made. Called with the lock, returns without. */
static __attribute__((noinline)) void free_direct(struct front *f, uint32_t id, struct record *r, bool crowded) {
    uint64_t back[FRONT_BATCH];
    back[0] = r->addr;
    int n = 1;
    if (crowded) n += bins_take(f, r->large, back + 1, FRONT_BATCH - 1);
    f->direct++;
    record_forget(f, id, r);
    lock_unlock(&f->lock);
    give_back(f, back, n);
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
    struct front *f = front_known(r->device);
    if (__builtin_expect(f == NULL, 0)) return;
    lock_lock(&f->lock);
    if (__builtin_expect(r->state != RECORD_LIVE || r->addr != (uint64_t)p, 0)) {
        lock_unlock(&f->lock);
        unknown(p);
        return;
    }
    count_free(f, r);
    const bool may = r->again && r->epoch == f->epoch && !f->off;
    if (__builtin_expect(may && bins_push(f, id, r), 1)) {
        f->held++;
        lock_unlock(&f->lock);
        return;
    }
    free_direct(f, id, r, may);
}

int ashlar_front_record_stream(void *p, void *stream) {
    if (p == NULL) return ASHLAR_OK;
    if (!gate_open()) return gate_refuse();
    const uint32_t id = table_get((uint64_t)p);
    if (id == 0) return ASHLAR_OK;
    struct record *r = record_at(id);
    struct front *f = front_known(r->device);
    if (f == NULL) return ASHLAR_OK;
    lock_lock(&f->lock);
    const bool other = r->state == RECORD_LIVE && r->addr == (uint64_t)p && r->stream != (uint64_t)stream;
    if (other) r->again = 0; /* its free is the engine's business */
    lock_unlock(&f->lock);
    if (!other) return ASHLAR_OK;
    char *text = NULL;
    return error_take(ashlarGoRecordStream(f->device, (uint64_t)p, (uint64_t)stream, &text), text);
}
