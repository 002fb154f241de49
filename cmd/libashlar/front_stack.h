/*
 * front_stack.h: large blocks that are handed out again exactly as the engine would.
 *
 * If the engine has heard nothing since it handed a block out, then after the
 * free of that block it would be what it was before, and the same request would
 * get the same block. So such a free is undone by the request and the engine
 * need not hear of either. The same is true of the block before it, and so on:
 * blocks freed in the reverse order of their requests come back in the order of
 * the requests.
 *
 * A free in another order is the end of that. Then the engine has to hear of
 * all that was freed (front_queue.h) before the next request, and blocks handed out
 * until then are ordinary: nothing is known of what would follow their free.
 * All of it happens under the front's lock.
 */
#ifndef ASHLAR_FRONT_STACK_H
#define ASHLAR_FRONT_STACK_H

#include "front.h"
#include "front_queue.h"

/* The block that the engine would hand out now, if that is known, or 0. */
static inline uint32_t stack_redo(struct front *f, uint64_t size, uint64_t stream) {
    struct stack *s = &f->stack;
    if (s->top == s->len) return 0;
    const struct given *g = &s->at[s->top];
    if (g->size != size || g->stream != stream) return 0;
    s->top++;
    record_at(g->id)->state = RECORD_LIVE;
    return g->id;
}

/* Holds a freed block; reports whether it was the latest one in use. */
static inline bool stack_undo(struct front *f, uint32_t id, struct record *r) {
    struct stack *s = &f->stack;
    if (s->top == 0 || s->at[s->top - 1].id != id) return false;
    s->top--;
    r->state = RECORD_HELD;
    return true;
}

/* Puts what was freed into the queue, the latest block first: that is the order
 * in which it was freed. What is in use stays. */
static inline void stack_give_back(struct front *f) {
    struct stack *s = &f->stack;
    for (; s->len > s->top; s->len--, f->returned++) {
        const uint32_t id = s->at[s->len - 1].id;
        queue_push(f, id, record_at(id));
    }
}

/* The same, and what is in use becomes ordinary. */
static inline void stack_forget(struct front *f) {
    stack_give_back(f);
    f->stack.top = f->stack.len = 0;
}

/* Enters a block that the engine has just handed out. Nothing may be left that
 * was freed. */
static inline void stack_push(struct front *f, uint32_t id, const struct record *r) {
    struct stack *s = &f->stack;
    if (s->len == FRONT_STACK) {
        /* The older half becomes ordinary. */
        s->len = s->top = FRONT_STACK / 2;
        for (uint32_t i = 0; i < s->len; i++) s->at[i] = s->at[i + FRONT_STACK / 2];
    }
    s->at[s->len++] = (struct given){r->requested, r->stream, id};
    s->top = s->len;
}

#endif
