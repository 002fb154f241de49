//go:build cgo

#include "front_bins.h"

#include "front_queue.h"

/* Moves up to n blocks of a bin into the queue; returns how many. */
static uint32_t spill(struct front *f, struct bin *b, uint32_t n) {
    uint32_t done = 0;
    for (; b->head != 0 && done < n; done++) {
        const uint32_t id = b->head;
        struct record *r = record_at(id);
        b->head = r->next;
        f->shelf.blocks--;
        f->shelf.bytes -= r->size;
        f->returned++;
        queue_push(f, id, r);
    }
    return done;
}

bool bins_asked(struct front *f, uint64_t size, uint64_t stream) {
    struct bin *b = bins_find(f, size, stream);
    if (b != NULL) {
        b->asked += b->asked < BINS_ASKED_MAX;
        return b->asked > 1;
    }
    /* A new size makes the others of its set older. It gets the place of the
     * one asked for least, but a bin with blocks has to be forgotten first. */
    struct bin *set = bins_set(f, size, stream);
    for (int i = 0; i < FRONT_WAYS; i++) {
        set[i].asked /= 2;
        if (b == NULL || set[i].asked < b->asked || (set[i].asked == b->asked && b->head != 0 && set[i].head == 0)) b = &set[i];
    }
    if (b->head != 0 && b->asked > 0) return false;
    spill(f, b, FRONT_KEEP_BLOCKS);
    b->size = size;
    b->stream = stream;
    b->asked = 1;
    return false;
}

void bins_spill(struct front *f, uint32_t n) {
    struct shelf *s = &f->shelf;
    uint32_t done = 0; /* bins of the list that are empty now */
    for (; done < s->listed; done++) {
        struct bin *b = &f->bins[s->bins[done]];
        n -= spill(f, b, n);
        if (b->head != 0) break;
        b->listed = 0;
    }
    s->listed -= done;
    for (uint32_t i = 0; i < s->listed && done > 0; i++) s->bins[i] = s->bins[i + done];
}
