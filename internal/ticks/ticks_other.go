//go:build !amd64

package ticks

import "time"

var start = time.Now()

// Now returns the nanoseconds since the program started.
func Now() int64 { return int64(time.Since(start)) }
