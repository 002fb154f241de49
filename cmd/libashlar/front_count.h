/*
 * front_count.h: the statistics as the caller sees them.
 *
 * The engine counts a block as allocated until it gets it back, the caller
 * until it frees it, and the front stands between the two. So everything that
 * is handed out and freed is counted here, served by the engine or not. What
 * only the engine knows, the blocks that wait for other streams after their
 * free, comes with its answers. While there are any, no request is served
 * without asking the engine, so a moment with waiting blocks is never missed.
 */
#ifndef ASHLAR_FRONT_COUNT_H
#define ASHLAR_FRONT_COUNT_H

#include "front.h"

static inline void sums_add(struct sums *to, const struct sums *x) {
    to->blocks += x->blocks;
    to->bytes += x->bytes;
    to->requested += x->requested;
}

static inline void sums_sub(struct sums *to, const struct sums *x) {
    to->blocks -= x->blocks;
    to->bytes -= x->bytes;
    to->requested -= x->requested;
}

static inline void sums_max(struct sums *to, const struct sums *x) {
    if (x->blocks > to->blocks) to->blocks = x->blocks;
    if (x->bytes > to->bytes) to->bytes = x->bytes;
    if (x->requested > to->requested) to->requested = x->requested;
}

static inline struct sums sums_of(const struct sums *x, const struct sums *y) {
    struct sums s = *x;
    sums_add(&s, y);
    return s;
}

static inline __attribute__((always_inline)) void count_malloc(struct front *f, const struct record *r) {
    struct counts *c = &f->counts;
    const struct sums one = {1, (int64_t)r->size, (int64_t)r->requested};
    const int kind = r->large;
    sums_add(&c->live[kind], &one);
    sums_add(&c->up[kind], &one);
    sums_max(&c->peak[kind], &c->live[kind]);
    const struct sums all = sums_of(&c->live[SMALL], &c->live[LARGE]);
    sums_max(&c->peak[ALL], &all);
    if (__builtin_expect(f->waiting, 0)) {
        struct sums active[3];
        for (int k = SMALL; k <= LARGE; k++) active[k] = sums_of(&c->live[k], &c->waiting[k]);
        active[ALL] = sums_of(&active[SMALL], &active[LARGE]);
        for (int k = SMALL; k <= ALL; k++) sums_max(&c->active_peak[k], &active[k]);
    }
}

static inline void count_free(struct front *f, const struct record *r) {
    const struct sums one = {1, (int64_t)r->size, (int64_t)r->requested};
    sums_sub(&f->counts.live[r->large], &one);
}

/* Takes over what the engine said of waiting blocks, unless it has said
 * something newer already. */
static inline void count_waiting(struct front *f, const struct reply *r) {
    struct counts *c = &f->counts;
    if (r->waiting_seq <= c->waiting_seq) return;
    c->waiting_seq = r->waiting_seq;
    if (!f->waiting && r->waiting[SMALL].blocks + r->waiting[LARGE].blocks == 0) return;
    for (int k = SMALL; k <= LARGE; k++) c->waiting[k] = r->waiting[k];
    f->waiting = c->waiting[SMALL].blocks + c->waiting[LARGE].blocks > 0;
}

#endif
