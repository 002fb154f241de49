// Quickstart allocates device memory, copies bytes in and out, and shows what
// the allocator keeps when the memory is freed.
package main
