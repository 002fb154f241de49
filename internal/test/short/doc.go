// Package short makes slow tests do less under go test -short, which is how the
// race detector runs all packages in make test. Without the flag they do
// everything.
package short
