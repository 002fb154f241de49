// Package ticks reads a clock that costs a few nanoseconds: the processor's
// time-stamp counter where there is one.
//
// Ticks mean nothing by themselves. A [Clock] notes ticks and time when it is
// made; a [Reading] notes both again later, and places any tick in between on
// the line through the two. On processors whose counter runs at a constant
// rate, all of the last fifteen years, that is good to about a microsecond.
package ticks
