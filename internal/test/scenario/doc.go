// Package scenario makes traces whose truth is known, for tests: a small
// program calls the allocator engine over a simulated device, and what PyTorch
// would have dumped at its end comes out as a [trace.Trace].
//
// Only the program is made up. Events, addresses, segments and blocks are the
// engine's, so the trace replays identically, and the only faults in it are those
// of the program (a leak, a spike, a pinned segment).
//
//	tr, err := scenario.Run(scenario.Config{Limit: 100 << 20, Steps: scenario.Annotated}, func(s *scenario.Scenario) {
//		s.Alloc("weights", 40<<20, 0, "model.py:8 __init__")
//		for n := range 5 {
//			s.Step(n)
//			s.Call("train.py:20 step", func() {
//				s.Alloc("x", 10<<20, 0, "model.py:12 forward")
//				s.Free("x")
//			})
//		}
//	})
//
// # The program
//
// Blocks have names, stacks are written innermost first as "file.py:12 func";
// [Scenario.Call] adds outer frames to everything inside it. A text without
// "file:line" is a frame of compiled code. Every call takes [Tick]
// microseconds, [Scenario.Wait] takes longer.
//
// # The end
//
// The trace ends with the program or, like a snapshot dumped by an OOM observer,
// at the first allocation that fails; the rest of the program does not run.
// [Config].KeepGoing goes on past failures. As in PyTorch's files, the limit and
// the size of the device are not in the trace.
//
// # Steps
//
// A program that calls [Scenario.Step] can be recorded with its steps as
// profiler annotations, as user_metadata, or without any sign of them
// ([Config].Steps): the same calls either way.
package scenario
