/* Forks while one thread allocates and another has Go's garbage collected. The
 * child frees, asks for memory and for statistics, and exits. */
#include <pthread.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "load.h"

static volatile int stop;

static void *allocate(void *unused) {
    (void)unused;
    while (!stop) {
        void *p[8];
        for (int i = 0; i < 8; i++) lib.front_malloc(1000u * (unsigned)(i + 1), 0, NULL, &p[i]);
        lib.front_record_stream(p[3], (void *)1); /* the free of this one enters Go */
        for (int i = 0; i < 8; i++) lib.front_free(p[i], 0, 0, NULL);
    }
    return NULL;
}

static void *collect(void *unused) {
    (void)unused;
    while (!stop) lib.force_gc();
    return NULL;
}

static int child(void **live) {
    void *p = NULL;
    for (int i = 0; i < 64; i++) lib.front_free(live[i], 0, 0, NULL);
    if (lib.front_malloc(4096, 0, NULL, &p) != ASHLAR_FAILED || p != NULL) return 10;
    if (strstr(lib.error_text(), "forked") == NULL) return 11;
    if (lib.stats_json(0) != NULL || lib.settings_json() != NULL) return 12;
    if (lib.reset() != ASHLAR_FAILED || lib.force_gc() != ASHLAR_FAILED) return 13;
    if (lib.front_malloc(0, 0, NULL, &p) != ASHLAR_FAILED) return 14;
    return 0;
}

int main(int argc, char **argv) {
    if (argc != 2) return 3;
    load(argv[1]);
    void *live[64];
    for (int i = 0; i < 64; i++) lib.front_malloc(512u * (unsigned)(i + 1) * 100, 0, NULL, &live[i]);
    pthread_t a, b;
    pthread_create(&a, NULL, allocate, NULL);
    pthread_create(&b, NULL, collect, NULL);
    int bad = 0;
    for (int run = 0; run < 20; run++) {
        const pid_t pid = fork();
        if (pid == 0) {
            alarm(5); /* a child that hangs is killed */
            exit(child(live));
        }
        int status = 0;
        waitpid(pid, &status, 0);
        if (status != 0) {
            fprintf(stderr, "run %d: status %x\n", run, (unsigned)status);
            bad = 1;
        }
    }
    stop = 1;
    pthread_join(a, NULL);
    pthread_join(b, NULL);
    for (int i = 0; i < 64; i++) lib.front_free(live[i], 0, 0, NULL);
    if (!bad) printf("ok\n");
    return bad;
}
