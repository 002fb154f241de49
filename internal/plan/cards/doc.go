// Package cards is the table of GPUs: how much memory the driver reports, how
// much is taken before PyTorch allocates anything, and what else a plan must
// know about a card.
//
// The total is what cudaMemGetInfo reports, in bytes. It is neither the number
// in the card's name nor the one nvidia-smi prints: an H200 of "141 GB" has
// 143,771 MiB in nvidia-smi and 143,155 MiB for a program. It also depends on
// the driver, by about a hundred MiB; where several totals were published, the
// table has the smallest, so that a plan errs on the safe side.
//
// Every total is marked: measured by this project, reported in public output
// that names the card, or estimated; [Card.TotalSource] names the source. Most
// are estimates, good to a few hundred MiB. The memory outside PyTorch (the CUDA
// context, kernels, library handles) was measured on the H200 and is an estimate
// for other cards.
//
// The data is in cards.json, one line per card.
package cards
