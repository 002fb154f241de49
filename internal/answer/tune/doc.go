// Package tune searches for the allocator settings that serve a recorded run
// best. It has no rules of thumb: every setting that it names was run through the
// engine on the calls of the recording.
//
// A [Goal] says which figure counts: the peak of reserved memory, the memory
// needed, or the driver calls after the second step. The memory needed is
// bisected between the peak of allocated bytes, below which nothing can pass, and
// a limit that suffices. Passing is not strictly monotonic, as releasing at
// another moment can help or hurt; the search does not look for lower limits that
// pass by luck.
//
// # The search
//
//  1. The recorded settings and expandable segments are tried on the recording and
//     on its variations (package vary). The better of the two on each is what
//     others are compared with.
//  2. Candidates are tried on the recording alone, in stages. They come from the
//     recording: two values of max_split_size_mb that are the same to all of its
//     requests are tried once. A run is given up as soon as it cannot win.
//  3. The best of them are tried on the variations, until no other can be better.
//     A candidate's score is the largest ratio, over the recording and the
//     variations, of its figure to what it is compared with.
//  4. The simplest settings whose score is within 2 % of the best win.
//
// # Determinism
//
// Batches have a fixed size, and all cores share them. Each candidate is compared
// with what was known before its batch, and replayed calls are counted between
// batches. So the answer depends neither on the number of cores nor on their
// speed, nor on who tries a batch ([Options].Evaluate), unless the context or the budget ends the search; the result says so.
package tune
