package run

import (
	"flag"
	"testing"
	"time"
)

var sleep = flag.Bool("sleep", false, "be a program that runs for a second")

// TestSleeper is the Go program that TestGoProgram runs.
func TestSleeper(t *testing.T) {
	if *sleep {
		time.Sleep(time.Second)
	}
}
