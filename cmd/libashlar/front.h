/*
 * front.h: the front cache from the inside. doc.go explains it.
 */
#ifndef ASHLAR_FRONT_H
#define ASHLAR_FRONT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ashlar.h"
#include "bridge.h"
#include "front_lock.h"

enum {
    FRONT_DEVICES = 64,
    FRONT_SLOTS = 256, /* the devices, and then tenants */
    FRONT_BOUND = 512, /* places for streams that belong to tenants; half of them are used */
    FRONT_UNIT_BITS = 9, /* blocks begin at multiples of 512 bytes */
    FRONT_BATCH = 256,   /* queued frees that are worth a crossing */
    FRONT_STACK = 4096,  /* large blocks that can be undone */
    FRONT_SETS = 1024,   /* of bins, by hash of size and stream */
    FRONT_WAYS = 4,
    FRONT_BINS = FRONT_SETS * FRONT_WAYS,
};

/* How many small blocks a front may hold. They bound what a block freed and
 * never asked for again keeps from being merged. */
#define FRONT_KEEP_BLOCKS 8192
#define FRONT_KEEP_BYTES (64ull << 20)

#pragma GCC visibility push(hidden)

/* ---- front_table.c: from an address to what is known of the block there. */

enum record_state { RECORD_SPARE, RECORD_LIVE, RECORD_HELD };

struct record {
    _Atomic uint64_t addr;
    uint64_t size;      /* of the block */
    uint64_t requested; /* bytes asked for */
    uint64_t stream;
    uint32_t next;  /* in its bin, in the queue, or among the spare ones; 0 ends the list */
    uint32_t epoch; /* of the front when it was handed out */
    uint8_t slot;
    uint8_t large; /* kind of its pool */
    uint8_t again; /* the engine allows to hand it out again */
    uint8_t keep;  /* a small one of a size that comes again */
    uint8_t state;
    _Alignas(64) char end[];
};

enum {
    LEAF_BITS = 30,  /* a leaf covers a GiB of addresses */
    WIDE_BITS = 20,  /* blocks of at least a MiB have entries of their own */
    ROOT_BITS = 49 - LEAF_BITS,
    CHUNK_BITS = 12,
    CHUNKS = 1 << 14,
};

/* The records of the blocks that begin in a GiB. Two blocks of at least a MiB
 * cannot begin in the same MiB, so those need few entries; the others have one
 * for each unit. */
struct leaf {
    _Atomic uint32_t wide[1 << (LEAF_BITS - WIDE_BITS)];
    _Atomic uint32_t narrow[1 << (LEAF_BITS - FRONT_UNIT_BITS)];
};

extern _Atomic(struct leaf *) table_root[1 << ROOT_BITS];
extern _Atomic(struct record *) record_chunks[CHUNKS];

static inline struct record *record_at(uint32_t id) {
    return atomic_load_explicit(&record_chunks[id >> CHUNK_BITS], memory_order_acquire) + (id & ((1u << CHUNK_BITS) - 1));
}

/* The record of the block that begins at addr, or 0. */
static inline uint32_t table_get(uint64_t addr) {
    if (__builtin_expect(addr % FRONT_UNIT != 0 || addr >> (LEAF_BITS + ROOT_BITS) != 0, 0)) return 0;
    struct leaf *leaf = atomic_load_explicit(&table_root[addr >> LEAF_BITS], memory_order_acquire);
    if (__builtin_expect(leaf == NULL, 0)) return 0;
    const uint64_t at = addr & ((1u << LEAF_BITS) - 1);
    const uint32_t id = atomic_load_explicit(&leaf->wide[at >> WIDE_BITS], memory_order_acquire);
    if (id != 0 && atomic_load_explicit(&record_at(id)->addr, memory_order_relaxed) == addr) return id;
    return atomic_load_explicit(&leaf->narrow[at >> FRONT_UNIT_BITS], memory_order_acquire);
}

/* Enters a record, or 0 instead of it, for a block of size bytes. Reports
 * whether there was memory for it. */
bool table_set(uint64_t addr, uint64_t size, uint32_t id);

/* Makes 2^CHUNK_BITS records, the first of which is *first. */
bool record_chunk(uint32_t *first);

/* ---- ashlar_gate.c: whether Go may be entered. */

enum gate { GATE_OPEN, GATE_FORKED, GATE_EXITING };
extern _Atomic int gate;
static inline bool gate_open(void) {
    return __builtin_expect(atomic_load_explicit(&gate, memory_order_relaxed) == GATE_OPEN, 1);
}
int gate_refuse(void); /* sets the error text, returns ASHLAR_FAILED */

/* ---- ashlar_error.c: texts of the thread. */

int error_set(int code, const char *text);  /* returns code */
int error_take(int code, char *text);       /* the same; frees text */
const char *metadata_current(void);         /* NULL for none */
int region_set(int device, int slot);       /* the one before; -1 without memory */
void overflow_note(char *text);             /* tells of it; frees text */
void observers_call(int device, uint64_t tried, uint64_t total, uint64_t free_bytes);

/* ---- front.c: the cache; front_bins.h, front_stack.h, front_queue.h: what it holds; front_count.h: what it counts. */

/* The free blocks of one size and stream, newest first. */
struct bin {
    uint64_t size; /* as requested */
    uint64_t stream;
    uint32_t head;
    uint16_t listed; /* it is in the list of the shelf */
    uint16_t asked;  /* how often it was asked for lately */
};

/* All held small blocks. */
struct shelf {
    uint32_t listed; /* bins in the list; some may be empty by now */
    uint32_t blocks;
    uint64_t bytes;
    uint16_t bins[FRONT_BINS];
};

/* Frees that the engine has not heard of yet, in their order. */
struct queue {
    uint32_t first, last; /* records, linked by next */
    uint32_t blocks;
};

/* A large block, and the request that it was the answer to. */
struct given {
    uint64_t size, stream;
    uint32_t id;
};

/* Large blocks in the order in which the engine handed them out: the first top
 * of them are in use, the others were freed in the reverse order. */
struct stack {
    uint32_t top, len;
    struct given at[FRONT_STACK];
};

struct front {
    struct lock own;

    _Alignas(64) struct lock *lock; /* of the device: its tenants share it, so that threads take turns as without them */
    uint32_t off;              /* nothing is held, everything asks the engine */
    uint32_t epoch;            /* rises when blocks handed out before may not be held */
    bool waiting;              /* freed blocks wait for other streams: the engine wants to be asked */
    uint8_t slot;              /* of a device or a tenant */
    uint32_t spare;            /* records */
    uint32_t crossings;        /* calls of the engine under way */
    uint64_t changes;          /* rises whenever the engine may have changed, see front.c */
    uint64_t layout;           /* alloc.Lent.Layout of the last answer */
    struct queue queue;
    struct outbox outbox;
    struct counts counts;

    /* Requests served and passed on; frees held, queued and passed on at once;
     * held blocks given back. */
    uint64_t hits, misses, held, queued, direct, returned;
    struct stack stack;
    struct shelf shelf;
    struct bin bins[FRONT_BINS];
};

int no_device(int device);                      /* sets the error text, returns ASHLAR_FAILED */
struct front *front_make(int slot, int device); /* NULL and an error text if there cannot be one */
extern _Atomic(struct front *) fronts[FRONT_SLOTS];

/* The front of a slot; NULL if it was never used. */
static inline struct front *front_known(int slot) {
    if (__builtin_expect((unsigned)slot >= FRONT_SLOTS, 0)) return NULL;
    return atomic_load_explicit(&fronts[slot], memory_order_acquire);
}

/* The streams of a device that belong to tenants, in a table by hash. Places are
 * taken and never given back; a stream may move to another slot. */
struct bound {
    _Atomic uint64_t key; /* stream + 1; 0 for a free place */
    _Atomic(struct front *) front;
};
struct bindings {
    uint32_t used;
    _Atomic uint32_t inside; /* threads that are in a region */
    struct bound at[FRONT_BOUND];
};
extern _Atomic(struct bindings *) front_bindings[FRONT_DEVICES];

/* The region's slot that this thread's requests of a device go to; 0 for none. */
int thread_region(int device);

static inline uint32_t bound_place(uint64_t key) { return (uint32_t)(key * 0x9E3779B97F4A7C15ull >> 32) % FRONT_BOUND; }

/* The front that serves a device's stream; NULL if there is none yet, or no such device. */
static inline struct front *front_of(int device, uint64_t stream) {
    if (__builtin_expect((unsigned)device >= FRONT_DEVICES, 0)) return NULL;
    struct bindings *b = atomic_load_explicit(&front_bindings[device], memory_order_acquire);
    if (__builtin_expect(b == NULL, 1)) return front_known(device);
    if (atomic_load_explicit(&b->inside, memory_order_relaxed) != 0) {
        const int region = thread_region(device);
        if (region != 0) return front_known(region);
    }
    for (uint32_t i = bound_place(stream + 1);; i = (i + 1) % FRONT_BOUND) {
        const uint64_t key = atomic_load_explicit(&b->at[i].key, memory_order_acquire);
        if (key == stream + 1) return atomic_load_explicit(&b->at[i].front, memory_order_relaxed);
        if (key == 0) return front_known(device);
    }
}

uint32_t record_new(struct front *f); /* 0 if there is no memory */
void record_forget(struct front *f, uint32_t id, struct record *r);

/* Unknown pointers that were freed. */
extern _Atomic uint64_t front_unknown;

#pragma GCC visibility pop

#endif
