// Fleetcheck plants truth in a fleet of snapshots, has the command analyse them,
// and compares its answers with the truth: every planted commit and rank must be
// named and no other, and the failures of each cause must be together. It asks
// twice, with a new server in between; the answers must be the same, byte by byte.
package main
