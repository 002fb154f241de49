#include "fake.h"

// The management library. Its handles are the devices, which it counts as the
// machine does.

enum { NVML_OK, NVML_UNINITIALIZED, NVML_INVALID_ARGUMENT, NVML_NOT_SUPPORTED, NVML_NOT_FOUND = 6, NVML_INSUFFICIENT_SIZE = 7 };

typedef struct { unsigned pid; u64 used; unsigned instance[2]; } process;
_Static_assert(sizeof(process) == 24, "the layout of nvml.h");

static int started, others, unknown;

// Tests want other processes on the device, each with 1 GiB, or memory that
// NVML does not tell.
void fake_processes(int n, int without_memory) { others = n; unknown = without_memory; }

int nvmlInit_v2(void)
{
	pthread_mutex_lock(&fake_lock);
	fake_machine();
	started = 1;
	pthread_mutex_unlock(&fake_lock);
	return NVML_OK;
}

static void uuid_of(int i, char *to, unsigned room)
{
	unsigned b = 0xa0u + (unsigned)i;
	snprintf(to, room, "GPU-%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x",
		b, b, b, b, b, b, b, b, b, b, b, b, b, b, b, b);
}

int nvmlDeviceGetCount_v2(unsigned *to) { *to = (unsigned)machine_devices; return started ? NVML_OK : NVML_UNINITIALIZED; }

int nvmlDeviceGetHandleByIndex_v2(unsigned i, device **to)
{
	if (i >= (unsigned)machine_devices)
		return NVML_INVALID_ARGUMENT;
	return *to = &devices[i], NVML_OK;
}

int nvmlDeviceGetUUID(device *d, char *to, unsigned room) { uuid_of(d->number, to, room); return NVML_OK; }

int nvmlDeviceGetName(device *d, char *to, unsigned room)
{
	(void)d;
	snprintf(to, room, "Stand-in GPU");
	return NVML_OK;
}

const char *nvmlErrorString(int code)
{
	switch (code) {
	case NVML_UNINITIALIZED: return "Uninitialized";
	case NVML_INVALID_ARGUMENT: return "Invalid Argument";
	case NVML_NOT_SUPPORTED: return "Not Supported";
	case NVML_NOT_FOUND: return "Not Found";
	case NVML_INSUFFICIENT_SIZE: return "Insufficient Size";
	}
	return "Unknown Error";
}

int nvmlSystemGetDriverVersion(char *to, unsigned room)
{
	if (!started)
		return NVML_UNINITIALIZED;
	snprintf(to, room, "580.0.0");
	return NVML_OK;
}

int nvmlDeviceGetHandleByUUID(const char *uuid, device **to)
{
	if (!started)
		return NVML_UNINITIALIZED;
	for (int i = 0; i < MAX_DEVICES; i++) {
		char text[64];
		uuid_of(i, text, sizeof text);
		if (!strcmp(text, uuid))
			return *to = &devices[i], NVML_OK;
	}
	return NVML_NOT_FOUND;
}

int nvmlDeviceGetHandleByPciBusId_v2(const char *id, device **to)
{
	unsigned bus;
	if (!started)
		return NVML_UNINITIALIZED;
	if (sscanf(id, "0000:%x:00.0", &bus) != 1 || bus < 0x19 || bus >= 0x19 + MAX_DEVICES)
		return NVML_NOT_FOUND;
	return *to = &devices[bus - 0x19], NVML_OK;
}

int nvmlDeviceGetMemoryInfo(device *d, u64 *to)
{
	pthread_mutex_lock(&fake_lock);
	to[0] = d->total;
	to[1] = d->total - d->used;
	to[2] = d->used;
	pthread_mutex_unlock(&fake_lock);
	return NVML_OK;
}

int nvmlDeviceGetUtilizationRates(device *d, unsigned *to)
{
	(void)d;
	to[0] = 25;
	to[1] = 5;
	return NVML_OK;
}

int nvmlDeviceGetComputeRunningProcesses_v3(device *d, unsigned *count, process *to)
{
	pthread_mutex_lock(&fake_lock);
	unsigned n = (unsigned)others + (d->retained > 0), room = *count;
	*count = n;
	if (n <= room)
		for (unsigned i = 0; i < n; i++) {
			int self = i == (unsigned)others;
			to[i] = (process){ self ? (unsigned)getpid() : 1 + i, self ? d->used - d->others : 1ull << 30, { ~0u, ~0u } };
			if (unknown)
				to[i].used = ~0ull;
		}
	pthread_mutex_unlock(&fake_lock);
	return n > room ? NVML_INSUFFICIENT_SIZE : NVML_OK;
}
