// Package units formats and parses sizes, counts and times, so that every table,
// message and flag agrees.
//
// Sizes are written in powers of two with two decimals, "1.50 GiB", and read in
// any usual form: "80GiB" and "80G" are powers of two, "80GB" is a power of
// ten, a bare number is bytes. [Torch] is the exception: it writes sizes exactly as
// PyTorch's out-of-memory message does, for text that is compared with it.
package units
