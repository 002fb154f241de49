// Pools keeps the memory of two tenants apart: each has its own segments, so
// neither fragments the other's, and closing a pool returns its memory to the
// driver.
package main
