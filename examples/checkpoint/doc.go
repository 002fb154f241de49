// Checkpoint saves the weights of a model to disk every few steps while the
// training goes on.
package main
