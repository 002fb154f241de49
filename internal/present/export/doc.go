// Package export writes traces in the formats of other tools.
//
// [Parquet] writes a table of events and a table of stacks, for DuckDB, Polars,
// pandas and whatever else reads columns. [Perfetto] writes a trace for
// https://ui.perfetto.dev: the memory of each device as counters, the lifetime
// of each large allocation and the program's annotations as slices.
//
// [Events] is the list of events as one JSON document.
//
// All walk the events once and hold a bounded part of their output in memory.
// The totals are those of package timeline, right from the first event on even
// if recording began mid-run. Their names are those of torch.cuda.memory_stats():
// reserved_bytes is the size of all segments, requested_bytes what the program
// asked for in active blocks.
package export
