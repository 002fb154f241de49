//go:build cgo

/*
 * When Go may not be entered. In a forked child only the forking thread is
 * left: Go's scheduler and collector are not, and CUDA does not work there
 * either. While the process exits, destructors of static objects free what is
 * still allocated, in an order that nobody controls.
 */
#include <pthread.h>
#include <stdlib.h>

#include "front.h"

_Atomic int gate;

static void forked(void) { atomic_store(&gate, GATE_FORKED); }
static void exiting(void) {
    int open = GATE_OPEN;
    atomic_compare_exchange_strong(&gate, &open, GATE_EXITING);
}

/* Objects that are made after the library was loaded are destroyed before
 * exiting() runs, and find the library at work. */
__attribute__((constructor)) static void loaded(void) {
    pthread_atfork(NULL, NULL, forked);
    atexit(exiting);
}

int gate_refuse(void) {
    if (atomic_load(&gate) == GATE_FORKED)
        return error_set(ASHLAR_FAILED,
                         "CUDA memory cannot be used in a process that was forked from one with Ashlar in it; use the spawn "
                         "start method (torch.multiprocessing.set_start_method(\"spawn\")), or load Ashlar in the children only");
    return error_set(ASHLAR_FAILED, "the process is exiting");
}
