// Monitor serves batches of very different sizes while a monitor looks at the
// share of memory that lies idle, and gives it back when it is too much.
package main
