//go:build cgo

/* The functions of ashlar.h that are Go's: each enters Go only where it may. */
#include <stdlib.h>

#include "_cgo_export.h"
#include "front.h"

/* A call of Go that ends in an error text. */
#define CALL(call)                                \
    do {                                          \
        if (!gate_open()) return gate_refuse();   \
        char *text = NULL;                        \
        const int code = (call);                  \
        return error_take(code, text);            \
    } while (0)

/* A call of Go that gives a string, or NULL and an error text. */
#define STRING(call)                 \
    do {                             \
        if (!gate_open()) {          \
            gate_refuse();           \
            return NULL;             \
        }                            \
        char *text = NULL;           \
        char *const result = (call); \
        error_take(0, text);         \
        return result;               \
    } while (0)

int ashlar_front_begin_pool(int device, uint64_t id1, uint64_t id2, bool (*accept)(void *, void *), void *ctx) {
    CALL(ashlarGoBeginPool(device, id1, id2, (void *)accept, (uintptr_t)ctx, &text));
}
int ashlar_front_end_pool(int device, uint64_t id1, uint64_t id2) { CALL(ashlarGoEndPool(device, id1, id2, &text)); }
int ashlar_front_release_pool(int device, uint64_t id1, uint64_t id2) { CALL(ashlarGoReleasePool(device, id1, id2, &text)); }

int ashlar_init(int device_count) { CALL(ashlarGoInit(device_count, &text)); }
int ashlar_configure(const char *conf) { CALL(ashlarGoConfigure((char *)(conf != NULL ? conf : ""), &text)); }
char *ashlar_settings_json(void) { STRING(ashlarGoSettings(&text)); }

int ashlar_reset(void) { CALL(ashlarGoEmptyCache(&text)); }
int ashlar_set_memory_fraction(double fraction, int device) { CALL(ashlarGoSetFraction(device, fraction, &text)); }
int ashlar_cache_info(int device, size_t *largest) { CALL(ashlarGoCacheInfo(device, largest, &text)); }
char *ashlar_stats_json(int device) { STRING(ashlarGoStats(device, &text)); }
int ashlar_reset_peak_stats(int device) { CALL(ashlarGoResetPeaks(device, &text)); }
int ashlar_reset_accumulated_stats(int device) { CALL(ashlarGoResetSums(device, &text)); }
int ashlar_record_history(int on, uint64_t max_entries) { CALL(ashlarGoRecordHistory(on, max_entries, &text)); }
int ashlar_snapshot_write(const char *path, int device) { CALL(ashlarGoSnapshotWrite((char *)path, device, &text)); }
char *ashlar_snapshot_json(int device) { STRING(ashlarGoSnapshotJSON(device, &text)); }
int ashlar_force_gc(void) { CALL(ashlarGoCollect()); }
char *ashlar_front_counters_json(int device) { STRING(ashlarGoFrontCounters(device, &text)); }

int ashlar_tenant_set_limit(int device, uint64_t bytes) { CALL(ashlarGoTenantLimit(device, bytes, &text)); }
int ashlar_tenant_create(int device, const char *name, uint64_t guarantee, uint64_t ceiling, int priority) {
    CALL(ashlarGoTenantCreate(device, (char *)name, guarantee, ceiling, priority, &text));
}
int ashlar_tenant_resize(int device, const char *name, uint64_t guarantee, uint64_t ceiling, int priority) {
    CALL(ashlarGoTenantResize(device, (char *)name, guarantee, ceiling, priority, &text));
}
int ashlar_tenant_delete(int device, const char *name) { CALL(ashlarGoTenantDelete(device, (char *)name, &text)); }
int ashlar_tenant_bind_stream(int device, const char *name, void *stream) {
    CALL(ashlarGoTenantBind(device, (char *)name, (uint64_t)(uintptr_t)stream, &text));
}
char *ashlar_tenant_stats_json(int device, const char *name) { STRING(ashlarGoTenantStats(device, (char *)name, &text)); }

int ashlar_region_delete(int device, const char *name) { CALL(ashlarGoRegionDelete(device, (char *)name, &text)); }
int ashlar_park(int device, const char *name, int keep, char **report) {
    *report = NULL;
    CALL(ashlarGoPark(device, (char *)name, keep, report, &text));
}
int ashlar_restore(int device, const char *name, char **report) {
    *report = NULL;
    CALL(ashlarGoRestore(device, (char *)name, report, &text));
}
int ashlar_park_blocks(int device, void *const *blocks, size_t count, char **report) {
    *report = NULL;
    CALL(ashlarGoMoveBlocks(device, (void *)blocks, count, 1, report, &text));
}
int ashlar_restore_blocks(int device, void *const *blocks, size_t count, char **report) {
    *report = NULL;
    CALL(ashlarGoMoveBlocks(device, (void *)blocks, count, 0, report, &text));
}
int ashlar_fetch(int device, void *const *blocks, size_t count, char **report) {
    *report = NULL;
    CALL(ashlarGoFetch(device, (void *)blocks, count, report, &text));
}
int ashlar_step(int device, char **report) {
    *report = NULL;
    CALL(ashlarGoStep(device, report, &text));
}
int ashlar_cold(int device, void *const *blocks, size_t count) { CALL(ashlarGoCold(device, (void *)blocks, count, &text)); }
int ashlar_guess(int device, void *const *blocks, size_t count, int cold) {
    CALL(ashlarGoGuess(device, (void *)blocks, count, cold, &text));
}
int ashlar_set_registered(int registered) {
    if (!gate_open()) return gate_refuse();
    ashlarGoSetRegistered(registered);
    return ASHLAR_OK;
}
char *ashlar_tiers_json(int device) { STRING(ashlarGoTiers(device, &text)); }

int ashlar_dropped(int device, void *block) {
    if (!gate_open()) {
        gate_refuse();
        return -1;
    }
    char *text = NULL;
    const int dropped = ashlarGoDropped(device, (uint64_t)(uintptr_t)block, &text);
    error_take(0, text);
    return dropped;
}

char *ashlar_snapshot_pickle(int device, size_t *length) {
    *length = 0;
    STRING(ashlarGoSnapshotPickle(device, length, &text));
}

double ashlar_get_memory_fraction(int device) {
    if (!gate_open()) {
        gate_refuse();
        return -1;
    }
    char *text = NULL;
    const double fraction = ashlarGoGetFraction(device, &text);
    error_take(0, text);
    return fraction;
}

/* The begin of the segment of a block. */
void *ashlar_base_alloc(void *p, size_t *size) {
    if (!gate_open()) return p;
    uint64_t bytes = 0;
    const uint64_t start = ashlarGoBase((uint64_t)(uintptr_t)p, &bytes);
    if (start == 0) return p;
    if (size != NULL) *size = bytes;
    return (void *)(uintptr_t)start;
}

void ashlar_string_free(char *text) { free(text); }
