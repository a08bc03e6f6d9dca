//go:build !race

package memory_test

// slowdown divides the sizes of tests that the race detector makes slow.
const slowdown = 1
