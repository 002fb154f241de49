// Command gpucheck checks on a real device that the allocator keeps its promises.
//
//	gpucheck oracle FILE...   performs recordings of PyTorch and compares
//	gpucheck memory           fills and checks every block of random programs
//	gpucheck small            the same with few blocks, for compute-sanitizer
//	gpucheck soak -for 30s    many goroutines at once; nothing may grow
//
// Each takes -driver cuda (the default) or host, a device in this machine's
// memory, and -json. The exit code is 0 if all checks pass, 1 if one fails, and
// 2 if there is no such device or the arguments are wrong.
//
// # oracle
//
// The recorded operations go to two engines in lockstep: one over the recorded
// addresses, which does what PyTorch did to the byte, and one over the device.
// Every statistic at every checkpoint must equal PyTorch's, and every event must
// have the same offset in the same segment. Segments are matched in the order in
// which they were allocated.
//
// A device has addresses of its own. Where several free blocks of one size fit,
// the engine takes the lowest address, and the two runs may diverge there. Then
// gpucheck lists the blocks, which were free in both runs and equally large, and
// shows that each run took the lowest of its own addresses; anything else is a
// difference. A tie between whole free segments does no harm: they are alike, so
// the matching exchanges them and the comparison goes on. After any other tie
// the two runs are no longer comparable, so gpucheck performs the recording a
// second time, also on real memory, with ties broken as recorded; then everything
// must be identical. The first run still goes on to its end: a device that fails,
// or a run that does not finish, is always a failure.
//
// When other streams have passed a freed block is a matter of timing. An event
// counts as done when the recording says so, and not before the device has it.
//
// # memory
//
// Random programs allocate, free, share blocks between streams, use pools and
// empty the cache, under so tight a limit that segments and mappings come and
// go all the time. Each block is filled with its own pattern on its stream and
// checked to the last byte on the streams that use it. A control run omits
// record_stream once, to show that the check notices.
package main
