// Package version names this version of Ashlar: the program and the library
// say the same.
package version
