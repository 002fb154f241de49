// Package costs measures what the mallocs of this machine cost: the bytes that a
// request really takes, the time of a malloc and a free by size and by the number
// of threads, and what malloc keeps for a thread that is idle.
//
// One small C program does all of it. It is compiled here and run under each
// malloc. Sizes are taken in processes of their own, each filled with blocks of
// one size, as growth of resident memory divided by their number; so rounding,
// headers and tables are all in it.
package costs
