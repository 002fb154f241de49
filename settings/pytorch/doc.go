// Package pytorch names the releases of PyTorch. Their allocators differ, and so
// do the files they write; a file shows its writer's version only as a [Range].
package pytorch
