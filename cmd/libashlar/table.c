//go:build cgo

/*
 * The table finds the record of a block by its address, without a lock and
 * without hashing. It has two levels over the bits of the address: a root with
 * an entry for each GiB, and leaves with 4 bytes for each 512 bytes of it.
 * Leaves are made when a block appears there, and their pages when they are
 * touched: a page of a leaf covers 512 KiB of device memory.
 */
#define _GNU_SOURCE
#include "front.h"

#include <sys/mman.h>

_Atomic(_Atomic uint32_t *) table_root[1 << ROOT_BITS];
_Atomic(struct record *) record_chunks[CHUNKS];
static _Atomic uint32_t next_chunk;

_Static_assert(sizeof(struct record) == 64, "a record is a cache line");

static void *pages(size_t bytes) {
    void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return p == MAP_FAILED ? NULL : p;
}

static _Atomic uint32_t *leaf_for(uint64_t unit) {
    _Atomic(_Atomic uint32_t *) *slot = &table_root[unit >> LEAF_BITS];
    _Atomic uint32_t *leaf = atomic_load_explicit(slot, memory_order_acquire);
    if (leaf != NULL) return leaf;
    const size_t bytes = sizeof(uint32_t) << LEAF_BITS;
    _Atomic uint32_t *made = pages(bytes);
    if (made == NULL) return NULL;
    if (atomic_compare_exchange_strong(slot, &leaf, made)) return made;
    munmap((void *)made, bytes); /* another thread was faster */
    return leaf;
}

bool table_set(uint64_t addr, uint32_t id) {
    const uint64_t unit = addr >> FRONT_UNIT_BITS;
    if (unit << FRONT_UNIT_BITS != addr || unit >> (LEAF_BITS + ROOT_BITS) != 0) return false;
    _Atomic uint32_t *leaf = leaf_for(unit);
    if (leaf == NULL) return false;
    atomic_store_explicit(&leaf[unit & ((1u << LEAF_BITS) - 1)], id, memory_order_release);
    return true;
}

bool record_chunk(uint32_t *first) {
    const uint32_t n = atomic_fetch_add(&next_chunk, 1);
    if (n >= CHUNKS) return false;
    struct record *chunk = pages(sizeof(struct record) << CHUNK_BITS);
    if (chunk == NULL) return false;
    atomic_store_explicit(&record_chunks[n], chunk, memory_order_release);
    *first = n << CHUNK_BITS;
    return true;
}
