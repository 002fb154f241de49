// Package private makes the private pools of a replayed run: who asks for
// memory of a pool names it, and the pool lives until it is given up, as those
// of graphs and MemPools do in PyTorch.
package private
