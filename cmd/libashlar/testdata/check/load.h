/* Loads the library as PyTorch does, by path, and finds its functions. */
#ifndef LOAD_H
#define LOAD_H

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#include "../../ashlar.h"

#define FUNCTIONS(X)                                                                               \
    X(front_malloc) X(front_free) X(front_record_stream) X(front_begin_pool) X(front_end_pool)     \
    X(front_release_pool) X(error_text) X(init) X(settings_json) X(configure) X(reset)             \
    X(set_memory_fraction) X(get_memory_fraction) X(stats_json) X(reset_peak_stats)                \
    X(reset_accumulated_stats) X(record_history) X(set_metadata) X(get_metadata) X(snapshot_write) \
    X(snapshot_pickle) X(snapshot_json) X(set_oom_observer) X(string_free) X(force_gc)             \
    X(front_counters_json) X(version) X(tenant_set_limit) X(tenant_create) X(tenant_resize)        \
    X(tenant_delete) X(tenant_bind_stream) X(tenant_stats_json) X(region_enter) X(region_leave)    \
    X(region_delete) X(park) X(restore) X(park_blocks) X(restore_blocks) X(cold) X(guess) X(fetch) \
    X(set_registered) X(region_current) X(dropped) X(step) X(tiers_json)

#define FIELD(name) __typeof__(&ashlar_##name) name;
static struct {
    FUNCTIONS(FIELD)
} lib;

static inline void load(const char *path) {
    void *so = dlopen(path, RTLD_NOW);
    if (so == NULL) {
        fprintf(stderr, "%s\n", dlerror());
        exit(3);
    }
#define FIND(name)                                        \
    lib.name = (__typeof__(lib.name))dlsym(so, "ashlar_" #name);\
    if (lib.name == NULL) {                               \
        fprintf(stderr, "ashlar_%s is not there\n", #name);\
        exit(3);                                          \
    }
    FUNCTIONS(FIND)
}

#endif
