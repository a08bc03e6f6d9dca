// Package faults holds the stores to their promises while real engines fail: processes that are
// killed or stopped, networks that delay, cut and lose, engines that are full, read-only or locked.
// It consists of tests. docs/faults.md shows their results.
package faults
