//go:build !cgo

package main

import (
	"fmt"
	"os"
)

// Without a C compiler there is no library: only the Go side is built, for the
// tools that look at all packages.
func main() {
	fmt.Fprintln(os.Stderr, "libashlar is a library: go build -buildmode=c-shared -o libashlar.so ./cmd/libashlar, with a C compiler")
	os.Exit(2)
}
