#include "fake.h"

// A range is memory that was given out, by any of the ways here.
typedef struct range {
	struct range *next;
	u64 addr, size;
	enum counter kind;
	device *dev;
} range;

static range *ranges;

void *map_aligned(u64 size, int prot)
{
	u64 room = size + PAGE;
	char *p = mmap(NULL, room, prot, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (p == MAP_FAILED)
		return NULL;
	char *at = (char *)(((u64)p + PAGE - 1) / PAGE * PAGE);
	if (at > p)
		munmap(p, (size_t)(at - p));
	if (p + room > at + size)
		munmap(at + size, (size_t)(p + room - (at + size)));
	return at;
}

static u64 pages(u64 size) { return (size + PAGE - 1) / PAGE * PAGE; }

int take_physical(device *d, u64 size)
{
	if (pages(size) < size || d->used > d->total || pages(size) > d->total - d->used)
		return 0;
	d->used += pages(size);
	return 1;
}

void give_physical(device *d, u64 size) { d->used -= pages(size); }

static range *find(u64 addr, enum counter kind)
{
	for (range *r = ranges; r; r = r->next)
		if (r->addr == addr && r->kind == kind)
			return r;
	return NULL;
}

static CUresult give_out(enum counter kind, u64 size, u64 *to)
{
	device *d = current();
	int physical = kind == ALLOCATIONS || kind == POOLED;
	if (!size)
		return INVALID_VALUE;
	if (physical && !take_physical(d, size))
		return OUT_OF_MEMORY;
	void *p = map_aligned(pages(size), PROT_READ | PROT_WRITE);
	if (!p) {
		if (physical)
			give_physical(d, size);
		return OUT_OF_MEMORY;
	}
	range *r = malloc(sizeof *r);
	*r = (range){ ranges, (u64)p, size, kind, d };
	ranges = r;
	counters[kind]++;
	*to = r->addr;
	return OK;
}

static void take_back(range *r)
{
	for (range **p = &ranges; *p; p = &(*p)->next)
		if (*p == r) {
			*p = r->next;
			break;
		}
	munmap((void *)r->addr, pages(r->size));
	if (r->kind == ALLOCATIONS || r->kind == POOLED)
		give_physical(r->dev, r->size);
	counters[r->kind]--;
	free(r);
}

int reachable(u64 addr, u64 size)
{
	for (range *r = ranges; r; r = r->next)
		if (addr >= r->addr && addr - r->addr < r->size && size <= r->size - (addr - r->addr))
			return 1;
	return reachable_mapped(addr, size);
}

int pinned(const void *p, u64 size)
{
	u64 addr = (u64)p;
	for (range *r = ranges; r; r = r->next)
		if (r->kind == HOST && addr >= r->addr && addr - r->addr < r->size && size <= r->size - (addr - r->addr))
			return 1;
	return 0;
}

CUresult cuMemGetInfo_v2(size_t *free_bytes, size_t *total)
{
	BEGIN("cuMemGetInfo_v2");
	IN_CONTEXT();
	device *d = current();
	*total = d->total;
	*free_bytes = d->total - (d->used < d->total ? d->used : d->total);
	END(OK);
}

CUresult cuMemAlloc_v2(CUdeviceptr *to, size_t size)
{
	BEGIN("cuMemAlloc_v2");
	IN_CONTEXT();
	SAFE();
	END(give_out(ALLOCATIONS, size, to));
}

CUresult cuMemFree_v2(CUdeviceptr addr)
{
	BEGIN("cuMemFree_v2");
	IN_CONTEXT();
	SAFE();
	if (!addr)
		END(OK);
	range *r = find(addr, ALLOCATIONS);
	if (!r)
		r = find(addr, MANAGED);
	if (!r)
		END(INVALID_VALUE);
	run_all();
	CHECK(usable());
	take_back(r);
	END(OK);
}

CUresult cuMemAllocManaged(CUdeviceptr *to, size_t size, unsigned flags)
{
	BEGIN("cuMemAllocManaged");
	IN_CONTEXT();
	SAFE();
	if (flags != 1 && flags != 2)
		END(INVALID_VALUE);
	END(give_out(MANAGED, size, to));
}

static CUresult managed(u64 addr, u64 size, CUdevice place)
{
	if (place < -1 || place >= device_count)
		return INVALID_DEVICE;
	for (range *r = ranges; r; r = r->next)
		if (r->kind == MANAGED && addr >= r->addr && addr - r->addr < r->size && size && size <= r->size - (addr - r->addr))
			return OK;
	return INVALID_VALUE;
}

CUresult cuMemPrefetchAsync(CUdeviceptr addr, size_t size, CUdevice to, void *s)
{
	(void)s;
	BEGIN("cuMemPrefetchAsync");
	IN_CONTEXT();
	END(managed(addr, size, to));
}

CUresult cuMemAdvise(CUdeviceptr addr, size_t size, int advice, CUdevice place)
{
	BEGIN("cuMemAdvise");
	IN_CONTEXT();
	END(advice < 1 || advice > 6 ? INVALID_VALUE : managed(addr, size, place));
}

CUresult cuMemHostAlloc(void **to, size_t size, unsigned flags)
{
	BEGIN("cuMemHostAlloc");
	IN_CONTEXT();
	SAFE();
	if (flags & ~7u)
		END(INVALID_VALUE);
	END(give_out(HOST, size, (u64 *)to));
}

CUresult cuMemFreeHost(void *p)
{
	BEGIN("cuMemFreeHost");
	IN_CONTEXT();
	SAFE();
	range *r = find((u64)p, HOST);
	if (!r)
		END(INVALID_VALUE);
	run_all();
	CHECK(usable());
	take_back(r);
	END(OK);
}

// The default pool: memory comes at once, and goes back at once unless the
// release threshold lets the pool keep its account of it.

CUresult cuDeviceGetDefaultMemPool(device **to, CUdevice dev)
{
	BEGIN("cuDeviceGetDefaultMemPool");
	if (dev < 0 || dev >= device_count)
		END(INVALID_DEVICE);
	*to = shown[dev];
	END(OK);
}

static int is_pool(device *d) { return d >= devices && d < devices + MAX_DEVICES; }

CUresult cuMemAllocFromPoolAsync(CUdeviceptr *to, size_t size, device *pool, void *s)
{
	(void)s;
	BEGIN("cuMemAllocFromPoolAsync");
	IN_CONTEXT();
	if (!is_pool(pool))
		END(INVALID_VALUE);
	CHECK(give_out(POOLED, size, to));
	pool->pool_used += pages(size);
	if (pool->pool_used > pool->pool_used_high)
		pool->pool_used_high = pool->pool_used;
	if (pool->pool_used > pool->pool_reserved)
		pool->pool_reserved = pool->pool_used;
	if (pool->pool_reserved > pool->pool_reserved_high)
		pool->pool_reserved_high = pool->pool_reserved;
	END(OK);
}

static void trim(device *pool, u64 keep)
{
	u64 least = pool->pool_used > keep ? pool->pool_used : keep;
	if (pool->pool_reserved > least)
		pool->pool_reserved = least;
}

CUresult cuMemFreeAsync(CUdeviceptr addr, void *s)
{
	(void)s;
	BEGIN("cuMemFreeAsync");
	IN_CONTEXT();
	range *r = find(addr, POOLED);
	if (!r)
		END(INVALID_VALUE);
	run_all();
	CHECK(usable());
	device *pool = r->dev;
	pool->pool_used -= pages(r->size);
	trim(pool, pool->threshold);
	take_back(r);
	END(OK);
}

static u64 *pool_attribute(device *pool, int attribute)
{
	switch (is_pool(pool) ? attribute : 0) {
	case 4: return &pool->threshold;
	case 5: return &pool->pool_reserved;
	case 6: return &pool->pool_reserved_high;
	case 7: return &pool->pool_used;
	case 8: return &pool->pool_used_high;
	}
	return NULL;
}

CUresult cuMemPoolGetAttribute(device *pool, int attribute, u64 *to)
{
	BEGIN("cuMemPoolGetAttribute");
	if (is_pool(pool) && attribute >= 1 && attribute <= 3) {
		*(int *)to = !pool->no_reuse[attribute - 1];
		END(OK);
	}
	u64 *from = pool_attribute(pool, attribute);
	if (!from)
		END(INVALID_VALUE);
	*to = *from;
	END(OK);
}

CUresult cuMemPoolSetAttribute(device *pool, int attribute, u64 *value)
{
	BEGIN("cuMemPoolSetAttribute");
	if (is_pool(pool) && attribute >= 1 && attribute <= 3) {
		pool->no_reuse[attribute - 1] = !*(int *)value;
		END(OK);
	}
	if (!pool_attribute(pool, attribute) || attribute == 5 || attribute == 7 || (attribute != 4 && *value))
		END(INVALID_VALUE); // the highs can only be set to 0
	switch (attribute) {
	case 4: pool->threshold = *value; break;
	case 6: pool->pool_reserved_high = pool->pool_reserved; break;
	case 8: pool->pool_used_high = pool->pool_used; break;
	}
	END(OK);
}

CUresult cuMemPoolTrimTo(device *pool, size_t keep)
{
	BEGIN("cuMemPoolTrimTo");
	if (!is_pool(pool))
		END(INVALID_VALUE);
	trim(pool, keep);
	END(OK);
}
