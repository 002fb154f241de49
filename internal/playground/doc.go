// Package playground lets people play with the allocator: they allocate and
// free by hand, or follow an [Experiment] step by step, and read why the
// allocator did what it did.
//
// # Experiments are scripts
//
// An experiment is a list of lines in the language of package script, in which
// the engine's own tests are written too:
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
// The device line comes first and is optional. A line that begins with # opens a
// chapter. All others are steps. A list of lines is small, readable and
// complete, so it is also what a link to an experiment contains.
//
// # Nothing is kept
//
// [Play] runs the lines from the first and returns the state after one of the
// steps. So stepping back, sharing and changing an earlier setting are all the
// same thing: another list or another number.
//
// # The engine explains itself
//
// The allocator is that of package alloc on the simulated device, and no rule is
// repeated here: the engine reports each decision with the numbers behind it
// ([alloc.Decision]), and this package puts them into words. A hit is a request
// that the engine's first search served.
//
// Lines come from links, so they are not trusted. Their number, their length,
// sizes and streams are bounded; what exceeds a bound is a *[LineError].
package playground
