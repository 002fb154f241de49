// Package variant lists the ways to run a program that are worth comparing: a
// malloc, and how it is tuned.
//
// A malloc is replaced without rebuilding the program: the dynamic linker takes
// the symbol from the library that LD_PRELOAD names. Environment variables set
// how it treats freed memory, and they matter more than the library: by default
// none of them gives memory back while the program is idle.
//
// A [Variant] is one row of the table. [Search] finds its library on this
// machine, which makes it [Ready]; [Ready.Environ] is the environment to run a
// program in, and [Ready.Lines] what to write into a script to keep it.
package variant
