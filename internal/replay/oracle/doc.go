// Package oracle replays recordings that have every answer of PyTorch: the
// truth that the engine is held to.
//
// A [Recording] is a list of operations (allocate, free, record_stream,
// empty_cache, pools, captures, changed settings) together with everything
// PyTorch answered: each event of its trace, each address, the statistics at
// checkpoints, the final segments and the out-of-memory messages. [Read] loads
// the two formats in which such runs were recorded and checks that the file is
// whole and consistent.
//
// [Verify] drives the operations through package alloc over package recorded,
// which answers as the recorded device did, and compares everything. It stops at
// the first difference, since later ones may follow from it. There is no
// tolerance. Only the list of processes in an out-of-memory message is not
// compared.
//
// [VerifyAll] takes files of both kinds, recordings and snapshots.
//
// Positions of operations and events count from 0, like the lists of the file.
package oracle
