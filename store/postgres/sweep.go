package postgres

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/weirlimit/weir/internal/panics"
	"github.com/weirlimit/weir/store"
)

// A sweeper removes rows that have expired. It walks through the primary key in small batches: an index on expires would have to be
// changed by every decision, and would keep all updates from staying in their pages.
//
// One process at a time walks, and once in an interval, however many there are. It holds a lease, a row
// of the table under a name that no state has, and renews it with each batch. A lease needs no session, as
// an advisory lock would, and so works behind pgbouncer too.
type sweeper struct {
	engine  *engine
	breaker *store.Breaker
	every   time.Duration
	how     sweeping
	owner   int64 // in the lease

	lease, walk string
}

// leaseName is shorter than the name of any state.
const leaseName = "sweep"

// leaseWalk renews the lease of $1 and, if that is still there, looks at the $3 rows after the name $2. A row that somebody is
// writing is skipped; one that was written since the statement began is looked at again before it goes.
const leaseWalk = `
WITH lease AS (
	UPDATE TABLE SET expires = LEASE WHERE name = '` + leaseName + `' AND words = ARRAY[$1::bigint] RETURNING name
), page AS MATERIALIZED (
	SELECT name FROM TABLE WHERE name > $2 ORDER BY name LIMIT $3
), due AS MATERIALIZED (
	SELECT name FROM TABLE AS state
	WHERE name > $2 AND name <= (SELECT max(name) FROM page) AND name <> '` + leaseName + `' AND EXPIRED AND EXISTS (SELECT FROM lease)
	FOR UPDATE SKIP LOCKED
), gone AS (
	DELETE FROM TABLE AS state USING due WHERE state.name = due.name AND EXPIRED RETURNING state.name
)
SELECT EXISTS (SELECT FROM lease), (SELECT coalesce(max(name), '') FROM page), (SELECT count(*) FROM page), (SELECT count(*) FROM gone)`

const leaseTake = `
INSERT INTO TABLE AS lease (name, words, expires) VALUES ('` + leaseName + `', ARRAY[$1::bigint], LEASE)
ON CONFLICT (name) DO UPDATE SET words = excluded.words, expires = excluded.expires WHERE lease.expires <= clock_timestamp()`

func newSweeper(e *engine, o Options, b *store.Breaker) *sweeper {
	in := func(statement string) string {
		return e.table.in(strings.NewReplacer(
			"LEASE", fmt.Sprintf("clock_timestamp() + %d * interval '1 microsecond'", microseconds(o.SweepEvery)),
			"EXPIRED", fmt.Sprintf("state.expires + %d * interval '1 microsecond' < clock_timestamp()", microseconds(o.sweeping.grace)),
		).Replace(statement))
	}
	return &sweeper{
		engine: e, breaker: b, every: o.SweepEvery, how: o.sweeping, lease: in(leaseTake), walk: in(leaseWalk),
		owner: rand.Int64(), //nolint:gosec // it need only differ from that of other processes
	}
}

// run walks again and again until ctx ends. An error is counted, and ends the walk; a panic too,
// which is logged. A server that does not serve is left alone.
func (s *sweeper) run(ctx context.Context) {
	for s.rest(ctx, s.every) {
		if s.breaker.State().Position != store.Closed {
			continue
		}
		err := panics.Background("postgres: sweep", func() error { return s.sweep(ctx) })
		if err != nil && ctx.Err() == nil {
			s.engine.failures.Add(1)
		}
	}
}

// sweep walks through the table once, if no other process does or has just done so.
func (s *sweeper) sweep(ctx context.Context) error {
	var mine bool
	err := s.bounded(ctx, func(ctx context.Context) error {
		tag, err := s.engine.pool.Exec(ctx, s.lease, s.owner)
		mine = tag.RowsAffected() > 0
		return err
	})
	if err != nil || !mine {
		return err
	}
	for last := ""; ; {
		var looked int
		if last, looked, err = s.batch(ctx, last); err != nil || looked < s.how.batch || !s.rest(ctx, s.how.pause) {
			return err
		}
	}
}

// batch looks at the rows after a name. It returns the last one's name, and how many they were, or 0 if the lease is another's.
func (s *sweeper) batch(ctx context.Context, after string) (last string, looked int, err error) {
	var mine bool
	var gone int64
	err = s.bounded(ctx, func(ctx context.Context) error {
		return s.engine.pool.QueryRow(ctx, s.walk, s.owner, after, s.how.batch).Scan(&mine, &last, &looked, &gone)
	})
	if err != nil || !mine {
		return "", 0, err
	}
	s.engine.swept.Add(gone)
	return last, looked, nil
}

// bounded keeps a statement from waiting for ever.
func (s *sweeper) bounded(ctx context.Context, statement func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	return statement(ctx)
}

// rest reports whether the time has passed without an end of ctx.
func (s *sweeper) rest(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
