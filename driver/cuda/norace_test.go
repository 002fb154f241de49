//go:build !race

package cuda_test

const raced = false
