package clients

import (
	"context"
	"time"
)

// saved is a table for the snapshot.
type saved struct {
	at    mark
	table *Table
}

// save writes the tables in effect to the snapshot; if they change often, only the latest.
func (f *Follower) save(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			select {
			case s := <-f.unsaved:
				f.write(s)
			default:
			}
			return
		case s := <-f.unsaved:
			began := time.Now()
			f.write(s)
			sleep(ctx, max(time.Second, 20*time.Since(began))) // at most a twentieth of a processor
		}
	}
}

func (f *Follower) write(s saved) {
	defer func() {
		if v := recover(); v != nil {
			f.panicked("clients: snapshot", v)
		}
	}()
	h := snapshotHead{Version: snapshotVersion, Database: f.at.shown, Written: f.now().UTC(), At: s.at, Clients: s.table.Len()}
	if len(s.table.bad) > 0 {
		// of no change: a start from the snapshot then reads all rows, also the bad rows
		h.At = mark{Number: -1}
	}
	err := writeSnapshot(f.snapshot, h, s.table)
	if f.shown.wrote(err, h.Written) {
		f.log.Error("clients: the snapshot can't be written", "snapshot", f.snapshot, "error", err)
	}
}
