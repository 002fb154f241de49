//go:build cgo

/* What belongs to a thread: why its last call failed, what its events are marked
 * with, which region it is in; and who wants to hear of out-of-memory errors. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "front.h"

/* Go's part of the library needs room in the static block for thread-local
 * variables, of which a process has little left when it loads a library. So a
 * thread keeps no more than a pointer there. */
struct texts {
    char error[8192]; /* an out-of-memory text lists the processes on the device */
    char metadata[1024];
    uint8_t region[FRONT_DEVICES]; /* slots; 0 for none */
};
static __thread struct texts *texts;

static pthread_key_t at_thread_end;
static pthread_once_t once = PTHREAD_ONCE_INIT;
/* Other destructors of the thread may still call the library: they find none. */
static void forget(void *own) {
    texts = NULL;
    free(own);
}
static void make_key(void) { pthread_key_create(&at_thread_end, forget); }

/* The texts of this thread; NULL if there is no memory for them. */
static struct texts *own_texts(void) {
    if (texts == NULL && (texts = calloc(1, sizeof *texts)) != NULL) {
        pthread_once(&once, make_key);
        pthread_setspecific(at_thread_end, texts);
    }
    return texts;
}

static void copy(char *to, size_t room, const char *from) {
    const size_t n = strnlen(from, room - 1);
    memcpy(to, from, n);
    to[n] = 0;
}

int error_set(int code, const char *text) {
    struct texts *t = own_texts();
    if (t != NULL) copy(t->error, sizeof t->error, text);
    return code;
}

int error_take(int code, char *text) {
    if (text != NULL) {
        error_set(code, text);
        free(text);
    }
    return code;
}

const char *ashlar_error_text(void) { return texts != NULL ? texts->error : ""; }

int thread_region(int device) { return texts != NULL ? texts->region[device] : 0; }

int region_set(int device, int slot) {
    struct texts *t = own_texts();
    if (t == NULL) return -1;
    const int before = t->region[device];
    t->region[device] = (uint8_t)slot;
    return before;
}

const char *metadata_current(void) { return texts != NULL && texts->metadata[0] != 0 ? texts->metadata : NULL; }

int ashlar_set_metadata(const char *text) {
    struct texts *t = own_texts();
    if (t == NULL) return ASHLAR_FAILED;
    copy(t->metadata, sizeof t->metadata, text != NULL ? text : "");
    return ASHLAR_OK;
}

const char *ashlar_get_metadata(void) { return texts != NULL ? texts->metadata : ""; }

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

const char *ashlar_version(void) { return "0.1.0-dev"; }
