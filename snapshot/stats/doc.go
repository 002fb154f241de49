// Package stats reads dumps of torch.cuda.memory_stats() as people keep them:
// a JSON file, the printed Python dict or OrderedDict in a log, the nested
// form, several ranks in one file, and the table of memory_summary().
//
// Every form becomes a [Dump]: the flat keys of memory_stats() ("active.all.peak")
// and their values. The table rounds its numbers down, so a dump read from it
// has a range for each number that is not exact, and lacks the counters the
// table leaves out.
//
// Nothing is evaluated. Dicts are read by a small parser of literals with
// limits on size and depth; a call is refused by name, except OrderedDict's.
package stats
