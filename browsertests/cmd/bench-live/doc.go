// Bench-live measures the screen Live with many jobs: how soon it shows them, how
// often it changes, and whether it needs more and more memory. It fails if a bar
// does.
package main
