// Package outside tells which device memory a planned run takes beside the
// allocator, and when: the driver and the libraries of NVIDIA get theirs from
// the same address space as PyTorch gets its segments.
//
// It costs nothing of what PyTorch counts. It matters because best fit prefers
// lower addresses among equal blocks: what another took decides where the next
// segment goes, and so which block a later request meets. Small models, with
// many segments of 2 MiB, reserve up to a tenth more or less for it; large
// models do not notice.
//
// The rules were read off traces of the system calls of 13 small runs of twelve
// models (H200, driver 580.159.04, CUDA 13, PyTorch 2.11, cuDNN 9.19):
//
//   - The first kernel that can print or fail an assertion brings a buffer of
//     8.25 MiB for its messages.
//   - The first value that the host reads back brings a page of 2 MiB to stage it.
//   - The first handle of cuBLAS brings a page; that one and every further one
//     64 MiB more.
//   - The first use of cuDNN on a thread brings four pages; autograd has a thread
//     of its own. The first of all brings the page to stage, if it is not there,
//     and, if cuBLAS has not come yet, what its first handle would bring.
//   - Kernels are loaded when they are first called, into pages of 2 MiB. Sizes
//     of kernels are not known here; in the traces the page after those above
//     comes when about 19 kinds of ops have run and cuBLAS is there. Later ones,
//     of which five runs had one, are not foretold.
//
// What the rest of the process maps decides too, and no plan knows it: whether a
// chunk finds room between libraries depends on the addresses that the kernel
// has drawn for them.
package outside
