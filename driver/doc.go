// Package driver is the interface between the allocator engine and the source of
// its memory.
//
// The engine in package alloc has all the rules and no memory. It asks a
// [Driver] for segments, address ranges, mappings and events without knowing
// which kind of driver it is. So one engine serves many purposes:
//
//   - driver/sim is a device that exists only as numbers: for what-if answers,
//     plans and tests, with failures on demand;
//   - internal/replay/recorded answers with the addresses and completions of a
//     recording of a real device, so that the engine can be compared with it
//     event by event;
//   - driver/cuda is a GPU, through NVIDIA's driver;
//   - driver/host is a device in host memory, with real bytes: programs written
//     for a GPU run on it where there is none.
//
// The last two hold bytes that a program can copy: they implement [Copier].
//
// A driver has no policy. It does not round, cache, retry or count.
//
// # Shutting down
//
// Close things in the reverse order of their creation: close savers and graphs,
// free blocks and empty the allocator's cache, then close the device. A stream can
// be closed at any time before that, even while blocks used on it are allocated;
// see [Copier]. A program that is about to exit need do none of this.
package driver
