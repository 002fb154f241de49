// Snapshot records what a program does with device memory and writes it to a
// file that `ashlar view`, `ashlar explain` and PyTorch's own viewer open.
package main
