// Package answers has the questions about many files: which rank is odd, which
// commit grew, how many causes some failures have, and any table of them.
//
// The questions are functions over a list of [Entry], one for each file. They
// know nothing of where files and documents are kept: an Entry has a [Summary] of
// its documents, which [Summarize] makes once, and a [Source] to read more. Only
// [Growth] opens files, two for each commit that grew, and [Tune], which has a
// [Tuner] try settings on them; [Causes] reads one explanation for each distinct
// place of failure; [Ranks] and [Query] read nothing.
//
// Every answer depends on the entries alone, not on their order.
package answers
