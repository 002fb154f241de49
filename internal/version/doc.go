// Package version holds the version of Ashlar, shared by the program and the
// library.
package version
