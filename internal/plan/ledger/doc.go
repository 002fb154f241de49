// Package ledger holds what a planned run allocates: every tensor with its
// size, its birth and its death, in the order in which they happen.
//
// The planner writes the ledger; the engine and all answers read it. It knows
// neither models nor the allocator. [Ledger.External] predicts what the driver
// and NVIDIA's libraries take besides.
package ledger
