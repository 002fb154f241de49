// Package private manages the private pools of a replayed run. A pool is created
// when a request first names it and exists until it is closed, as those of CUDA
// graphs and MemPools do in PyTorch.
package private
