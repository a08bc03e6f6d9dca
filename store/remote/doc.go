// Package remote is a store that another weir server keeps: a program in Go, or a weir server, shares the state of one.
//
// A decision is one command and one round trip, and is taken by the server's clock over the server's store, whichever that is. Over a
// server that keeps its state in memory all verdicts are exact to the nanosecond; over one with an engine, to the microsecond of that.
// Commands that are under way at one time share connections and writes.
//
// A limit's name is the NAME of the command, so that clients of other kinds can work on the same state. With a prefix it is that,
// a zero byte, and the name; of a limit without a name, the prefix, a byte of one, and the limit's text.
//
// Names and keys are as long as the server takes them, 64 KB. It refuses a longer key with an error, and Bind a longer name.
package remote
