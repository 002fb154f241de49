// Package exampletest runs an example on devices that every machine has and
// compares its output.
package exampletest
