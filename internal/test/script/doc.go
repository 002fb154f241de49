// Package script drives the allocator engine with a tiny language, for tests
// that read like a dialogue and for the playground:
//
//	> alloc a 1000
//	segment_alloc A 2097152
//	alloc A+0 1000
//
// A line that begins with "> " is a command; the lines under it are the events
// it caused, and its answer. Segments are named A, B, C in the order they were
// obtained and addresses are written as offsets into them. Lines that begin
// with "#" and empty lines are comments.
//
// The commands:
//
//	device [total=SIZE] [conf=TEXT] [limit=SIZE] [events=manual] [pytorch=VERSION]
//	alloc NAME SIZE [stream=N] [thread=N]   bytes, or with a unit: 8MiB
//	free NAME
//	record NAME STREAM               record_stream
//	empty                            empty_cache
//	set CONF                         change the settings at run time
//	limit SIZE | limit none | fraction F
//	pool NAME [use_on_oom] [no_split]
//	begin POOL [thread=N] | end POOL | close POOL
//	capture NAME STREAM,... [pool=NAME] | endcapture NAME | release NAME
//	tenant NAME [guarantee=SIZE] [ceiling=SIZE] [priority=N]; then alloc takes tenant=NAME
//	checkpoint NAME POOL | restore NAME
//	complete STREAM | complete all   finish the work behind manual events
//	fail KIND N                      the N-th driver call of that kind from now on fails
//	stats NAME...                    statistics as [current,peak,allocated,freed]
//	blocks                           all segments with their blocks
//	message                          the last out-of-memory message
package script
