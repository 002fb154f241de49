// Oom runs out of memory twice. The first time a hook frees memory that the
// program can do without, and the request succeeds. The second time there is
// nothing left to free, and the error explains why.
package main
