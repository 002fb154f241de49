#include "fake.h"

pthread_mutex_t fake_lock = PTHREAD_MUTEX_INITIALIZER;
device devices[MAX_DEVICES];
device *shown[MAX_DEVICES];
int device_count;
long counters[COUNTERS];
int lazy;

static int initialized, exiting;
int machine_devices;
static u64 context_cost;
static long calls;

// Failures to come: the call that brings left to 0 fails with code, and with ever all
// that follow.
static struct { char name[64]; long left; int code, ever; } faults[16];

// The contexts of a thread, the current one last.
static __thread struct { CUcontext stack[32]; int depth, mode, number, failed; } thread;
static int threads;

int thread_number(void)
{
	if (!thread.number)
		thread.number = __sync_add_and_fetch(&threads, 1);
	return thread.number;
}

device *current(void) { return thread.depth ? thread.stack[thread.depth - 1] : NULL; }

u64 setting(const char *name, u64 otherwise)
{
	const char *s = getenv(name);
	return s && *s ? strtoull(s, NULL, 0) : otherwise;
}

void fake_fail(const char *name, long n, int code)
{
	pthread_mutex_lock(&fake_lock);
	for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
		if (faults[i].left > 0)
			continue;
		snprintf(faults[i].name, sizeof faults[i].name, "%s", name);
		faults[i].left = n;
		faults[i].code = code;
		break;
	}
	pthread_mutex_unlock(&fake_lock);
}

void fake_heal(void)
{
	pthread_mutex_lock(&fake_lock);
	memset(faults, 0, sizeof faults);
	pthread_mutex_unlock(&fake_lock);
}

long fake_calls(void) { return calls; }
void fake_lazy(int yes) { lazy = yes; }
void fake_exit(void) { exiting = 1; }
void fake_memory(u64 total) { devices[0].total = total; }
int fake_context_depth(void) { return thread.depth; }
int fake_capture_mode(void) { return thread.mode; }

long fake_count(const char *what)
{
	static const char *const names[COUNTERS] = {
		"allocations", "host", "managed", "pooled", "reservations", "handles", "mappings", "streams", "events", "modules", "graphs",
		"contexts",
	};
	for (int i = 0; i < COUNTERS; i++)
		if (!strcmp(names[i], what))
			return counters[i];
	return -1;
}

// Calls that put things back fail only when they are named: nobody can make up
// for it. For the same reason no call fails by count right after another one
// has failed, since it may undo what was begun.
static int fails_by_count(const char *name)
{
	return strcmp(name, "cuCtxPopCurrent_v2") && strcmp(name, "cuThreadExchangeStreamCaptureMode") && strcmp(name, "cuMemRelease");
}

// note_call writes the name of a call to the file FAKECUDA_CALLS when it is made for the
// first time.
static void note_call(const char *name)
{
	static const char *noted[256];
	const char *path = getenv("FAKECUDA_CALLS");
	if (!path)
		return;
	size_t i = 0;
	for (; i < sizeof noted / sizeof *noted && noted[i]; i++)
		if (!strcmp(noted[i], name))
			return;
	FILE *file = i < sizeof noted / sizeof *noted ? fopen(path, "a") : NULL;
	if (!file)
		return;
	noted[i] = name;
	fprintf(file, "%s\n", name);
	fclose(file);
}

CUresult begin(const char *name)
{
	pthread_mutex_lock(&fake_lock);
	note_call(name);
	if (exiting)
		return DEINITIALIZED;
	if (!initialized && strcmp(name, "cuInit"))
		return NOT_INITIALIZED;
	int counts = fails_by_count(name), code = OK;
	if (counts)
		calls++;
	for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
		int named = *faults[i].name, hit = named ? !strcmp(faults[i].name, name) : counts;
		if (faults[i].left <= 0 || !hit || (!named && faults[i].left == 1 && thread.failed))
			continue;
		if (--faults[i].left == 0) {
			code = faults[i].code;
			faults[i].left = faults[i].ever;
		}
	}
	return code;
}

CUresult end(CUresult code)
{
	thread.failed = code && code != NOT_READY;
	pthread_mutex_unlock(&fake_lock);
	return code;
}

CUresult usable(void)
{
	device *d = current();
	if (!d)
		return INVALID_CONTEXT;
	if (!d->retained)
		return CONTEXT_IS_DESTROYED;
	return d->sticky;
}

CUresult unsafe_call(void)
{
	if (!capture_forbids(thread_number(), thread.mode))
		return OK;
	invalidate(thread_number());
	return CAPTURE_UNSUPPORTED;
}

void fake_machine(void)
{
	if (machine_devices)
		return;
	machine_devices = (int)setting("FAKECUDA_DEVICES", 1);
	for (int i = 0; i < MAX_DEVICES; i++) {
		devices[i].number = i;
		devices[i].total = setting("FAKECUDA_MEMORY", 8ull << 30);
		devices[i].used = devices[i].others = setting("FAKECUDA_OTHERS", 0);
	}
}

static void show_devices(void)
{
	const char *visible = getenv("CUDA_VISIBLE_DEVICES");
	device_count = 0;
	if (!visible) {
		for (int i = 0; i < machine_devices; i++)
			shown[device_count++] = &devices[i];
		return;
	}
	while (*visible) {
		char *rest;
		long n = strtol(visible, &rest, 10);
		if (rest == visible || n < 0 || n >= machine_devices)
			return; // as CUDA: what follows a bad number does not count
		shown[device_count++] = &devices[n];
		visible = *rest == ',' ? rest + 1 : rest;
	}
}

CUresult cuInit(unsigned flags)
{
	BEGIN("cuInit");
	if (flags)
		END(INVALID_VALUE);
	int code = (int)setting("FAKECUDA_INIT", 0);
	if (code)
		END(code);
	if (!initialized) {
		fake_machine();
		context_cost = setting("FAKECUDA_CONTEXT", 300ull << 20);
		lazy = (int)setting("FAKECUDA_LAZY", 0);
		show_devices();
		// FAKECUDA_FAIL=cuMemAlloc_v2:3:2 lets the third cuMemAlloc fail with code 2;
		// with :ever behind it all later ones, too.
		char name[64];
		long n;
		const char *fail = getenv("FAKECUDA_FAIL");
		if (fail && sscanf(fail, "%63[^:]:%ld:%d", name, &n, &faults[0].code) == 3) {
			strcpy(faults[0].name, name);
			faults[0].left = n;
			faults[0].ever = strstr(fail, ":ever") != NULL;
		}
		initialized = 1;
	}
	if (!device_count)
		END(NO_DEVICE);
	END(OK);
}

CUresult cuDriverGetVersion(int *version)
{
	*version = (int)setting("FAKECUDA_VERSION", 13000);
	return OK;
}

static const struct { int code; const char *name, *text; } messages[] = {
	{ INVALID_VALUE, "CUDA_ERROR_INVALID_VALUE", "invalid argument" },
	{ OUT_OF_MEMORY, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory" },
	{ NOT_INITIALIZED, "CUDA_ERROR_NOT_INITIALIZED", "initialization error" },
	{ DEINITIALIZED, "CUDA_ERROR_DEINITIALIZED", "driver shutting down" },
	{ NO_DEVICE, "CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected" },
	{ INVALID_DEVICE, "CUDA_ERROR_INVALID_DEVICE", "invalid device ordinal" },
	{ INVALID_CONTEXT, "CUDA_ERROR_INVALID_CONTEXT", "invalid device context" },
	{ INVALID_PTX, "CUDA_ERROR_INVALID_PTX", "a PTX JIT compilation failed" },
	{ INVALID_HANDLE, "CUDA_ERROR_INVALID_HANDLE", "invalid resource handle" },
	{ NOT_FOUND, "CUDA_ERROR_NOT_FOUND", "named symbol not found" },
	{ NOT_READY, "CUDA_ERROR_NOT_READY", "device not ready" },
	{ ILLEGAL_ADDRESS, "CUDA_ERROR_ILLEGAL_ADDRESS", "an illegal memory access was encountered" },
	{ CONTEXT_IS_DESTROYED, "CUDA_ERROR_CONTEXT_IS_DESTROYED", "context is destroyed" },
	{ NOT_SUPPORTED, "CUDA_ERROR_NOT_SUPPORTED", "operation not supported" },
	{ CAPTURE_UNSUPPORTED, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED", "operation not permitted when stream is capturing" },
	{ CAPTURE_INVALIDATED, "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED", "operation failed due to a previous error during capture" },
};

CUresult cuGetErrorName(CUresult code, const char **to)
{
	for (size_t i = 0; i < sizeof messages / sizeof *messages; i++)
		if (messages[i].code == code)
			return *to = messages[i].name, OK;
	return *to = NULL, INVALID_VALUE;
}

CUresult cuGetErrorString(CUresult code, const char **to)
{
	for (size_t i = 0; i < sizeof messages / sizeof *messages; i++)
		if (messages[i].code == code)
			return *to = messages[i].text, OK;
	return *to = NULL, INVALID_VALUE;
}

CUresult cuDeviceGetCount(int *n) { BEGIN("cuDeviceGetCount"); *n = device_count; END(OK); }

CUresult cuDeviceGet(CUdevice *dev, int n)
{
	BEGIN("cuDeviceGet");
	if (n < 0 || n >= device_count)
		END(INVALID_DEVICE);
	*dev = n;
	END(OK);
}

#define DEVICE(dev) do { if ((dev) < 0 || (dev) >= device_count) END(INVALID_DEVICE); } while (0)

CUresult cuDeviceGetName(char *to, int len, CUdevice dev)
{
	BEGIN("cuDeviceGetName");
	DEVICE(dev);
	snprintf(to, (size_t)len, "Stand-in GPU");
	END(OK);
}

CUresult cuDeviceGetUuid(unsigned char *to, CUdevice dev)
{
	BEGIN("cuDeviceGetUuid");
	DEVICE(dev);
	memset(to, 0xa0 + shown[dev]->number, 16);
	END(OK);
}

CUresult cuDeviceGetUuid_v2(unsigned char *to, CUdevice dev) { return cuDeviceGetUuid(to, dev); }

CUresult cuDeviceGetPCIBusId(char *to, int len, CUdevice dev)
{
	BEGIN("cuDeviceGetPCIBusId");
	DEVICE(dev);
	snprintf(to, (size_t)len, "0000:%02X:00.0", 0x19 + shown[dev]->number);
	END(OK);
}

CUresult cuDeviceTotalMem_v2(size_t *to, CUdevice dev)
{
	BEGIN("cuDeviceTotalMem_v2");
	DEVICE(dev);
	*to = shown[dev]->total;
	END(OK);
}

CUresult cuDeviceGetAttribute(int *to, int attribute, CUdevice dev)
{
	BEGIN("cuDeviceGetAttribute");
	DEVICE(dev);
	switch (attribute) {
	case 75: *to = 9; break;
	case 76: *to = 0; break;
	case 16: *to = 4; break;
	case 83: case 89: case 110: *to = 1; break;
	case 134: *to = setting("FAKECUDA_NUMA", 1) ? 0 : -1; break;
	case 102: *to = (int)setting("FAKECUDA_VIRTUAL", 1); break;
	case 115: *to = (int)setting("FAKECUDA_POOLS", 1); break;
	default: END(INVALID_VALUE);
	}
	END(OK);
}

CUresult cuDevicePrimaryCtxRetain(CUcontext *to, CUdevice dev)
{
	BEGIN("cuDevicePrimaryCtxRetain");
	DEVICE(dev);
	device *d = shown[dev];
	if (!d->retained) {
		if (d->total - d->used < context_cost)
			END(OUT_OF_MEMORY);
		d->used += context_cost;
		d->sticky = 0;
		counters[CONTEXTS]++;
	}
	d->retained++;
	*to = d;
	END(OK);
}

CUresult cuDevicePrimaryCtxRelease_v2(CUdevice dev)
{
	BEGIN("cuDevicePrimaryCtxRelease_v2");
	DEVICE(dev);
	device *d = shown[dev];
	if (!d->retained)
		END(INVALID_CONTEXT);
	if (!--d->retained) {
		d->used -= context_cost;
		counters[CONTEXTS]--;
	}
	END(OK);
}

CUresult cuDevicePrimaryCtxGetState(CUdevice dev, unsigned *flags, int *active)
{
	BEGIN("cuDevicePrimaryCtxGetState");
	DEVICE(dev);
	*flags = 0;
	*active = shown[dev]->retained > 0;
	END(OK);
}

CUresult cuCtxGetCurrent(CUcontext *to) { BEGIN("cuCtxGetCurrent"); *to = current(); END(OK); }

CUresult cuCtxPushCurrent_v2(CUcontext context)
{
	BEGIN("cuCtxPushCurrent_v2");
	if (!context || thread.depth == sizeof thread.stack / sizeof *thread.stack)
		END(INVALID_CONTEXT);
	if (!context->retained)
		END(CONTEXT_IS_DESTROYED);
	thread.stack[thread.depth++] = context;
	END(OK);
}

CUresult cuCtxPopCurrent_v2(CUcontext *to)
{
	BEGIN("cuCtxPopCurrent_v2");
	if (!thread.depth)
		END(INVALID_CONTEXT);
	*to = thread.stack[--thread.depth];
	END(OK);
}

CUresult cuThreadExchangeStreamCaptureMode(int *mode)
{
	BEGIN("cuThreadExchangeStreamCaptureMode");
	if (*mode < GLOBAL || *mode > RELAXED)
		END(INVALID_VALUE);
	int was = thread.mode;
	thread.mode = *mode;
	*mode = was;
	END(OK);
}
