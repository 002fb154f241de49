/*
 * queue.h: frees that the engine has not heard of yet.
 *
 * The engine need not know of a free before it is asked for memory again. So
 * frees that the front has no use for wait here, in their order, and go with
 * the next request: one crossing for both. All of it happens under the front's
 * lock.
 */
#ifndef ASHLAR_QUEUE_H
#define ASHLAR_QUEUE_H

#include "front.h"

static inline void queue_push(struct front *f, uint32_t id, struct record *r) {
    struct queue *q = &f->queue;
    r->state = RECORD_HELD;
    r->next = 0;
    if (q->first == 0)
        q->first = id;
    else
        record_at(q->last)->next = id;
    q->last = id;
    q->blocks++;
}

/* Takes up to room blocks out, oldest first, and forgets their records: they go
 * back to the engine. */
static inline int queue_take(struct front *f, uint64_t *out, int room) {
    struct queue *q = &f->queue;
    int n = 0;
    for (; q->first != 0 && n < room; n++) {
        const uint32_t id = q->first;
        struct record *r = record_at(id);
        q->first = r->next;
        out[n] = r->addr;
        record_forget(f, id, r);
    }
    q->blocks -= (uint32_t)n;
    return n;
}

#endif
