// Park has two models take turns on a device that holds one: the idle one is parked
// in the host's memory, and comes back to the same addresses with the same bytes. Then a
// request that would fail is served with host memory.
package main
