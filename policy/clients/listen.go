package clients

import (
	"context"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
)

// relisten is how long to wait before listening anew. Meanwhile, and where a server can't notify, polling finds what changes.
const relisten = 5 * time.Second

// listen calls wake when PostgreSQL tells of a change, until ctx ends. A server that can't, as one in recovery, is spoken of once.
func (f *Follower) listen(ctx context.Context, wake func()) {
	for told := false; ; told = true {
		err := f.listenOnce(ctx, wake)
		if ctx.Err() != nil {
			return
		}
		level := slog.LevelWarn
		if told {
			level = slog.LevelDebug
		}
		f.log.Log(ctx, level, "clients: PostgreSQL does not notify; polling goes on", "database", f.at.shown, "poll", f.poll, "error", err)
		if !sleep(ctx, f.jitter(relisten)) {
			return
		}
	}
}

func (f *Follower) listenOnce(ctx context.Context, wake func()) error {
	conn, err := pgx.ConnectConfig(ctx, f.at.postgres.Copy())
	if err != nil {
		return err
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), askWithin)
		defer cancel()
		_ = conn.Close(ctx) // nothing was asked that could be lost
	}()
	if _, err := conn.Exec(ctx, `LISTEN weir_clients`); err != nil {
		return err
	}
	for {
		wake() // the first time for what came before
		if _, err := conn.WaitForNotification(ctx); err != nil {
			return err
		}
	}
}

// sleep reports whether it slept to the end.
func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}
