/*
 * ashlar.h: what libashlar.so offers to programs in C, C++ and Python (ctypes).
 *
 * Threads. Every function may be called from any thread at any time.
 *
 * Errors. A function that returns int gives ASHLAR_OK, ASHLAR_OOM or
 * ASHLAR_FAILED; one that returns a pointer gives NULL if it failed.
 * ashlar_error_text() then says why. The text belongs to the library and to the
 * calling thread and stays valid until that thread's next failure.
 *
 * Ownership. A char * that a function returns is the caller's; it is given
 * back with ashlar_string_free(). A const char * is the library's.
 *
 * fork. In a forked child CUDA memory cannot be used. There every function
 * fails, ashlar_free() and its like do nothing, and Go is never entered.
 *
 * exit. Once the process is exiting it is the same: memory that is freed by
 * destructors of static objects is left to the driver.
 *
 * Devices are numbered as CUDA numbers them for this process. Streams are raw
 * handles; 0 is the default stream. Sizes are bytes.
 */
#ifndef ASHLAR_H
#define ASHLAR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ASHLAR_API __attribute__((visibility("default"), used))

#ifdef __cplusplus
#define ASHLAR_NOTHROW noexcept
extern "C" {
#else
#define ASHLAR_NOTHROW
#endif

enum { ASHLAR_OK = 0, ASHLAR_OOM = 1, ASHLAR_FAILED = 2 };

/* ---- What PyTorch calls: torch_entry.cpp; torch_pools.cpp has the functions with C++ types. */

/* Throws a C++ exception if it fails. */
ASHLAR_API void *ashlar_malloc(size_t size, int device, void *stream);
ASHLAR_API void ashlar_free(void *p, size_t size, int device, void *stream) ASHLAR_NOTHROW;
ASHLAR_API void ashlar_record_stream(void *p, void *stream) ASHLAR_NOTHROW;

/* Have a function told of every ashlar_malloc(), after it, and ashlar_free(),
 * before it, on the calling thread and with no lock held; NULL for none. It waits
 * until the function before is not being called any more. That is how
 * ashlar_torch.py learns the stacks of a recorded history. */
enum { ASHLAR_TOLD_ALLOC = 0, ASHLAR_TOLD_FREE = 1, ASHLAR_TOLD_OOM = 2 };
typedef void (*ashlar_witness)(int told, int device, void *p, size_t size);
ASHLAR_API void ashlar_set_witness(ashlar_witness witness);

/* The same as ashlar_init(), ashlar_reset() and ashlar_set_memory_fraction()
 * below, with exceptions. */
ASHLAR_API void ashlar_torch_init(int device_count);
ASHLAR_API void ashlar_torch_reset(void);
ASHLAR_API void ashlar_torch_set_memory_fraction(double fraction, int device);

/* The segment of p: its begin, and its size in *size if size is not NULL.
 * p itself if it is not of this library. */
ASHLAR_API void *ashlar_base_alloc(void *p, size_t *size) ASHLAR_NOTHROW;

/* Has PyTorch's CUDAPluggableAllocator::cacheInfo() answered by
 * ashlar_cache_info(): PyTorch's own only throws, and cuDNN's search for
 * algorithms (torch.backends.cudnn.benchmark) calls it. There is no setter for
 * it, so the entry in the class's table of virtual functions is changed. Returns
 * 1 if it is served, 0 if PyTorch was left as it is; ashlar_error_text() then
 * says why. ASHLAR_PATCH_TORCH=0 forbids it. May be called again. */
ASHLAR_API int ashlar_complete_torch(void) ASHLAR_NOTHROW;

/* ---- The same without exceptions: front.c. For C, and for torch_entry.cpp. */

/* Puts the address of size bytes for use on stream into *out. Size 0 gives
 * NULL; every other pointer is unique among the live ones. */
ASHLAR_API int ashlar_front_malloc(size_t size, int device, void *stream, void **out);

/* Gives memory back. size, device and stream are not looked at: the library
 * knows them. NULL is ignored. A pointer that is not allocated is counted, and
 * reported on stderr the first time. */
ASHLAR_API void ashlar_front_free(void *p, size_t size, int device, void *stream);

/* Says that stream uses the memory too: once freed it is left alone until the
 * stream has passed that point. Pointers of others are ignored. */
ASHLAR_API int ashlar_front_record_stream(void *p, void *stream);

/* Between begin and end, allocations on the streams that accept() names come
 * from the pool (id1, id2), which is made at its first use. accept() is called
 * with a lock held and must not call back; ctx must live until end_pool has
 * returned. Each begin is paid back by one release, after the end: blocks of
 * the pool go to nobody else before the last of them. */
ASHLAR_API int ashlar_front_begin_pool(int device, uint64_t id1, uint64_t id2,
                                          bool (*accept)(void *ctx, void *stream), void *ctx);
ASHLAR_API int ashlar_front_end_pool(int device, uint64_t id1, uint64_t id2);
ASHLAR_API int ashlar_front_release_pool(int device, uint64_t id1, uint64_t id2);

/* Why the last call of this thread failed. Never NULL. */
ASHLAR_API const char *ashlar_error_text(void);

/* ---- Set-up. */

/* The version of the library, for example "0.1.0". */
ASHLAR_API const char *ashlar_version(void);

/* Reads the settings from the environment: ASHLAR_CONF, or else PyTorch's own
 * variables. Fails, naming the key, if they are wrong; every allocation then
 * fails with the same text. It may be left out: the first call of anything
 * does it. Devices are opened when they are first used. */
ASHLAR_API int ashlar_init(int device_count);

/* The settings in force, as JSON: settings (text), each key by name, where they
 * were read, notes on keys that have no meaning here. */
ASHLAR_API char *ashlar_settings_json(void);

/* Changes settings at run time, on all devices; PyTorch's keys behave as in
 * torch.cuda.memory._set_allocator_settings(). */
ASHLAR_API int ashlar_configure(const char *conf);

/* ---- What torch.cuda offers. */

/* torch.cuda.empty_cache(), for all devices in use. */
ASHLAR_API int ashlar_reset(void);

ASHLAR_API int ashlar_set_memory_fraction(double fraction, int device);

/* The fraction in force; 1 without a limit; negative if it failed. */
ASHLAR_API double ashlar_get_memory_fraction(int device);

/* Raises *largest to the size of the device's largest free block; 0 is first
 * replaced by what the device has free. Untouched if it failed. */
ASHLAR_API int ashlar_cache_info(int device, size_t *largest);

/* torch._C._cuda_memoryStats(device): the nested dictionary, as JSON. */
ASHLAR_API char *ashlar_stats_json(int device);

ASHLAR_API int ashlar_reset_peak_stats(int device);
ASHLAR_API int ashlar_reset_accumulated_stats(int device);

/* Starts to record the newest max_entries events on every device, from an
 * empty history; 0 keeps all. on == 0 stops and forgets. */
ASHLAR_API int ashlar_record_history(int on, uint64_t max_entries);

/* A text that is attached to every event this thread causes; NULL or "" for
 * none. Returned by ashlar_get_metadata until the thread's next change. */
ASHLAR_API int ashlar_set_metadata(const char *text);
ASHLAR_API const char *ashlar_get_metadata(void);

/* The snapshot of one device, or of all with -1: written to a file as
 * torch.cuda.memory._dump_snapshot() does; the same pickle in memory, *length
 * bytes long; the same as JSON. */
ASHLAR_API int ashlar_snapshot_write(const char *path, int device);
ASHLAR_API char *ashlar_snapshot_pickle(int device, size_t *length);
ASHLAR_API char *ashlar_snapshot_json(int device);

/* Has the observer called at each out-of-memory error, before the error is
 * returned, on the thread that ran out and with no lock held. The numbers are
 * those of PyTorch's observers: bytes that were tried to get, what may be
 * used at all (the limit or the device), what the device has free. Every
 * observer stays for good; there is room for 16. */
typedef void (*ashlar_oom_observer)(int device, uint64_t tried_bytes, uint64_t total_bytes, uint64_t free_bytes);
ASHLAR_API int ashlar_set_oom_observer(ashlar_oom_observer observer);

ASHLAR_API void ashlar_string_free(char *text);

/* ---- Tenants: several users of a device, each with a guarantee (docs/tenants.md).
 * A request belongs to the tenant that its stream is bound to, or else to
 * "default"; a block is freed to its own tenant, whoever frees it. */

/* What the tenants of a device have together. If it is not set, the first tenant
 * sets it to what is reserved and free then. */
ASHLAR_API int ashlar_tenant_set_limit(int device, uint64_t bytes);

/* guarantee and ceiling are bytes; a ceiling of 0 is none. */
ASHLAR_API int ashlar_tenant_create(int device, const char *name, uint64_t guarantee, uint64_t ceiling, int priority);
ASHLAR_API int ashlar_tenant_resize(int device, const char *name, uint64_t guarantee, uint64_t ceiling, int priority);

/* Fails while memory of the tenant is in use. Its streams are the default's then. */
ASHLAR_API int ashlar_tenant_delete(int device, const char *name);
ASHLAR_API int ashlar_tenant_bind_stream(int device, const char *name, void *stream);

/* The statistics of a tenant, as ashlar_stats_json() has those of all; with NULL
 * what the group's memory is used for. */
ASHLAR_API char *ashlar_tenant_stats_json(int device, const char *name);

/* ---- Tiers: memory that goes to the host and comes back to the same addresses
 * (docs/tiers.md). It needs expandable segments and a driver that maps the host's memory.
 * A move waits for the whole device, and nobody may begin work on it meanwhile. While a
 * graph is being captured nothing is moved: the calls fail. */

/* From here on what this thread requests of the device belongs to a region, which is made
 * at its first use and has an allocator of its own; *outer is what it belonged to before,
 * for ashlar_region_leave(). Blocks go back to their region, whoever frees them. */
ASHLAR_API int ashlar_region_enter(int device, const char *name, int *outer);
ASHLAR_API int ashlar_region_leave(int device, int outer);

/* What this thread's requests belong to now, as *outer above tells it; 0 for no region. */
ASHLAR_API int ashlar_region_current(int device);

/* Fails while memory of the region is in use. */
ASHLAR_API int ashlar_region_delete(int device, const char *name);

/* Moves a region to the host and gives its device memory back; keep == 0 drops what is in
 * it. Restoring brings it back; what was dropped is undefined then. The blocks of the
 * other two may be of any region or none: handles move whose every block is named.
 * *report is JSON, the caller's: what was moved, freed, and stayed, in bytes. */
ASHLAR_API int ashlar_park(int device, const char *name, int keep, char **report);
ASHLAR_API int ashlar_restore(int device, const char *name, char **report);
ASHLAR_API int ashlar_park_blocks(int device, void *const *blocks, size_t count, char **report);
ASHLAR_API int ashlar_restore_blocks(int device, void *const *blocks, size_t count, char **report);

/* Says that blocks are seldom used: they leave the device before others do. */
ASHLAR_API int ashlar_cold(int device, void *const *blocks, size_t count);

/* The same for what was inferred: blocks are seldom used, or, if cold is 0, used much and leave the
 * device after others. What ashlar_cold() has named, and what is not of this device, is left out. */
ASHLAR_API int ashlar_guess(int device, void *const *blocks, size_t count, int cold);

/* Whether libraries, as NCCL, may have registered memory that graphs captured so far use. Once there was a capture nothing moves
 * by itself until it was said of it that they have not. */
ASHLAR_API int ashlar_set_registered(int registered);

/* Brings home what overflowed of blocks that are about to be used again and again, as the state of an optimizer: as much as the device has
 * room for, with what is cached. If another thread has used the device since the last step nothing moves. */
ASHLAR_API int ashlar_fetch(int device, void *const *blocks, size_t count, char **report);

/* This thread waits while another one works for it, as during a backward pass, until it takes the
 * device back. While one thread alone has used a device since the last step a request that
 * would fail may move cold memory. Returns 1 if this thread was the one, and 0 if
 * there is nothing to take back. */
ASHLAR_API int ashlar_hand_over(int device);
ASHLAR_API void ashlar_take_back(int device);

/* Whether there is no memory behind a block: 0, 1 if its region was dropped, 2 if a move failed and could not be
 * undone, which later calls try again; -1 if it failed. */
ASHLAR_API int ashlar_dropped(int device, void *block);

/* A step of the program ends: memory ages, and if no other thread has used the device in this step and the 16 before, cold
 * memory makes room for what overflowed, and comes home. */
ASHLAR_API int ashlar_step(int device, char **report);

/* Limits, and the regions with what lies where, as JSON. */
ASHLAR_API char *ashlar_tiers_json(int device);

/* Has a function told of the first request of an allocator that memory of the host has
 * served, on its thread and with no lock held; without one, the text goes to stderr. */
typedef void (*ashlar_overflow_observer)(const char *text);
ASHLAR_API void ashlar_set_overflow_observer(ashlar_overflow_observer observer);

/* ---- For tests. */

/* Runs Go's garbage collector once. */
ASHLAR_API int ashlar_force_gc(void);

/* What the front cache of a device did and holds, as JSON. */
ASHLAR_API char *ashlar_front_counters_json(int device);

#ifdef __cplusplus
}
#endif

#endif
