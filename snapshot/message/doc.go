// Package message reads PyTorch's out-of-memory messages out of pasted text.
//
// People rarely have a snapshot of the run that died; they have what the
// terminal showed. [Parse] finds every such message in a whole log: PyTorch's
// own wordings from 1.0 on, the cudaMallocAsync backend's, those of the AMD,
// Intel, Ascend, Moore Threads and Apple builds, and the bare refusals of the
// CUDA driver, cuBLAS, cuDNN, NCCL and Triton, which carry no numbers.
//
// Numbers are taken by the words beside them, never by their place, because
// the wording changed often and pastes are cut. Blanks and line ends do not
// count: the text is compared without them, so a message may be broken
// anywhere, even inside a word. What loggers put in front of every line is
// blanked first (see [Plain]), in the same places, so that line numbers and
// the found text are those of the input.
//
// Sizes in messages are rounded to two decimals. Each is a [units.Range] of
// all the sizes that print the same, for an answer can be no more exact than
// its numbers.
package message
