// Libashlar is the allocator as a shared library for PyTorch.
package main
