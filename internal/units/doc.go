// Package units writes and reads sizes, counts and times, in one place so that every
// table, message and flag agrees.
//
// Sizes are written in powers of two with two decimals, "1.50 GiB", and read in
// any usual form: "80GiB" and "80G" are powers of two, "80GB" is a power of
// ten, a bare number is bytes. [Torch] is apart: it writes sizes exactly as
// PyTorch does in its out-of-memory message, for text that is compared with it.
package units
