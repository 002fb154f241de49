/* An allocator for torch that does nothing: each thread walks through addresses of its own.
 * What is measured over it is what torch's pluggable layer costs by itself. The memory must
 * never be touched. */
#include <stddef.h>
#include <stdint.h>

static uintptr_t next_range = 0x700000000000u;
static __thread uintptr_t base;
static __thread uint32_t turn;

void *noop_malloc(size_t size, int device, void *stream) {
  (void)size, (void)device, (void)stream;
  if (base == 0) base = __atomic_fetch_add(&next_range, (uintptr_t)1 << 30, __ATOMIC_RELAXED);
  /* A million addresses, so that a live one does not come again. */
  return (void *)(base + 512 * (uintptr_t)(turn++ & 0xfffff));
}

void noop_free(void *p, size_t size, int device, void *stream) {
  (void)p, (void)size, (void)device, (void)stream;
}
