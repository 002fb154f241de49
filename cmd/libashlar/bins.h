/*
 * bins.h: the blocks that a front holds, by exact size and stream.
 *
 * A bin is a stack of blocks. Bins stand in sets of four that a hash of size
 * and stream chooses; an empty one may be taken for another size. All of it
 * happens under the front's lock.
 */
#ifndef ASHLAR_BINS_H
#define ASHLAR_BINS_H

#include "front.h"

static inline struct bin *bins_set(struct front *f, uint64_t size, uint64_t stream) {
    const uint64_t h = (size + (stream << 21) + (stream >> 43)) * 0x9E3779B97F4A7C15u;
    return &f->bins[(h >> 40) % FRONT_SETS * FRONT_WAYS];
}

/* The newest held block of that size and stream, or 0. */
static inline uint32_t bins_pop(struct front *f, uint64_t size, uint64_t stream) {
    struct bin *b = bins_set(f, size, stream);
    for (int i = 0; i < FRONT_WAYS; i++, b++) {
        if (b->head == 0 || b->size != size || b->stream != stream) continue;
        const uint32_t id = b->head;
        struct record *r = record_at(id);
        b->head = r->next;
        r->state = RECORD_LIVE;
        struct shelf *s = &f->shelves[b->large];
        s->blocks--;
        s->bytes -= r->size;
        return id;
    }
    return 0;
}

/* Whether one more block may be held. */
static inline bool bins_room(const struct shelf *s, int kind, uint64_t size) {
    if (kind == SMALL) return s->blocks < FRONT_KEEP_BLOCKS && s->bytes + size <= FRONT_KEEP_BYTES;
    return s->blocks < FRONT_BATCH && s->bytes + size <= FRONT_BRIEF_BYTES;
}

/* Holds a block; reports whether there was room. */
static inline bool bins_push(struct front *f, uint32_t id, struct record *r) {
    struct shelf *s = &f->shelves[r->large];
    if (__builtin_expect(!bins_room(s, r->large, r->size), 0)) return false;
    struct bin *set = bins_set(f, r->requested, r->stream), *b = NULL;
    for (int i = 0; i < FRONT_WAYS; i++) {
        if (set[i].size == r->requested && set[i].stream == r->stream && set[i].large == r->large) {
            b = &set[i];
            break;
        }
        if (set[i].head == 0 && b == NULL) b = &set[i];
    }
    if (__builtin_expect(b == NULL, 0)) return false;
    if (b->head == 0) {
        b->size = r->requested;
        b->stream = r->stream;
        if (!b->listed || b->large != r->large) {
            /* A bin that changes its kind stays in the list of the other one,
             * where it is passed over. */
            b->large = r->large;
            b->listed = 1;
            if (s->listed == FRONT_BINS) return false;
            s->bins[s->listed++] = (uint16_t)(b - f->bins);
        }
    }
    r->next = b->head;
    r->state = RECORD_HELD;
    b->head = id;
    s->blocks++;
    s->bytes += r->size;
    return true;
}

#endif
