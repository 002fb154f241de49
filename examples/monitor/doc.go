// Monitor serves batches of very different sizes while a monitor watches the
// share of idle memory, and releases it when it is too much.
package main
