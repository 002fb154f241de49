//go:build cgo

/* The region of a thread, and who hears of overflow; what moves is in ashlar_calls.c. */
#include <stdio.h>
#include <stdlib.h>

#include "_cgo_export.h"
#include "front.h"

int ashlar_region_enter(int device, const char *name, int *outer) {
    *outer = 0;
    if (!gate_open()) return gate_refuse();
    char *text = NULL;
    int slot = 0;
    const int code = ashlarGoRegion(device, (char *)(name != NULL ? name : ""), &slot, &text);
    if (code != ASHLAR_OK) return error_take(code, text);
    const int before = front_inside(device, 1) ? region_set(device, slot) : -1;
    if (before < 0) return error_set(ASHLAR_FAILED, "no host memory to keep track of regions");
    *outer = before;
    return ASHLAR_OK;
}

int ashlar_region_leave(int device, int outer) {
    if (!gate_open()) return gate_refuse();
    if ((unsigned)device >= FRONT_DEVICES || (unsigned)outer >= FRONT_SLOTS) return no_device(device);
    if (thread_region(device) == 0) return error_set(ASHLAR_FAILED, "this thread is in no region");
    region_set(device, outer);
    front_inside(device, -1);
    return ASHLAR_OK;
}

int ashlar_region_current(int device) { return (unsigned)device < FRONT_DEVICES ? thread_region(device) : 0; }

int ashlar_hand_over(int device) {
    struct front *f = front_known(device);
    if (f == NULL) return 0;
    struct lock *l = f->lock;
    const uintptr_t me = (uintptr_t)pthread_self();
    lock_word(l);
    const bool mine = lock_since_mark(l, me); /* else whoever works for this thread would be one more stranger */
    if (mine) lock_handed(l, 0, me);
    lock_unlock(l);
    return mine;
}

void ashlar_take_back(int device) {
    struct front *f = front_known(device);
    if (f == NULL) return;
    lock_word(f->lock);
    if (f->lock->strangers == 0) lock_handed(f->lock, (uintptr_t)pthread_self(), 0);
    lock_unlock(f->lock);
}

static _Atomic(ashlar_overflow_observer) told_overflow;

void ashlar_set_overflow_observer(ashlar_overflow_observer observer) { atomic_store(&told_overflow, observer); }

void overflow_note(char *text) {
    const ashlar_overflow_observer observer = atomic_load(&told_overflow);
    if (observer != NULL)
        observer(text);
    else
        fprintf(stderr, "%s\n", text);
    free(text);
}
