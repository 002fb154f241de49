// Package later simulates PyTorch's allocator as 2.12 and 2.13 have it, for tests
// of package alloc. It is written from PyTorch's sources, shares nothing with
// alloc, and looks at every free block where alloc has an index. It has what
// ordinary training needs: plain and expandable segments, streams, private pools,
// empty_cache(); no limits, no settings but expandable_segments.
package later
