package plancompare

import "github.com/ashlar-mem/ashlar/internal/plan/ledger"

// common finds a longest common subsequence of two sequences. It returns for
// every element of a the element of b that it is matched with, or -1.
func common(a, b []int64) []int32 { return ledger.Common(a, b) }
