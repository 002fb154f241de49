/*
 * bridge.h: what C and Go tell each other.
 */
#ifndef ASHLAR_BRIDGE_H
#define ASHLAR_BRIDGE_H

#include <stdbool.h>
#include <stdint.h>

#pragma GCC visibility push(hidden)

enum { FRONT_UNIT = 512 }; /* blocks begin at multiples of it */

/* ---- Statistics, as the caller sees them: front_count.h. */

struct sums {
    int64_t blocks, bytes, requested;
};

enum { SMALL, LARGE, ALL };

/* The numbers of what was handed out. up and the peaks are since the last
 * reset, live and waiting are now; small, large, and for peaks both. */
struct counts {
    struct sums live[2];
    struct sums up[2];
    struct sums peak[3];        /* of live */
    struct sums active_peak[3]; /* of live + waiting, at moments when some were waiting */
    struct sums waiting[2];     /* freed, in use on other streams; the engine tells */
    uint64_t waiting_seq;
    struct sums live0[2], waiting0[2]; /* at the last reset of the sums */
};

/* ---- What Go answers to a request or a return. */

struct reply {
    uint64_t addr, size;
    uint64_t waiting_seq;
    struct sums waiting[2];
    uint64_t tried, total, free; /* of an out-of-memory error */
    char *text;                  /* of a failure; malloc'd */
    char *note;                  /* of the first overflow; malloc'd */
    uint64_t layout;             /* alloc.Lent.Layout */
    uint8_t large, again;
};

/* ---- What Go asks of the front: bridge.c. */

struct front_state {
    struct counts counts;
    uint64_t hits, misses, held, queued, direct, returned;
    uint64_t turns, wasted, unknown;
    uint64_t keep_blocks, keep_bytes, stack_blocks, undone_blocks, queued_blocks;
    uint32_t off;
    bool waiting;
};

enum { OUTBOX = 2048 };

/* Freed blocks on their way to the engine: a ring that C fills under the front's
 * lock, and that Go empties under the engine's without a call of C. Both only
 * ever count up. */
struct outbox {
    uint64_t taken;          /* Go's count */
    uint64_t put;            /* C's count */
    uint64_t rest;           /* blocks that wait for room in it */
    uint64_t block[OUTBOX];  /* number n at n % OUTBOX */
};

/* The outbox of a slot that belongs to a device. Makes the front if there is none, off; NULL
 * if there can be none. */
struct outbox *front_open(int slot, int device);
/* Fills the outbox: with what is queued, or also with all that is held. With all,
 * what it leaves in use can no longer be undone: Go is about to look at the
 * engine, or to change it. Go calls it with the engine's lock, so nobody may
 * enter Go with the front's. */
void front_fill(int device, bool all);
/* Sets whether blocks may be held. Blocks handed out before will not be. */
void front_mode(int device, int off);
void front_read(int device, struct front_state *out);
void front_reset_peaks(int device);
void front_reset_sums(int device);
/* Has requests of a device on a stream go to a slot. Go calls it one at a time.
 * False if there is no room. */
bool front_bind(int device, uint64_t stream, int slot);
/* Counts threads that are in a region of a device up or down. */
bool front_inside(int device, int by);
/* Gives the streams of a slot back to the device. */
void front_unbind(int device, int slot);
/* Something is known of a block that must end with it: it will not be held when it is freed. */
void front_named(uint64_t addr);
/* The engine's word on what waits, from a call that did not come through C. */
void front_waiting(int device, const struct reply *r);

/* A step has ended: this thread alone uses the device from now on, as far as anybody knows. */
void front_marked(int device);
/* Whether one thread alone has used the device since, or since the start, and for some steps before. */
bool front_alone(int device);
/* Whether no other thread than this one has. */
bool front_mine(int device);

/* Calls a function of the shim. */
/* ctx is whatever the caller chose, so that Go must not take it for a pointer. */
bool front_accepts(bool (*accept)(void *ctx, void *stream), uintptr_t ctx, uint64_t stream);

#pragma GCC visibility pop

#endif
