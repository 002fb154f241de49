//go:build cgo

/* The begin of the segment of a block. */
#include "_cgo_export.h"
#include "front.h"

void *ashlar_base_alloc(void *p, size_t *size) {
    if (!gate_open()) return p;
    uint64_t bytes = 0;
    const uint64_t start = ashlarGoBase((uint64_t)(uintptr_t)p, &bytes);
    if (start == 0) return p;
    if (size != NULL) *size = bytes;
    return (void *)(uintptr_t)start;
}
