// Package clients keeps which client has which plan, or which limits of its own, in a database: SQLite, a file beside the service, or
// PostgreSQL, for many servers.
//
//	[Open], [Migrate]  a database, to look at and to edit
//	[Follow]           the clients of a database in memory, kept up with it while it changes
//	[Table]            all clients at one time: a [policy.Clients] that is read without a lock
//
// A [Follower] never applies half a change: the next table is made beside the one in use, offered to Options.Use, and takes its place if it is
// taken. What is broken is refused as a whole, logged and shown in its [Status], and the clients stay as they were. While the database is away it goes on with what it
// has, and with Options.Snapshot it also starts from what it had.
package clients
