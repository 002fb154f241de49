// Command gpucheck shows on a real device that the allocator does what it
// promises there.
//
//	gpucheck oracle FILE...   performs recordings of PyTorch and compares
//	gpucheck memory           fills and checks every block of random programs
//	gpucheck small            the same with few blocks, for compute-sanitizer
//	gpucheck soak -for 30s    many goroutines at once; nothing may grow
//
// Each takes -driver cuda (the default) or host, a device in this machine's
// memory, and -json. It exits with 0 if all is as it should be, with 1 if it is
// not, with 2 if there is no such device or the arguments are wrong.
//
// # oracle
//
// The recorded operations go to two engines in lockstep: one over the recorded
// addresses, which does what PyTorch did to the byte, and one over the device.
// Every statistic at every checkpoint must be PyTorch's, and everything must
// happen at the same offset of the same segment. Segments are matched in the
// order in which they were got.
//
// Addresses of a device are its own. Where several free blocks of one size fit,
// the lowest address is taken, and the two runs may part there. Then the
// program lists the blocks, which were free in both runs and equally large, and
// shows that each run took the lowest of its own addresses; anything else is a
// difference. A tie between whole free segments is settled: they are alike, so
// the matching exchanges them and the comparison goes on. After any other the
// two runs cannot be compared any more, so the recording is performed a second
// time with ties broken as they were recorded, on real memory all the same, and
// then everything has to be identical. The first run goes on to the end all the
// same: a device that fails, or a run that could not be finished, is never good.
//
// When other streams have passed a freed block is a matter of time. An event is
// taken as done when the recording has it done, and not before the device has.
//
// # memory
//
// Random programs allocate, free, share blocks between streams, use pools and
// empty the cache, under so tight a limit that segments and mappings come and
// go all the time. Each block is filled with a pattern of its own on its
// stream, and checked to the last byte on the streams that use it. A control
// leaves record_stream out once, to show that the check sees it.
package main
