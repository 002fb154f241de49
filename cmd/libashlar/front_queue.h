/*
 * front_queue.h: frees that the engine has not heard of yet.
 *
 * The engine need not know of a free before it is asked for memory again. So
 * frees that the front has no use for wait here, in their order. With the next
 * request they are put where the engine finds them: the outbox (bridge.h). All of
 * it happens under the front's lock.
 */
#ifndef ASHLAR_FRONT_QUEUE_H
#define ASHLAR_FRONT_QUEUE_H

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

/* How many blocks are in the outbox. */
static inline uint64_t queue_sent(const struct front *f) {
    return f->outbox.put - __atomic_load_n(&f->outbox.taken, __ATOMIC_ACQUIRE);
}

/* Moves blocks into the outbox, oldest first, as far as there is room, and forgets
 * their records: they are the engine's, as soon as it looks. */
static inline void queue_send(struct front *f) {
    struct queue *q = &f->queue;
    struct outbox *o = &f->outbox;
    if (q->first == 0 && o->rest == 0) return;
    uint64_t put = o->put;
    for (uint64_t room = OUTBOX - queue_sent(f); q->first != 0 && room > 0; room--) {
        const uint32_t id = q->first;
        struct record *r = record_at(id);
        q->first = r->next;
        q->blocks--;
        o->block[put++ % OUTBOX] = r->addr;
        record_forget(f, id, r);
    }
    __atomic_store_n(&o->rest, q->blocks, __ATOMIC_RELAXED);
    __atomic_store_n(&o->put, put, __ATOMIC_RELEASE);
}

#endif
