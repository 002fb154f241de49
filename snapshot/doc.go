// Package snapshot reads and writes PyTorch's memory snapshots: the files of
// torch.cuda.memory._dump_snapshot and its relatives.
//
// [Open] reads any of them: pickles of every protocol, by Python or by
// PyTorch's C++ code; JSON of the same shape; a bare list of segments; each
// also compressed with gzip or zstd. What a file is, is found out from its
// content. The result is a [File] with one [trace.Trace] for each device.
//
// # What is kept
//
// All of it. Fields that this package does not know, because a later version
// of PyTorch writes them, are in the Extra of the event, segment or whatever
// they belong to. A field that a file does not have is absent in the trace as
// well, see package trace.
//
// # How it is read
//
// In one pass. Files of several gigabytes are common, and nearly all of one is
// a list of millions of small dictionaries of the same shape. Each dictionary
// becomes a row of the trace the moment it is complete; the package
// internal/pickle holds the machine that makes this possible without an object
// for it. JSON goes through the same machine.
//
// Snapshots are pickles, and loading a pickle in Python runs whatever it says.
// Here nothing is run: see internal/pickle.
//
// # Damaged files
//
// A file that ends early keeps the events and segments up to there, and
// File.Truncated says where. The order of the parts in a file is segments,
// traces, settings, annotations, so such a file mostly has no settings.
package snapshot
