// Pools keeps the memory of two tenants apart: each has segments of its own, so
// that neither fragments the other's, and what one of them used goes back to the
// driver when its pool is closed.
package main
