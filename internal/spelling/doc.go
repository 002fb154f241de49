// Package spelling finds what a misspelt word was meant to be, for "did you
// mean".
package spelling
