// Package clients keeps which client has which plan, or which limits of its own, in a database: SQLite, a file beside the service, or
// PostgreSQL, for many servers.
//
//	[Open], [Migrate]  a database, to look at and to edit
//	[Follow]           the clients of a database in memory, kept up with it while it changes
//	[Table]            all clients at one time: a [policy.Clients] that is read without a lock
//
// A [Follower] makes the next table beside the table in use, offers it to Options.Policies, and
// uses it if they accept. A bad row holds up no other row: its client keeps its last good row, and
// the row is logged and shown in the [Status] until it is mended. While the database is away the
// Follower goes on with its clients, and with Options.Snapshot it also starts from the clients of
// the snapshot.
package clients
