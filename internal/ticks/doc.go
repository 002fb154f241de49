// Package ticks reads a clock that costs a few nanoseconds: the processor's
// time-stamp counter where there is one.
//
// Ticks mean nothing by themselves. A [Clock] records ticks and time when it is
// made; a [Reading] records both again later and interpolates any tick in between.
// On processors whose counter runs at a constant rate, all of the last fifteen
// years, the result is accurate to about a microsecond.
package ticks
