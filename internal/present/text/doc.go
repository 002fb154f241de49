// Package text writes results as text. It only formats: the numbers come in,
// text goes out, and nothing here knows the allocator's rules.
package text
