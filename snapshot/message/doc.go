// Package message reads PyTorch's out-of-memory messages out of pasted text.
//
// People rarely have a snapshot of the run that failed; they have its terminal
// output. [Parse] finds every such message in a whole log: PyTorch's
// own wordings from 1.0 on, the cudaMallocAsync backend's, those of the AMD,
// Intel, Ascend, Moore Threads and Apple builds, and the bare refusals of the
// CUDA driver, cuBLAS, cuDNN, NCCL and Triton, which carry no numbers.
//
// [ParseRefusals] finds the errors in which vLLM, transformers and accelerate say
// that memory is too small by their own reckoning.
//
// Numbers are identified by the words beside them, never by their position,
// because the wording changed often and pasted text may be cut. The text is
// compared without blanks and line ends, so a message may be broken anywhere, even
// inside a word. Prefixes that loggers put in front of every line are first
// overwritten with blanks (see [Plain]), so line numbers and the found text are
// those of the input.
//
// Sizes in messages are rounded to two decimals. Each becomes a [units.Range] of
// all sizes that print the same, because an answer can be no more exact than its
// numbers.
package message
