//go:build race

package cuda_test

const raced = true // under the race detector
