// Package driver is the line between the allocator engine and the place its
// memory comes from.
//
// The engine in package alloc holds every rule and no memory. It asks a
// [Driver] for segments, address ranges, mappings and events, and never learns
// which kind it has. That is what makes one engine serve many purposes:
//
//   - driver/sim is a device that exists only as numbers: for what-if answers,
//     plans and tests, with failures on demand;
//   - internal/replay/recorded answers with the addresses and completions of a
//     recording of a real device, so that the engine can be compared with it
//     event by event;
//   - driver/cuda is a GPU, reached through NVIDIA's driver;
//   - driver/host is a device in the memory of this machine, with real bytes:
//     what is written for a GPU runs on it where there is none.
//
// The last two hold bytes that a program can copy: they are a [Copier].
//
// # The end
//
// What was built last goes first: savers and graphs are closed, blocks freed and
// the allocator's cache emptied, then the device is closed. Streams can be closed
// at any time before that, also while blocks that were used on them are
// allocated; see [Copier]. A program that ends anyway need do none of it.
//
// A driver has no policy. It does not round, cache, retry or count.
package driver
