// Package tune searches for the allocator settings that serve a recorded run
// best. It has no rules of thumb: every setting that it names was run through the
// engine on the calls of the recording.
//
// Three figures are compared; smaller is better:
//
//   - the smallest limit: the cap on reserved memory under which the whole
//     recording still passes. This is what decides whether a run fits;
//   - the peak of reserved memory without a cap;
//   - the estimated time that the driver is busy without a cap.
//
// The front has the settings that no other setting beats in all three.
//
// # How the smallest limit is found
//
// Segments are multiples of 2 MiB, so only such limits differ. The limit is
// bisected between the peak of allocated bytes, below which nothing can pass, and
// the peak of reserved memory: it passes, and 2 MiB less does not. Passing is not
// strictly monotonic, as releasing at another moment can help or hurt. The search
// does not look for lower limits that pass by luck.
//
// Most settings are not bisected. One run just below the best limit so far shows
// that they cannot beat it, and usually ends early.
//
// # Order and determinism
//
// Candidates come from the recording: two values of max_split_size_mb that are
// the same to all of its requests are tried once. Candidates are tried in stages,
// in batches of a fixed size that all cores share. Each is compared with what was
// known before its batch, so the answer does not depend on the number of cores.
// It does depend on the budget if that ends the search; the result says so.
package tune
