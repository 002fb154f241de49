// Package diff says what changed between two moments of GPU memory, and which
// of several ranks is odd: the answers behind `ashlar diff`.
//
// # Two sides
//
// A [Side] is the memory of one device at one moment ([At]): the peak of
// allocated bytes, the end, the end of a step, or any event. [Table.Compare]
// puts two sides next to each other: totals, and bytes by call stack. They are
// sums of block sizes if both sides know them, else of requested sizes.
//
// Files are read one after the other and only their sides are kept. So the
// stacks of all files go into one [Table], in which equal stacks have equal
// numbers.
//
// # When are two stacks the same?
//
// Two versions of a program have the same functions at other lines, and two
// machines have the same packages in other places. Stacks are paired in four
// rounds; each takes what the rounds before left over.
//
//  1. exact: the same functions, files and lines.
//  2. lines: the same, once the lines of the first file are translated into
//     those of the second. Files are taken for the same if their paths are, or
//     their paths below site-packages, or else by their names. The lines of a
//     file that occur in any stack are aligned as a text comparison aligns
//     lines: in order, a line only with one of the same function, and with as
//     few changes of distance as explain most lines. So a file with three lines
//     more at its top is recognised as moved by three, and line 12 is not taken
//     for line 12 if all around it moved. Rounds 1 and 2 are therefore one:
//     the translation decides, and in an unchanged file it changes nothing.
//  3. functions: the same sequence of (name of file, function). First lines
//     are ignored where the alignment does not tell what became of them, then
//     all lines of edited files. In a file whose lines did not move another
//     line is another call, and is not ignored. If several stacks of a side
//     have the same sequence, they are paired in the order of their lines,
//     outermost frame first.
//  4. site: as in 2 and 3, but only from the allocation to the user's own
//     program, whatever called that; and at last by the innermost frame and
//     that of the user alone. This finds allocations again after a wrapper was
//     added or a library was exchanged.
//
// Frames without a source line, as those of compiled code, are compared by
// their function alone, without the addresses that a name may hold. What
// torch.compile and notebooks generate has another file name in each run; the
// changing part is left out.
//
// Blocks without a stack make up one entry, which pairs with that of the other
// side. What is left over is new or gone. No block is counted twice or left
// out: the sum of all differences is the difference of the sums.
//
// # Ranks
//
// A [Rank] is the summary of one device's trace and the sequence of its calls.
// [Table.Ranks] compares any number of them. A rank is odd in a measure if it
// is further from the median than [OddShare] of it and than [OddDeviations]
// standard deviations, estimated from the median deviation, which a few odd
// ranks do not move.
//
// Ranks that do the same work make the same calls: the same sizes allocated and
// freed in the same order. [Divergence] is the first call at which one does
// something else than the majority. Events that follow from the calls, such as
// those of segments, and frees that complete, are not looked at, as they depend
// on the state of the device. Traces that begin in the middle of a run are
// shifted against each other to where most calls in a row are the same.
package diff
