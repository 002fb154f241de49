// Package variant knows the ways to run a program that are worth comparing: a
// malloc, and how it is tuned.
//
// A malloc is exchanged without building the program anew: the dynamic linker
// takes the symbol from the library that LD_PRELOAD names. How it treats freed
// memory is set by environment variables, and these decide more than the
// library does: as shipped, none of them gives memory back while the program is
// idle.
//
// A [Variant] is one row of the table. [Search] finds its library on this
// machine, which makes it a [Ready] one; [Ready.Environ] is the environment to
// run a program in, and [Ready.Lines] what to write down to keep it.
package variant
