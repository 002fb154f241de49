// Package eager runs a PyTorch program symbolically, to find what it allocates.
//
// A [Tensor] here has a shape, strides, a type and a storage, but no numbers.
// An op allocates and frees what ATen's CUDA kernel of that op allocates and
// frees, in the same order, and enters every allocation into a [ledger.Ledger].
// Three things decide when memory is freed, and the package models all three:
//
//   - Python's names. An op returns a tensor that the caller holds; the caller
//     gives it up with Drop where Python's name goes out of scope or is
//     rebound. Functions borrow their arguments.
//   - Autograd's graph. With gradients on, an op leaves a [Node] behind that
//     keeps the tensors its derivative needs. The graph is kept alive by the
//     tensors that come out of it.
//   - The backward pass. [Machine.Backward] runs the nodes in the order of
//     torch's engine, frees what each node kept once it has run, and accumulates
//     gradients in place where torch does and in a new tensor elsewhere.
//
// Do not read a tensor after its last name was dropped, not even its shape: the
// next tensor may reuse its struct. Derivatives, which run later, take what they
// need from their node (what it saved, the shapes of its inputs) or from copies,
// never from a tensor of the forward pass.
//
// Views share a storage and hold their base, as in torch; that decides whether a
// gradient may be added in place. Strides decide whether a reshape copies.
//
// The rules are those of PyTorch 2.11 on CUDA. Each was seen in a recording; the
// recordings are in testdata/plan/runs, their test in plan/hf.
package eager
