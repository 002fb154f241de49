package cost

import "runtime"

// Bytes returns how many bytes the process allocates while f runs.
func Bytes(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// Grows reports whether f allocates more than in proportion to n: for 64 KiB
// more than six times what it allocates for 16 KiB.
func Grows(f func(n int)) bool {
	const n, rest = 16 << 10, 64 << 10
	f(n) // makes what is made once
	few := Bytes(func() { f(n) })
	many := Bytes(func() { f(4 * n) })
	return many > 6*few+rest
}
