// Oom runs out of memory twice. The first time the program has something that
// it can do without, and a hook saves the request. The second time it has not,
// and the error says what the matter is.
package main
