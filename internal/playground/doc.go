// Package playground lets people play with the allocator: they allocate and
// free by hand, or follow an [Experiment] step by step, and read why the
// allocator did what it did.
//
// # Experiments are scripts
//
// An experiment is a list of lines in the language of package script, the one
// that the engine's own tests are written in:
//
//	device total=512MiB limit=100MiB events=manual
//	# every second one is freed
//	alloc a 4MiB
//	alloc b 4MiB stream=1
//	free a
//	record b 2
//	complete 2
//	empty
//	set max_split_size_mb:20
//	limit 80MiB
//
// The line of the device comes first, or is left out. A line that begins with #
// opens a chapter. All others are steps. A list of lines is small, readable and
// complete, so it is also what a link to an experiment holds.
//
// # Nothing is kept
//
// [Play] runs the lines from the first on and tells what the state is after one
// of the steps. Stepping back, sharing and changing an earlier setting are
// therefore all the same thing: another list or another number.
//
// # The engine speaks for itself
//
// The allocator is the one of package alloc on the simulated device, and no
// rule is repeated here: the engine tells each decision with the numbers that
// decided ([alloc.Decision]), and this package puts them into words. A hit is a
// request that the engine's first search served.
//
// Lines come from links, that is from strangers. There are bounds for their
// number, their length, sizes and streams; what is outside is a *[LineError].
package playground
