// Package words knows what transformers, PEFT, accelerate, DeepSpeed and torch
// call the values of plan's options, and what to say about words for things that
// are not planned.
package words
