#include "work.h"

// The kernels of package kernels, as the host does them.

static u64 word(u64 seed, u64 i)
{
	u64 x = i * 0x9E3779B97F4A7C15ull ^ seed;
	x = (x ^ x >> 32) * 0xD6E8FEB86659FD93ull;
	return x ^ x >> 32;
}

static void spin(const u64 *a) { (void)a; }

static void write_pattern(const u64 *a)
{
	for (u64 i = 0; i < a[1]; i++)
		((u64 *)a[0])[i] = word(a[2], i);
}

static void check_pattern(const u64 *a)
{
	u64 *outcome = (u64 *)a[3];
	for (u64 i = 0; i < a[1]; i++)
		if (((u64 *)a[0])[i] != word(a[2], i)) {
			outcome[0]++;
			if (i < outcome[1])
				outcome[1] = i;
		}
}

static void sum(const u64 *a)
{
	for (u64 i = 0; i < a[1]; i++)
		*(u64 *)a[2] += ((u64 *)a[0])[i];
}

static void gather(const u64 *a)
{
	for (u64 i = 0; i < a[2]; i++)
		*(u64 *)a[4] += ((u64 *)a[0])[(a[3] ? i * a[3] : word(0, i)) % a[1]];
}

typedef struct { const char *name; kernel fn; int args, memory; } function;

static const function functions[] = {
	{ "ashlar_spin", spin, 1, 0 },
	{ "ashlar_write", write_pattern, 3, 1 },
	{ "ashlar_check", check_pattern, 4, 1 },
	{ "ashlar_sum", sum, 3, 1 },
	{ "ashlar_gather", gather, 5, 1 },
};

typedef struct { u64 magic; char *text; } module;
#define MODULE_MAGIC 0x4d4f44554c45ull

CUresult cuModuleLoadDataEx(module **to, const char *image, unsigned count, const int *options, void **values)
{
	BEGIN("cuModuleLoadDataEx");
	IN_CONTEXT();
	SAFE();
	if (!strstr(image, ".version") || !strstr(image, ".target") || !strstr(image, ".address_size 64")) {
		for (unsigned i = 0; i + 1 < count; i++)
			if (options[i] == 5 && options[i + 1] == 6)
				snprintf(values[i], (size_t)values[i + 1], "ptxas fatal   : Missing .version directive\n");
		END(INVALID_PTX);
	}
	module *m = malloc(sizeof *m);
	*m = (module){ MODULE_MAGIC, strdup(image) };
	counters[MODULES]++;
	*to = m;
	END(OK);
}

CUresult cuModuleUnload(module *m)
{
	BEGIN("cuModuleUnload");
	IN_CONTEXT();
	SAFE();
	if (!m || m->magic != MODULE_MAGIC)
		END(INVALID_HANDLE);
	run_all();
	m->magic = 0;
	free(m->text);
	counters[MODULES]--;
	END(OK);
}

CUresult cuModuleGetFunction(const function **to, module *m, const char *name)
{
	BEGIN("cuModuleGetFunction");
	IN_CONTEXT();
	if (!m || m->magic != MODULE_MAGIC)
		END(INVALID_HANDLE);
	char entry[128];
	snprintf(entry, sizeof entry, ".entry %s(", name);
	for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
		if (!strcmp(functions[i].name, name) && strstr(m->text, entry)) {
			*to = &functions[i];
			END(OK);
		}
	END(NOT_FOUND);
}

CUresult cuLaunchKernel(const function *f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared,
	void *p, void **params, void **extra)
{
	BEGIN("cuLaunchKernel");
	IN_CONTEXT();
	stream *s = find_stream(p);
	if (!s || f < functions || f >= functions + sizeof functions / sizeof *functions)
		END(INVALID_HANDLE);
	if (!gx || !gy || !gz || !bx || !by || !bz || gx > 0x7fffffff || gy > 65535 || gz > 65535 || bx * by * bz > 1024 || shared || extra)
		END(INVALID_VALUE);
	op o = { .kind = KERNEL, .fn = f->fn, .size = (u64)f->memory };
	for (int i = 0; i < f->args; i++)
		o.args[i] = *(u64 *)params[i];
	END(enqueue(s, &o));
}
