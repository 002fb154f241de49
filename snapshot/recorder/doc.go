// Package recorder reads what python/ashlar.py adds to a snapshot.
//
// A snapshot of PyTorch has the segments and the events, but not the statistics,
// the limit, the size of the device, the error or the number of the step. The
// recorder python/ashlar.py collects them at the moment of the snapshot and adds
// them to the file under the key "ashlar". [Read] decodes that key from the extra
// fields of a file into typed values; docs/recording.md describes it.
//
// Reading a snapshot needs nothing of this, so nothing here is an error. What a
// file lacks is nil or empty. A value of the wrong type counts as missing, and
// Facts.Warnings names it.
package recorder
