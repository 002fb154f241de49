// Package input finds out what a FILE argument is and reads it.
//
// [Open] takes a name, or - for standard input, and [Read] a stream. Either may
// hold a memory snapshot of PyTorch as pickle or JSON; a dump of memory_stats()
// as JSON or as Python prints it, or the table of memory_summary(); or a log
// with dumps and out-of-memory messages in it. All may be compressed with gzip
// or zstd, and text may be in UTF-16. The content decides, never the name. Both
// return an [Input].
//
// [Pick] chooses one device of a file, the same for every command. In a log with
// several messages, [Input.Failed] chooses the one that ended a process;
// [Input.DumpsOf] has the dumps of a device. [SameMoment] reports whether a message
// and a snapshot are of the same moment.
//
// Errors say what is wrong and what to do, but name no flag. Errors that another
// device would avoid have a type of their own.
package input
