// Package outside tells which device memory a planned run takes beside the
// allocator, and when: the driver and the libraries of NVIDIA get theirs from
// the same address space as PyTorch gets its segments.
//
// It is none of what PyTorch counts. It matters because best fit prefers lower
// addresses among equal blocks: what another took decides where the next segment
// goes, and so which block a later request meets. A small model, with segments of
// 2 MiB, may reserve a tenth more or less for it.
//
// The rules were read off traces of the system calls of 13 runs of eleven small
// models (H200, driver 580.159.04, CUDA 13, PyTorch 2.11). They foretell 142 of
// the 147 pieces of memory that these took while they ran, and none that was not
// taken:
//
//   - The first kernel that can print or fail an assertion brings a buffer of
//     8.25 MiB for its messages.
//   - The first value that the host reads back brings a page of 2 MiB to stage it.
//   - The first handle of cuBLAS brings a page; that one and every further one
//     64 MiB more.
//   - The first use of cuDNN on a thread brings four pages; autograd has a thread
//     of its own. The first of all brings the page to stage, if it is not there,
//     and for a convolution before cuBLAS the page of its first handle. Then its
//     libraries are mapped, 344 MiB of the host's addresses in three pieces.
//   - Kernels are loaded when they are first called, into pages of 2 MiB. Sizes
//     of kernels are not known here; in the traces the page after those above
//     comes when about 19 kinds of ops have run and cuBLAS is there. Five runs
//     took one more page later, which is not foretold.
//
// What the rest of the process maps decides too, and no plan knows it: whether a
// chunk finds room between libraries depends on the addresses that the kernel
// has drawn for them.
package outside
