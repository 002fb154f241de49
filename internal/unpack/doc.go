// Package unpack decompresses files that come from elsewhere, and refuses those that
// become far too large.
package unpack
