// Package dry predicts the memory of a script from a dry run: the script ran on
// fake tensors, which have shapes and no bytes, and python/ashlar_dry.py wrote
// down what it would have allocated.
//
// [Read] reads that file into a [Recording]: every storage with its birth and
// its death, every call of an op with the tensors it takes and makes. [Build]
// adds what PyTorch's CUDA kernels allocate beside their outputs, as package
// eager knows it, and makes a ledger of the run. From there on a dry run is like
// a plan: the engine replays the ledger ([Ask]), under any setting and limit.
//
// [FindLargest] runs a script for several values of an argument and finds the
// largest that fits.
package dry
