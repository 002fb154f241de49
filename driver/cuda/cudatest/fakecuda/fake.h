// A stand-in for NVIDIA's driver over memory of the host, for tests on machines
// without a GPU. It is strict: what the real driver refuses it refuses with the
// same code, and work that touches memory which is gone by then breaks the
// context, as on a GPU.
//
//   core.c     starting, devices, contexts, capture modes, failures on demand
//   memory.c   plain, host, managed and stream-ordered memory
//   virtual.c  reserved ranges, handles, mappings
//   work.c     the work queued on streams
//   stream.c   streams, events, captures, graphs
//   module.c   modules and the kernels of package kernels, in C
//   nvml.c     the management library
//
// Everything is guarded by one lock, which BEGIN takes and END gives back.
#define _GNU_SOURCE
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

typedef int CUresult;
typedef int CUdevice;
typedef uint64_t CUdeviceptr;
typedef uint64_t u64;

enum {
	OK = 0,
	INVALID_VALUE = 1,
	OUT_OF_MEMORY = 2,
	NOT_INITIALIZED = 3,
	DEINITIALIZED = 4,
	NO_DEVICE = 100,
	INVALID_DEVICE = 101,
	INVALID_CONTEXT = 201,
	INVALID_PTX = 218,
	INVALID_HANDLE = 400,
	NOT_FOUND = 500,
	NOT_READY = 600,
	ILLEGAL_ADDRESS = 700,
	CONTEXT_IS_DESTROYED = 709,
	NOT_SUPPORTED = 801,
	CAPTURE_UNSUPPORTED = 900,
	CAPTURE_INVALIDATED = 901,
	CAPTURE_UNMATCHED = 903,
	CAPTURE_ISOLATION = 905,
	CAPTURED_EVENT = 907,
	CAPTURE_WRONG_THREAD = 908,
};

enum { GLOBAL, THREAD_LOCAL, RELAXED }; // capture modes

#define PAGE (2ull << 20) // physical memory is handed out in units of it
#define MAX_DEVICES 8

// What tests ask for by name (fake_count).
enum counter {
	ALLOCATIONS, HOST, MANAGED, POOLED, RESERVATIONS, HANDLES, MAPPINGS, STREAMS, EVENTS, MODULES, GRAPHS, CONTEXTS, COUNTERS
};

typedef struct device {
	int number; // as the machine counts
	u64 total, used, others; // others: of used, what other processes hold
	int retained; // shares of the primary context
	int sticky;   // code that every call fails with after broken work
	u64 no_reuse[3]; // of its attributes 1 to 3: reuse is on at first
	u64 threshold, pool_reserved, pool_reserved_high, pool_used, pool_used_high;
} device;

typedef device *CUcontext; // a device has one context, the primary one

extern pthread_mutex_t fake_lock;
extern device devices[MAX_DEVICES];
extern int machine_devices;     // that the machine has
extern int device_count;        // that CUDA shows
extern device *shown[MAX_DEVICES];
extern long counters[COUNTERS];
extern int lazy;                // work waits until somebody waits for it

u64 setting(const char *name, u64 otherwise); // of the environment
void fake_machine(void);               // reads what the machine has, once
device *current(void);                 // of the thread's current context, or NULL
CUresult begin(const char *name);      // takes the lock; a code if the call is to fail
CUresult end(CUresult code);           // gives the lock back
CUresult usable(void);                 // whether a context is current and whole
CUresult unsafe_call(void);            // refuses what would break a capture, and breaks it
int thread_number(void);
int take_physical(device *d, u64 size); // 0 if there is not enough
void give_physical(device *d, u64 size);
void *map_aligned(u64 size, int prot); // PAGE-aligned memory of the host

#define BEGIN(name) do { CUresult code_ = begin(name); if (code_) return end(code_); } while (0)
#define END(code) return end(code)
#define CHECK(x) do { CUresult code_ = (x); if (code_) return end(code_); } while (0)
#define IN_CONTEXT() CHECK(usable())
#define SAFE() CHECK(unsafe_call())

// memory.c, virtual.c
int reachable(u64 addr, u64 size);        // whether the device may touch it
int reachable_mapped(u64 addr, u64 size); // the part of it in virtual.c
int pinned(const void *p, u64 size);      // page-locked memory of the host

// stream.c, work.c
typedef struct event event;
typedef struct stream stream;
typedef struct capture capture;
typedef void (*kernel)(const u64 *args);
void run_all(void);                       // does all queued work
void invalidate(int thread);              // breaks the captures that an unsafe call breaks
int capture_forbids(int thread, int mode);
