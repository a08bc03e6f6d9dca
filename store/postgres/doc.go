// Package postgres keeps the states of limits in a table of PostgreSQL, so that processes share them.
//
// A decision is one statement for the linear family, fixed-window, quota-reset, refill-bucket,
// sliding-window and calendar; a denial is a read, and writes nothing. Other algorithms and operations
// load the record and swap it, two statements. Concurrent requests of one process for one key are
// coalesced (see package swap). The clock is the server's.
//
// Several limits on one request are two statements too: all rows are loaded, and swapped together if none
// has changed.
//
// No transaction is longer than a statement, so no lock is held while a client is away. docs/postgres.md
// has the table, the parameters of the URL, and the promises.
package postgres
