//go:build cgo

/* Texts that belong to a thread: why its last call failed, what its events are
 * marked with; and who wants to hear of out-of-memory errors. */
#include <stdlib.h>
#include <string.h>

#include "front.h"

/* An out-of-memory text lists the processes on the device, so it may be long. */
static __thread char last_error[8192];
static __thread char metadata[1024];

static void copy(char *to, size_t room, const char *from) {
    const size_t n = strnlen(from, room - 1);
    memcpy(to, from, n);
    to[n] = 0;
}

int error_set(int code, const char *text) {
    copy(last_error, sizeof last_error, text);
    return code;
}

int error_take(int code, char *text) {
    if (text != NULL) {
        copy(last_error, sizeof last_error, text);
        free(text);
    }
    return code;
}

const char *ashlar_error_text(void) { return last_error; }

const char *metadata_current(void) { return metadata[0] != 0 ? metadata : NULL; }

int ashlar_set_metadata(const char *text) {
    copy(metadata, sizeof metadata, text != NULL ? text : "");
    return ASHLAR_OK;
}

const char *ashlar_get_metadata(void) { return metadata; }

enum { OBSERVERS = 16 };
static _Atomic(ashlar_oom_observer) observers[OBSERVERS];

int ashlar_set_oom_observer(ashlar_oom_observer observer) {
    for (int i = 0; i < OBSERVERS && observer != NULL; i++) {
        ashlar_oom_observer none = NULL;
        if (atomic_compare_exchange_strong(&observers[i], &none, observer)) return ASHLAR_OK;
    }
    return error_set(ASHLAR_FAILED, "there is room for 16 out-of-memory observers only");
}

void observers_call(int device, uint64_t tried, uint64_t total, uint64_t free_bytes) {
    for (int i = 0; i < OBSERVERS; i++) {
        const ashlar_oom_observer observer = atomic_load(&observers[i]);
        if (observer != NULL) observer(device, tried, total, free_bytes);
    }
}
