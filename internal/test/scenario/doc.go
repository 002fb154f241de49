// Package scenario makes traces whose truth is known, for tests: a small
// program calls the allocator engine over a simulated device, and what PyTorch
// would have dumped at its end comes out as a [trace.Trace].
//
// Nothing is made up but the program. Events, addresses, segments and blocks
// are the engine's, so the trace replays identically, and what the program did
// on purpose (a leak, a spike, a pinned segment) is all that is wrong with it.
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
// The trace is taken at the end of the program or, as by an observer that dumps
// a snapshot, at the first allocation that fails; the rest of the program is
// then not run. [Config].KeepGoing goes on past failures. The limit and the
// size of the device are not in the trace, as they are not in PyTorch's files.
//
// # Steps
//
// A program that calls [Scenario.Step] can be recorded with its steps as
// profiler annotations, as user_metadata, or without any sign of them
// ([Config].Steps): the same calls either way.
package scenario
