//go:build cgo

/*
 * The table finds the record of a block by its address, without a lock and
 * without hashing. It has two levels over the bits of the address: a root with
 * an entry for each GiB, and leaves. Leaves are made when a block appears
 * there, and their pages when they are touched: a page covers 512 KiB of
 * memory in small blocks, and a GiB in large ones.
 */
#define _GNU_SOURCE
#include "front.h"

#include <sys/mman.h>

_Atomic(struct leaf *) table_root[1 << ROOT_BITS];
_Atomic(struct record *) record_chunks[CHUNKS];
static _Atomic uint32_t next_chunk;

_Static_assert(sizeof(struct record) == 64, "a record is a cache line");

static void *pages(size_t bytes) {
    void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED) return NULL;
    madvise(p, bytes, MADV_NOHUGEPAGE); /* most of it is never touched */
    return p;
}

static struct leaf *leaf_for(uint64_t addr) {
    _Atomic(struct leaf *) *slot = &table_root[addr >> LEAF_BITS];
    struct leaf *leaf = atomic_load_explicit(slot, memory_order_acquire);
    if (leaf != NULL) return leaf;
    struct leaf *made = pages(sizeof *made);
    if (made == NULL) return NULL;
    if (atomic_compare_exchange_strong(slot, &leaf, made)) return made;
    munmap(made, sizeof *made); /* another thread was faster */
    return leaf;
}

bool table_set(uint64_t addr, uint64_t size, uint32_t id) {
    if (addr % FRONT_UNIT != 0 || addr >> (LEAF_BITS + ROOT_BITS) != 0) return false;
    struct leaf *leaf = leaf_for(addr);
    if (leaf == NULL) return false;
    const uint64_t at = addr & ((1u << LEAF_BITS) - 1);
    _Atomic uint32_t *entry = size >> WIDE_BITS != 0 ? &leaf->wide[at >> WIDE_BITS] : &leaf->narrow[at >> FRONT_UNIT_BITS];
    atomic_store_explicit(entry, id, memory_order_release);
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
