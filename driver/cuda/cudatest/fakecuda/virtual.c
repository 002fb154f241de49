#include "fake.h"

// Physical memory of all handles lies in one file without a name. A handle is a
// list of its pages, so that memory in pieces can still be handed out.
typedef struct handle {
	struct handle *next;
	u64 id, size;
	device *dev; // NULL: of the host's memory
	int released;
	int mappings;
	u64 pages[]; // numbers within the file
} handle;

typedef struct reservation {
	struct reservation *next;
	u64 addr, size;
} reservation;

typedef struct mapping {
	struct mapping *next;
	u64 addr, size;
	handle *of;
	int open; // access was set
} mapping;

typedef struct { int type, id; } location;
typedef struct {
	int type, handle_types;
	location where;
	void *win32;
	unsigned char compression, rdma;
	unsigned short usage;
	unsigned char reserved[4];
} prop;
typedef struct { location where; int flags; } access_desc;

_Static_assert(sizeof(prop) == 32 && sizeof(access_desc) == 12, "the layout of cuda.h");

static handle *handles;
static reservation *reservations;
static mapping *mappings;
static u64 next_id = 1;
static int file = -1;
static u64 file_pages;
static u64 *spare_pages; // given back, to be used first
static size_t spare_count, spare_room;
static u64 host_used;

static u64 physical_page(void)
{
	if (spare_count)
		return spare_pages[--spare_count];
	return file_pages++;
}

static void spare(u64 page)
{
	if (spare_count == spare_room)
		spare_pages = realloc(spare_pages, (spare_room = spare_room * 2 + 64) * sizeof *spare_pages);
	spare_pages[spare_count++] = page;
}

static handle *find_handle(u64 id)
{
	for (handle *h = handles; h; h = h->next)
		if (h->id == id && !h->released)
			return h;
	return NULL;
}

// forget gives the memory of a handle back once nobody has it.
static void forget(handle *h)
{
	if (!h->released || h->mappings)
		return;
	for (handle **p = &handles; *p; p = &(*p)->next)
		if (*p == h) {
			*p = h->next;
			break;
		}
	for (u64 i = 0; i < h->size / PAGE; i++)
		spare(h->pages[i]);
	if (h->dev)
		give_physical(h->dev, h->size);
	else
		host_used -= h->size;
	free(h);
}

enum { ON_DEVICE = 1, IN_HOST = 2, IN_NUMA_NODE = 3 };

static CUresult check_place(const location *l)
{
	switch (l->type) {
	case ON_DEVICE: return l->id >= 0 && l->id < device_count ? OK : INVALID_VALUE;
	case IN_HOST: return setting("FAKECUDA_HOST_HANDLES", 1) ? OK : NOT_SUPPORTED;
	case IN_NUMA_NODE: return l->id || !setting("FAKECUDA_NUMA", 1) ? INVALID_VALUE : check_place(&(location){ IN_HOST, 0 });
	}
	return INVALID_VALUE;
}

// take_host takes pages of the host's memory. Its one node has half of them.
static int take_host(int type, u64 size)
{
	u64 room = setting("FAKECUDA_HOST_MEMORY", 64ull << 30) / (type == IN_NUMA_NODE ? 2 : 1);
	if (host_used + size > room)
		return 0;
	host_used += size;
	return 1;
}

static CUresult check_prop(const prop *p)
{
	if (p->type != 1)
		return INVALID_VALUE;
	CUresult code = check_place(&p->where);
	if (code)
		return code;
	if (p->where.type != ON_DEVICE && p->rdma)
		return INVALID_VALUE;
	return p->win32 || p->handle_types || p->compression ? NOT_SUPPORTED : OK;
}

CUresult cuMemGetAllocationGranularity(size_t *to, const prop *p, int option)
{
	BEGIN("cuMemGetAllocationGranularity");
	if (option != 0 && option != 1)
		END(INVALID_VALUE);
	CHECK(check_prop(p));
	*to = PAGE;
	END(OK);
}

CUresult cuMemAddressReserve(CUdeviceptr *to, size_t size, size_t alignment, CUdeviceptr wish, unsigned long long flags)
{
	(void)alignment, (void)wish;
	BEGIN("cuMemAddressReserve");
	SAFE();
	if (!size || size % PAGE || flags)
		END(INVALID_VALUE);
	void *p = map_aligned(size, PROT_NONE);
	if (!p)
		END(OUT_OF_MEMORY);
	reservation *r = malloc(sizeof *r);
	*r = (reservation){ reservations, (u64)p, size };
	reservations = r;
	counters[RESERVATIONS]++;
	*to = r->addr;
	END(OK);
}

CUresult cuMemAddressFree(CUdeviceptr addr, size_t size)
{
	BEGIN("cuMemAddressFree");
	SAFE();
	for (reservation **p = &reservations; *p; p = &(*p)->next) {
		reservation *r = *p;
		if (r->addr != addr || r->size != size)
			continue;
		for (mapping *m = mappings; m; m = m->next)
			if (m->addr >= addr && m->addr < addr + size)
				END(INVALID_VALUE);
		munmap((void *)addr, size);
		*p = r->next;
		free(r);
		counters[RESERVATIONS]--;
		END(OK);
	}
	END(INVALID_VALUE);
}

CUresult cuMemCreate(u64 *to, size_t size, const prop *p, unsigned long long flags)
{
	BEGIN("cuMemCreate");
	SAFE();
	if (!size || size % PAGE || flags)
		END(INVALID_VALUE);
	CHECK(check_prop(p));
	if (file < 0)
		file = memfd_create("fakecuda", MFD_CLOEXEC);
	device *d = p->where.type == ON_DEVICE ? shown[p->where.id] : NULL;
	if (file < 0 || !(d ? take_physical(d, size) : take_host(p->where.type, size)))
		END(OUT_OF_MEMORY);
	u64 n = size / PAGE;
	handle *h = malloc(sizeof *h + n * sizeof *h->pages);
	*h = (handle){ handles, next_id++, size, d, 0, 0 };
	for (u64 i = 0; i < n; i++)
		h->pages[i] = physical_page();
	handles = h;
	counters[HANDLES]++;
	*to = h->id;
	END(ftruncate(file, (off_t)(file_pages * PAGE)) ? OUT_OF_MEMORY : OK);
}

CUresult cuMemRelease(u64 id)
{
	BEGIN("cuMemRelease");
	SAFE();
	handle *h = find_handle(id);
	if (!h)
		END(INVALID_VALUE);
	h->released = 1;
	counters[HANDLES]--;
	forget(h);
	END(OK);
}

CUresult cuMemMap(CUdeviceptr addr, size_t size, size_t offset, u64 id, unsigned long long flags)
{
	BEGIN("cuMemMap");
	SAFE();
	handle *h = find_handle(id);
	if (!h || addr % PAGE || size != h->size || offset || flags)
		END(INVALID_VALUE);
	int inside = 0;
	for (reservation *r = reservations; r; r = r->next)
		inside |= addr >= r->addr && addr + size <= r->addr + r->size;
	for (mapping *m = mappings; m; m = m->next)
		inside &= addr + size <= m->addr || addr >= m->addr + m->size;
	if (!inside)
		END(INVALID_VALUE);
	for (u64 i = 0; i < size / PAGE; i++)
		if (mmap((void *)(addr + i * PAGE), PAGE, PROT_NONE, MAP_SHARED | MAP_FIXED, file, (off_t)(h->pages[i] * PAGE)) == MAP_FAILED)
			abort();
	mapping *m = malloc(sizeof *m);
	*m = (mapping){ mappings, addr, size, h, 0 };
	mappings = m;
	h->mappings++;
	counters[MAPPINGS]++;
	END(OK);
}

// covered is how many bytes of the range are mapped by mappings that lie in it
// as a whole; open counts only those with access.
static u64 covered(u64 addr, u64 size, int open)
{
	u64 n = 0;
	for (mapping *m = mappings; m; m = m->next)
		if (m->addr >= addr && m->addr + m->size <= addr + size && (m->open || !open))
			n += m->size;
	return n;
}

CUresult cuMemSetAccess(CUdeviceptr addr, size_t size, const access_desc *desc, size_t count)
{
	BEGIN("cuMemSetAccess");
	SAFE();
	if (!size || count != 1 || desc->where.type != 1 || desc->where.id < 0 || desc->where.id >= device_count || desc->flags != 3)
		END(INVALID_VALUE);
	if (covered(addr, size, 0) != size)
		END(INVALID_VALUE);
	if (mprotect((void *)addr, size, PROT_READ | PROT_WRITE))
		END(OUT_OF_MEMORY);
	for (mapping *m = mappings; m; m = m->next)
		if (m->addr >= addr && m->addr < addr + size)
			m->open = 1;
	END(OK);
}

CUresult cuMemUnmap(CUdeviceptr addr, size_t size)
{
	BEGIN("cuMemUnmap");
	SAFE();
	if (!size || covered(addr, size, 0) != size)
		END(INVALID_VALUE);
	for (mapping **p = &mappings; *p;) {
		mapping *m = *p;
		if (m->addr < addr || m->addr >= addr + size) {
			p = &m->next;
			continue;
		}
		*p = m->next;
		m->of->mappings--;
		forget(m->of);
		free(m);
		counters[MAPPINGS]--;
	}
	if (mmap((void *)addr, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0) == MAP_FAILED)
		abort();
	END(OK);
}

int reachable_mapped(u64 addr, u64 size)
{
	// From mapping to mapping, as long as they follow each other.
	while (size) {
		mapping *m = mappings;
		while (m && !(m->open && addr >= m->addr && addr < m->addr + m->size))
			m = m->next;
		if (!m)
			return 0;
		u64 n = m->addr + m->size - addr;
		if (n >= size)
			return 1;
		addr += n;
		size -= n;
	}
	return 1;
}
