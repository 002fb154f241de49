// Package eager runs a PyTorch program as far as memory goes.
//
// A [Tensor] here has a shape, strides, a type and a storage, but no numbers.
// An op allocates and frees what ATen's CUDA kernel of that op allocates and
// frees, in the same order, and every allocation is entered into a
// [ledger.Ledger]. Three things decide when memory is freed, and all three are
// followed:
//
//   - Python's names. An op returns a tensor that the caller holds; the caller
//     gives it up with Drop where Python's name goes out of scope or is bound
//     anew. Functions borrow their arguments.
//   - Autograd's graph. With gradients on, an op leaves a [Node] behind that
//     keeps the tensors its derivative needs. The graph is kept alive by the
//     tensors that come out of it.
//   - The backward pass. [Machine.Backward] runs the nodes in the order of
//     torch's engine, frees what each kept once it ran, and adds gradients that
//     meet in place where torch does and in a new tensor where it does not.
//
// A tensor is not to be looked at after its last name was dropped, not even for
// its shape: the next tensor may have its struct. Derivatives, which run later,
// take what they need from their node (what it saved, the shapes of its inputs)
// or from copies, never from a tensor of the forward pass.
//
// Views share a storage and hold their base, as in torch, which is what decides
// whether a gradient may be added in place. Strides are followed because a
// reshape copies or does not copy by them.
//
// The rules are those of PyTorch 2.11 on CUDA. Every one of them was seen in a
// recording; testdata/plan/runs has the recordings and plan/hf the test.
package eager
