// Package stats reads dumps of torch.cuda.memory_stats() in the forms that people
// keep: a JSON file, a Python dict or OrderedDict printed into a log, the nested
// form, several ranks in one file, and the table of memory_summary().
//
// Every form becomes a [Dump]: the flat keys of memory_stats() ("active.all.peak")
// and their values. The table rounds its numbers down, so a dump read from it has
// a range for each inexact number, and lacks the counters that the table omits.
//
// Nothing is evaluated. A small parser of literals, with limits on size and depth,
// reads the dicts; it refuses every call by name, except OrderedDict's.
package stats
