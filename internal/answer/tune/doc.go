// Package tune searches the settings of PyTorch's allocator for the ones that
// serve a recorded run best. It knows no rule of thumb: every setting that it
// names was run through the engine on the calls of the recording.
//
// Three figures are compared, each the smaller the better:
//
//   - the smallest limit: the cap on reserved memory under which the whole
//     recording still passes. This is what decides whether a run fits;
//   - the peak of reserved memory without a cap;
//   - the estimated time the driver takes to give and take memory without a cap.
//
// Settings of which no other is better in all three are the front.
//
// # How the smallest limit is found
//
// Segments are multiples of 2 MiB, so only such limits differ. Between the peak
// of live bytes, below which nothing can pass, and the peak of reserved memory,
// the limit is bisected: it passes, and 2 MiB less does not. Passing is not
// strictly monotonic, as freeing at another moment can turn out better or worse;
// lower limits that pass by luck are not looked for.
//
// Most settings are not bisected. One run just below the best limit known so
// far shows that they cannot beat it, and usually ends early.
//
// # Order and determinism
//
// Candidates are made from the recording: a max_split_size_mb that no request
// of it can tell from another is not tried twice. They are tried in stages,
// each in batches of a fixed size that are shared by all cores and compared
// with what was known before the batch, so the answer does not depend on the
// number of cores. It does depend on the budget if that ends the search, which
// the result tells.
package tune
