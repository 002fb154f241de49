// Package recorder reads what python/ashlar.py keeps beside a snapshot.
//
// A snapshot of PyTorch has the segments and the events, but not the statistics,
// the limit, the size of the device, the error or the number of the step. The
// recorder python/ashlar.py asks for them at the moment of the snapshot and
// adds them to the file under the key "ashlar". [Read] takes that key out of the
// extra fields of a file and gives it types; docs/recording.md describes it.
//
// Nothing here is needed to read a snapshot, so nothing here is an error. What a
// file does not tell is nil or empty. A value of the wrong type counts as not
// told, and Facts.Warnings says which one it was.
package recorder
