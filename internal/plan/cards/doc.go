// Package cards is the table of cards: how much memory the driver of each says it
// has, what is gone before PyTorch takes anything, and what else a plan must
// know of a card.
//
// The total is what cudaMemGetInfo reports, in bytes. It is neither the number
// in the card's name nor the one nvidia-smi prints: an H200 of "141 GB" has
// 143,771 MiB in nvidia-smi and 143,155 MiB for a program. It also depends on
// the driver, by a hundred MiB or so; where several were published, the table
// has the smaller, so that a plan errs on the careful side.
//
// Every total is marked: measured by this project, reported in public output
// that names the card and can be looked up, or an estimate; [Card.TotalSource]
// says from where. Most are estimates, good to some hundred MiB. The same holds for the memory outside PyTorch (the CUDA context, kernels, handles
// of libraries): it was measured on the H200 and is an estimate elsewhere.
//
// The data is one file, cards.json, one line per card.
package cards
