// Package settings reads and writes PYTORCH_CUDA_ALLOC_CONF, the text that tunes
// PyTorch's CUDA caching allocator:
//
//	max_split_size_mb:128,garbage_collection_threshold:0.8,expandable_segments:True
//
// The grammar is that of PyTorch 2.11 with all its quirks, so that a text means
// the same here as there; section 11 of
// [docs/spec/pytorch-2.11-allocator.md] specifies it, and comments cite its
// rules as "spec 11.2". The quirks that surprise:
//
//   - The text is a row of tokens: key, separator, value, separator, key, and
//     so on. Separators are counted, not checked: any token will do.
//   - White space is removed; it separates nothing.
//   - Numbers are read as in C: "21.9" and "21;x" are 21, "-1" is the largest
//     number.
//   - [Parse] starts from the defaults. [Settings.Apply] changes settings while
//     the program runs: max_split_size_mb, roundup_power2_divisions,
//     garbage_collection_threshold and max_non_split_rounding_mb fall back to
//     their defaults first, every other key keeps its value.
//   - What was read before an error stays in force, so both return those
//     settings along with the error.
//
// An [Error] says what was wrong and what is allowed, and holds the text that
// PyTorch itself prints. [Settings.String] writes settings in one canonical
// form that reads back to the same settings.
//
// [docs/spec/pytorch-2.11-allocator.md]: https://github.com/ashlar-mem/ashlar/blob/main/docs/spec/pytorch-2.11-allocator.md
package settings
