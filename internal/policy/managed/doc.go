// Package managed models managed memory on a device that is too small: pages of
// 2 MiB, of which the least recently used leaves when another one is needed.
//
// A page without a live block has nothing worth keeping: it leaves for nothing, and
// comes back as nothing. A page with one is moved to the host unless the host has it
// already, and moved back when it is touched again.
package managed
