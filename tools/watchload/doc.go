// Watchload measures ashlar watch: many jobs that send while it is killed, a week
// of history with a fast clock. It prints a table, and fails if a bar does. With
// -fill and -send it makes the jobs that the page is measured with.
package main
