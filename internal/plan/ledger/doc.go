// Package ledger holds what a planned run allocates: every tensor with its
// size, its birth and its death, in the order in which they happen.
//
// A ledger is what the planner writes and what everything after it reads. It
// knows nothing of models and nothing of the allocator: the one writes it, the
// other replays it. [Ledger.External] predicts what the driver and
// NVIDIA's libraries take beside it.
package ledger
