package clients

// queries are the statements that differ between the databases. Times cross in microseconds since 1970.
type queries struct {
	head, known, every, all, changed string
	get, list, remove                string
	put                              string // a client, plan, limits, note, from, until; in PostgreSQL an array of each
	prepare, migrations, lock, done  string // prepare is run before the transaction of the migrations
}

const (
	head  = `SELECT number, tag FROM weir_clients_changes ORDER BY number DESC LIMIT 1`
	from  = ` FROM weir_clients`
	upset = `ON CONFLICT (client) DO UPDATE SET plan = excluded.plan, limits = excluded.limits, note = excluded.note,
		valid_from = excluded.valid_from, valid_until = excluded.valid_until`
)

var postgresQueries = func() queries {
	const (
		begin = `(extract(epoch FROM valid_from) * 1000000)::bigint`
		end   = `(extract(epoch FROM valid_until) * 1000000)::bigint`
		row   = `client, plan, limits, ` + begin + `, ` + end
		full  = row + `, note, (extract(epoch FROM updated_at) * 1000000)::bigint`
	)
	return queries{
		head:  head,
		known: `SELECT count(*) FROM weir_clients_changes WHERE number = $1 AND tag = $2`,
		every: `SELECT count(*) FROM weir_clients_changes WHERE number > $1 AND client IS NULL`,
		all:   `SELECT ` + row + from,
		changed: `SELECT h.changed, ` + row + ` FROM (SELECT DISTINCT client AS changed FROM weir_clients_changes WHERE number > $1) AS h
			LEFT JOIN weir_clients ON client = h.changed`,
		get:    `SELECT ` + full + from + ` WHERE client = $1`,
		list:   `SELECT ` + full + from + ` WHERE client > $1 AND client >= $2 AND starts_with(client, $2) AND ($3 = '' OR plan = $3) ORDER BY client LIMIT $4`,
		remove: `DELETE FROM weir_clients WHERE client = $1`,
		put: `INSERT INTO weir_clients (client, plan, limits, note, valid_from, valid_until)
			SELECT client, plan, limits, note, to_timestamp(begins::numeric / 1000000), to_timestamp(ends::numeric / 1000000)
			FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::bigint[], $6::bigint[]) AS r (client, plan, limits, note, begins, ends) ` + upset,
		migrations: `CREATE TABLE IF NOT EXISTS weir_clients_migrations (number int PRIMARY KEY, applied_at timestamptz NOT NULL DEFAULT now());`,
		lock:       `SELECT pg_advisory_xact_lock(2003134834, 0)`,
		done:       `INSERT INTO weir_clients_migrations (number) VALUES (%d);`,
	}
}()

var sqliteQueries = func() queries {
	const (
		begin = `CAST(round(unixepoch(valid_from, 'subsec') * 1000) AS INTEGER) * 1000`
		end   = `CAST(round(unixepoch(valid_until, 'subsec') * 1000) AS INTEGER) * 1000`
		row   = `client, plan, limits, ` + begin + `, ` + end
		full  = row + `, note, CAST(round(unixepoch(updated_at, 'subsec') * 1000) AS INTEGER) * 1000`
		time  = `strftime('%Y-%m-%dT%H:%M:%fZ', `
	)
	return queries{
		head:  head,
		known: `SELECT count(*) FROM weir_clients_changes WHERE number = ?1 AND tag = ?2`,
		every: `SELECT count(*) FROM weir_clients_changes WHERE number > ?1 AND client IS NULL`,
		all:   `SELECT ` + row + from,
		changed: `SELECT h.changed, ` + row + ` FROM (SELECT DISTINCT client AS changed FROM weir_clients_changes WHERE number > ?1) AS h
			LEFT JOIN weir_clients ON client = h.changed`,
		get:    `SELECT ` + full + from + ` WHERE client = ?1`,
		list:   `SELECT ` + full + from + ` WHERE client > ?1 AND client >= ?2 AND substr(client, 1, length(?2)) = ?2 AND (?3 = '' OR plan = ?3) ORDER BY client LIMIT ?4`,
		remove: `DELETE FROM weir_clients WHERE client = ?1`,
		put: `INSERT INTO weir_clients (client, plan, limits, note, valid_from, valid_until)
			VALUES (?1, ?2, ?3, ?4, ` + time + `?5 / 1000000.0, 'unixepoch'), ` + time + `?6 / 1000000.0, 'unixepoch')) ` + upset,
		prepare:    "PRAGMA journal_mode = WAL;\n", // who reads and who writes do not wait for each other; the file keeps it
		migrations: `CREATE TABLE IF NOT EXISTS weir_clients_migrations (number INTEGER PRIMARY KEY, applied_at TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ', 'now'))) STRICT;`,
		done:       `INSERT INTO weir_clients_migrations (number) VALUES (%d);`,
	}
}()
