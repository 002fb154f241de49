// Checkpoint saves the weights of a model to disk every few steps while training
// continues.
package main
