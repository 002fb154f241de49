// Package bisect finds the least number of bytes that suffices, such as the
// lowest limit under which a run passes, in few tests.
//
// The answer is not always monotone: an allocator may fail under a limit and pass
// under a lower one. The result is then one of the borders: it suffices, and one
// step less does not.
package bisect
