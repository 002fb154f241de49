// Command hold is a Go program to look into: it says "up" and waits for the
// end of its input.
package main

import (
	"io"
	"os"
)

func main() {
	os.Stdout.WriteString("up\n")
	io.Copy(io.Discard, os.Stdin)
}
