// Package faults tests the stores while real engines fail: processes are killed or stopped, networks
// delay, cut and lose, engines are full, read-only or locked. docs/faults.md shows the results.
package faults
