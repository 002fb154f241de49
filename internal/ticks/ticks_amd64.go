package ticks

// Now reads the time-stamp counter.
func Now() int64
