/*
 * front_bins.h: the small blocks that a front holds, by exact size and stream.
 *
 * A bin is a stack of blocks. Bins stand in sets of four that a hash of size
 * and stream chooses. A bin also counts how often its size was asked for: only
 * blocks of sizes that come again are held. All of it happens under the front's
 * lock.
 */
#ifndef ASHLAR_FRONT_BINS_H
#define ASHLAR_FRONT_BINS_H

#include "front.h"

#pragma GCC visibility push(hidden)

enum { BINS_ASKED_MAX = 255 };

static inline struct bin *bins_set(struct front *f, uint64_t size, uint64_t stream) {
    const uint64_t h = (size + (stream << 21) + (stream >> 43)) * 0x9E3779B97F4A7C15u;
    return &f->bins[(h >> 40) % FRONT_SETS * FRONT_WAYS];
}

/* The bin of that size and stream, or NULL. */
static inline struct bin *bins_find(struct front *f, uint64_t size, uint64_t stream) {
    struct bin *b = bins_set(f, size, stream);
    for (int i = 0; i < FRONT_WAYS; i++, b++)
        if (b->size == size && b->stream == stream) return b;
    return NULL;
}

/* The newest held block of that size and stream, or 0. */
static inline uint32_t bins_pop(struct front *f, uint64_t size, uint64_t stream) {
    struct bin *b = bins_find(f, size, stream);
    if (b == NULL || b->head == 0) return 0;
    const uint32_t id = b->head;
    struct record *r = record_at(id);
    b->head = r->next;
    b->asked += b->asked < BINS_ASKED_MAX;
    r->state = RECORD_LIVE;
    f->shelf.blocks--;
    f->shelf.bytes -= r->size;
    return id;
}

/* Holds a block; reports whether there was room. */
static inline bool bins_push(struct front *f, uint32_t id, struct record *r) {
    struct shelf *s = &f->shelf;
    if (__builtin_expect(s->blocks >= FRONT_KEEP_BLOCKS || s->bytes + r->size > FRONT_KEEP_BYTES, 0)) return false;
    struct bin *b = bins_find(f, r->requested, r->stream);
    if (__builtin_expect(b == NULL, 0)) return false;
    if (!b->listed) {
        b->listed = 1;
        s->bins[s->listed++] = (uint16_t)(b - f->bins);
    }
    r->next = b->head;
    r->state = RECORD_HELD;
    b->head = id;
    s->blocks++;
    s->bytes += r->size;
    return true;
}

/* Counts a request that was not served from here, and reports whether the size
 * comes again: asked for before, and not long ago. */
bool bins_asked(struct front *f, uint64_t size, uint64_t stream);

/* Moves up to n held blocks into the queue, oldest bins first. */
void bins_spill(struct front *f, uint32_t n);

#pragma GCC visibility pop

#endif
