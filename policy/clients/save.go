package clients

import (
	"context"
	"time"
)

// saved is a table that is to be written to the snapshot.
type saved struct {
	at    mark
	table *Table
}

// save writes each table that took effect, the latest only if they come thick.
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
		h.At = mark{Number: -1} // of no change: whoever starts from it reads all rows, and so the bad ones
	}
	err := writeSnapshot(f.snapshot, h, s.table)
	if f.shown.wrote(err, h.Written) {
		f.log.Error("clients: the snapshot can't be written", "snapshot", f.snapshot, "error", err)
	}
}
