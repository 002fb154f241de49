// Package snapshot reads and writes PyTorch's memory snapshots: the files of
// torch.cuda.memory._dump_snapshot and its relatives.
//
// [Open] reads any of them: pickles of every protocol, by Python or by
// PyTorch's C++ code; JSON of the same shape; a bare list of segments; each
// also compressed with gzip or zstd. Open detects the format from the content. The
// result is a [File] with one [trace.Trace] for each device.
//
// # What is kept
//
// Everything. Fields that this package does not know, for example because a later
// version of PyTorch writes them, are in the Extra of the event, segment or other
// item they belong to. A field that a file lacks is absent in the trace too; see
// package trace.
//
// # How it is read
//
// In one pass. Files of several gigabytes are common, and nearly all of a file is
// a list of millions of small dictionaries of the same shape. Each dictionary
// becomes a row of the trace as soon as it is complete; the machine in
// internal/pickle does this without making an object for it. JSON goes through the
// same machine.
//
// Snapshots are pickles, and loading a pickle in Python runs whatever code it
// names. This package runs nothing: see internal/pickle.
//
// # Damaged files
//
// Of a file that ends early, the events and segments up to that point are kept,
// and File.Truncated says where it ends. The parts of a file are segments, traces,
// settings and annotations, in this order, so a truncated file mostly has no
// settings.
package snapshot
