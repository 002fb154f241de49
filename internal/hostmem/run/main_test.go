package run

import (
	"flag"
	"testing"
	"time"
)

var sleep = flag.Bool("sleep", false, "be a program that runs for a while")

// TestSleeper is the Go program that TestGoProgram runs.
func TestSleeper(t *testing.T) {
	if *sleep {
		time.Sleep(500 * time.Millisecond)
	}
}
