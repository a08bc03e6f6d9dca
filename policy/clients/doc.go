// Package clients keeps which client has which plan, or which limits of its own, in a database: SQLite, a file beside the service, or
// PostgreSQL, for many servers.
//
//	[Open], [Migrate]  a database, to look at and to edit
//	[Follow]           the clients of a database in memory, kept up with it while it changes
//	[Table]            all clients at one time: a [policy.Clients] that is read without a lock
//
// A [Follower] makes the next table beside the one in use, offers it to Options.Policies, and puts it in the place of the other if
// they use it. A bad row holds up no other: its client keeps its last good row, and the row is logged and shown in the [Status] until it
// is mended. While the database is away the Follower goes on with the clients that it has, and with Options.Snapshot it also starts from
// those that it had.
package clients
