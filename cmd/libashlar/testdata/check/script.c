/* Runs the commands of standard input, one a line, and prints one line for
 * each: the tests say what to do and judge what comes out. */
#include <inttypes.h>
#include <string.h>

#include "load.h"

enum { BLOCKS = 1 << 18 };
static void *blocks[BLOCKS];

static bool accept_stream(void *ctx, void *stream) { return ctx == stream; }

static void observer(int device, uint64_t tried, uint64_t total, uint64_t free_bytes) {
    printf("observed %d %" PRIu64 " %" PRIu64 " %" PRIu64 " ", device, tried, total, free_bytes);
}

static void code(int c) {
    if (c == ASHLAR_OK)
        printf("ok\n");
    else
        printf("%s %s\n", c == ASHLAR_OOM ? "oom" : "failed", lib.error_text());
}

static void text(char *s) {
    printf("%s\n", s != NULL ? s : lib.error_text());
    lib.string_free(s);
}

/* What a call has moved, or why not. */
static void moved(int c, char *report) {
    if (c == ASHLAR_OK)
        text(report);
    else
        code(c);
}

/* Whether every byte of a block is the value: the stand-in's device memory is this process's. */
static bool holds(const unsigned char *block, uint64_t size, unsigned char value) {
    for (uint64_t i = 0; i < size; i++)
        if (block[i] != value) return false;
    return true;
}

/* Regions and moves; false for another command. */
static bool tiers(const char *op, const char *line) {
    static int outer[16], depth;
    char name[32] = "", *report = NULL;
    uint64_t device = 0, number = 0;
    sscanf(line, "%*s %31s %" SCNu64 " %" SCNu64, name, &device, &number);
    void **block = &blocks[strtoull(name, NULL, 10) % BLOCKS];
    if (strcmp(op, "enter") == 0) { /* region device */
        const int c = lib.region_enter((int)device, name, &outer[depth]);
        if (c == ASHLAR_OK) depth++;
        code(c);
    } else if (strcmp(op, "leave") == 0) {
        code(depth > 0 ? lib.region_leave((int)device, outer[--depth]) : lib.region_leave((int)device, 0));
    } else if (strcmp(op, "regiondelete") == 0) {
        code(lib.region_delete((int)device, name));
    } else if (strcmp(op, "park") == 0) { /* region device keep */
        const int c = lib.park((int)device, name, (int)number, &report);
        moved(c, report);
    } else if (strcmp(op, "restore") == 0) {
        const int c = lib.restore((int)device, name, &report);
        moved(c, report);
    } else if (strcmp(op, "parkblock") == 0) { /* slot device */
        const int c = lib.park_blocks((int)device, block, 1, &report);
        moved(c, report);
    } else if (strcmp(op, "restoreblock") == 0) {
        const int c = lib.restore_blocks((int)device, block, 1, &report);
        moved(c, report);
    } else if (strcmp(op, "cold") == 0) {
        code(lib.cold((int)device, block, 1));
    } else if (strcmp(op, "guess") == 0) { /* slot device cold */
        code(lib.guess((int)device, block, 1, (int)number));
    } else if (strcmp(op, "registered") == 0) {
        code(lib.set_registered(atoi(name)));
    } else if (strcmp(op, "inside") == 0) { /* - device */
        printf("%s\n", lib.region_current((int)device) != 0 ? "yes" : "no");
    } else if (strcmp(op, "fetch") == 0) { /* slot device */
        const int c = lib.fetch((int)device, block, 1, &report);
        moved(c, report);
    } else if (strcmp(op, "dropped") == 0) {
        printf("%d\n", lib.dropped((int)device, *block));
    } else if (strcmp(op, "step") == 0) { /* - device */
        const int c = lib.step((int)device, &report);
        moved(c, report);
    } else if (strcmp(op, "tiers") == 0) { /* - device */
        text(lib.tiers_json((int)device));
    } else {
        return false;
    }
    return true;
}

int main(int argc, char **argv) {
    static char line[4096], rest[4096];
    if (argc != 2) return 3;
    load(argv[1]);
    while (fgets(line, sizeof line, stdin) != NULL) {
        uint64_t a = 0, b = 0, c = 0, d = 0;
        char op[32] = "";
        line[strcspn(line, "\n")] = 0;
        rest[0] = 0;
        sscanf(line, "%31s %[^\n]", op, rest);
        sscanf(line, "%*s %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64, &a, &b, &c, &d);
        if (strcmp(op, "malloc") == 0) { /* slot size stream device */
            const int rc = lib.front_malloc(b, (int)d, (void *)c, &blocks[a % BLOCKS]);
            if (rc == ASHLAR_OK)
                printf("%" PRIu64 "\n", (uint64_t)blocks[a % BLOCKS]);
            else
                code(rc);
        } else if (strcmp(op, "free") == 0) { /* slot */
            lib.front_free(blocks[a % BLOCKS], 0, 0, NULL);
            printf("ok\n");
        } else if (strcmp(op, "freeaddr") == 0) {
            lib.front_free((void *)a, 0, 0, NULL);
            printf("ok\n");
        } else if (strcmp(op, "record") == 0) { /* slot stream */
            code(lib.front_record_stream(blocks[a % BLOCKS], (void *)b));
        } else if (strcmp(op, "begin") == 0) { /* device id1 id2 stream */
            code(lib.front_begin_pool((int)a, b, c, accept_stream, (void *)d));
        } else if (strcmp(op, "end") == 0) {
            code(lib.front_end_pool((int)a, b, c));
        } else if (strcmp(op, "release") == 0) {
            code(lib.front_release_pool((int)a, b, c));
        } else if (strcmp(op, "stats") == 0) {
            text(lib.stats_json((int)a));
        } else if (strcmp(op, "front") == 0) {
            text(lib.front_counters_json((int)a));
        } else if (strcmp(op, "snapshot") == 0) {
            text(lib.snapshot_json((int)(int64_t)a));
        } else if (strcmp(op, "write") == 0) {
            code(lib.snapshot_write(rest, -1));
        } else if (strcmp(op, "writenull") == 0) {
            code(lib.snapshot_write(NULL, -1));
        } else if (strcmp(op, "pickle") == 0) {
            size_t n;
            char *p = lib.snapshot_pickle(-1, &n);
            printf("%zu\n", p != NULL ? n : 0);
            lib.string_free(p);
        } else if (strcmp(op, "empty") == 0) {
            code(lib.reset());
        } else if (strcmp(op, "peaks") == 0) {
            code(lib.reset_peak_stats((int)a));
        } else if (strcmp(op, "sums") == 0) {
            code(lib.reset_accumulated_stats((int)a));
        } else if (strcmp(op, "fraction") == 0) { /* millionths device */
            code(lib.set_memory_fraction((double)a / 1e6, (int)b));
        } else if (strcmp(op, "fractionof") == 0) {
            printf("%g\n", lib.get_memory_fraction((int)a));
        } else if (strcmp(op, "configure") == 0) {
            code(lib.configure(rest));
        } else if (strcmp(op, "settings") == 0) {
            text(lib.settings_json());
        } else if (strcmp(op, "history") == 0) { /* on entries */
            code(lib.record_history((int)a, b));
        } else if (strcmp(op, "metadata") == 0) {
            code(lib.set_metadata(rest));
        } else if (strcmp(op, "metadataof") == 0) {
            printf("%s\n", lib.get_metadata());
        } else if (strcmp(op, "observe") == 0) {
            code(lib.set_oom_observer(observer));
        } else if (strcmp(op, "tenantlimit") == 0) { /* device MiB */
            code(lib.tenant_set_limit((int)a, b << 20));
        } else if (strncmp(op, "tenant", 6) == 0) { /* name device guarantee ceiling priority, in MiB */
            char name[32] = "";
            sscanf(line, "%*s %31s %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64, name, &a, &b, &c, &d);
            if (strcmp(op, "tenant") == 0)
                code(lib.tenant_create((int)a, name, b << 20, c << 20, (int)d));
            else if (strcmp(op, "tenantresize") == 0)
                code(lib.tenant_resize((int)a, name, b << 20, c << 20, (int)d));
            else if (strcmp(op, "tenantdelete") == 0)
                code(lib.tenant_delete((int)a, name));
            else if (strcmp(op, "tenantbind") == 0) /* name device stream */
                code(lib.tenant_bind_stream((int)a, name, (void *)b));
            else
                text(lib.tenant_stats_json((int)a, strcmp(name, "-") == 0 ? NULL : name));
        } else if (strcmp(op, "fill") == 0) { /* slot size value */
            memset(blocks[a % BLOCKS], (int)c, b);
            printf("ok\n");
        } else if (strcmp(op, "holds") == 0) { /* slot size value */
            printf("%s\n", holds(blocks[a % BLOCKS], b, (unsigned char)c) ? "yes" : "no");
        } else if (tiers(op, line)) {
        } else if (strcmp(op, "init") == 0) {
            code(lib.init((int)a));
        } else if (strcmp(op, "version") == 0) {
            printf("%s\n", lib.version());
        } else if (strcmp(op, "gc") == 0) {
            code(lib.force_gc());
        } else {
            printf("unknown command %s\n", op);
        }
        fflush(stdout);
    }
    return 0;
}
