//go:build cgo

#include "bins.h"

int bins_take(struct front *f, int kind, uint64_t *out, int room) {
    struct shelf *s = &f->shelves[kind];
    int n = 0;
    uint32_t done = 0; /* bins of the list that are empty now */
    for (; done < s->listed && n < room; done++) {
        struct bin *b = &f->bins[s->bins[done]];
        if (b->large != kind) continue;
        while (b->head != 0 && n < room) {
            const uint32_t id = b->head;
            struct record *r = record_at(id);
            b->head = r->next;
            s->blocks--;
            s->bytes -= r->size;
            out[n++] = r->addr;
            record_forget(f, id, r);
        }
        if (b->head != 0) break;
        b->listed = 0;
    }
    s->listed -= done;
    for (uint32_t i = 0; i < s->listed; i++) s->bins[i] = s->bins[i + done];
    f->returned += (uint64_t)n;
    return n;
}
