package clients

import (
	"bufio"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"time"

	"github.com/weirlimit/weir/policy"
)

// A snapshot is a file of gzip, whose checksum says that it is whole: a line of JSON that says what it is, and one for each client.

const snapshotVersion = 1

// snapshotHead is the first line.
type snapshotHead struct {
	Version  int       `json:"weir_clients_snapshot"`
	Database string    `json:"database"`
	Written  time.Time `json:"written"`
	At       mark      `json:"at"`
	Clients  int       `json:"clients"`
}

// snapshotLine is a client. Times are in microseconds since 1970, none for no bound.
type snapshotLine struct {
	Client string `json:"c"`
	Plan   string `json:"p,omitempty"`
	Limits string `json:"l,omitempty"`
	From   *int64 `json:"f,omitempty"`
	Until  *int64 `json:"u,omitempty"`
}

// maxLine bounds a line, in bytes: what a client's row holds, every byte of it escaped.
const maxLine = 6*(maxClient+maxName+maxLimits) + 1024

// writeSnapshot replaces the file as a whole, or leaves it as it is. Only the user of the process may read it.
func writeSnapshot(path string, h snapshotHead, t *Table) (err error) {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*") // of mode 0600
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(f.Name()))
		}
	}()
	err = encodeSnapshot(f, h, t)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	if err := os.Rename(f.Name(), path); err != nil {
		return err
	}
	return syncDirectory(filepath.Dir(path))
}

// syncDirectory makes a rename last, where a directory can be synced.
func syncDirectory(path string) error {
	d, err := os.Open(path) //nolint:gosec // the operator's
	if err != nil {
		return nil //nolint:nilerr // it is renamed all the same
	}
	_ = d.Sync()
	return d.Close()
}

func encodeSnapshot(w io.Writer, h snapshotHead, t *Table) error {
	buffered := bufio.NewWriterSize(w, 1<<16)
	z, err := gzip.NewWriterLevel(buffered, gzip.BestSpeed)
	if err != nil {
		return err
	}
	out := json.NewEncoder(z)
	if err := out.Encode(h); err != nil {
		return err
	}
	texts := map[*policy.Grant]string{}
	for name, at := range t.all() {
		text, ok := texts[at.grant]
		if !ok {
			text = FormatLimits(at.grant.Limits)
			texts[at.grant] = text
		}
		l := snapshotLine{Client: name, Plan: at.grant.Plan, Limits: text}
		if at.from != since {
			l.From = &at.from
		}
		if at.until != forever {
			l.Until = &at.until
		}
		if err := out.Encode(l); err != nil {
			return err
		}
	}
	return errors.Join(z.Close(), buffered.Flush())
}

// readSnapshot reads a file that writeSnapshot wrote. What is not whole is an error.
func readSnapshot(path string, now func() time.Time, check check) (*Table, snapshotHead, error) {
	f, err := os.Open(path) //nolint:gosec // the operator's
	if err != nil {
		return nil, snapshotHead{}, fmt.Errorf("clients: the snapshot: %w", err)
	}
	t, h, err := decodeSnapshot(f, now, check)
	if err = errors.Join(err, f.Close()); err != nil {
		return nil, h, fmt.Errorf("clients: the snapshot %s is damaged, or is none: %w", path, err)
	}
	return t, h, nil
}

func decodeSnapshot(r io.Reader, now func() time.Time, check check) (t *Table, h snapshotHead, err error) {
	z, err := gzip.NewReader(bufio.NewReaderSize(r, 1<<16))
	if err != nil {
		return nil, h, err
	}
	lines := bufio.NewScanner(z)
	lines.Buffer(make([]byte, 0, 1<<12), maxLine)
	if !lines.Scan() {
		return nil, h, errors.Join(errors.New("it has no first line"), lines.Err())
	}
	if err := json.Unmarshal(lines.Bytes(), &h); err != nil {
		return nil, h, err
	}
	if h.Version != snapshotVersion {
		return nil, h, fmt.Errorf("it is of version %d; accepted: %d", h.Version, snapshotVersion)
	}
	l := newLoad(now, nil, check)
	n := 0
	for ; lines.Scan(); n++ {
		var c snapshotLine
		if err := unmarshalStrict(lines.Bytes(), &c); err != nil {
			return nil, h, fmt.Errorf("line %d: %w", n+2, err)
		}
		if err := l.row(c.row()); err != nil {
			return nil, h, fmt.Errorf("line %d: %w", n+2, err)
		}
	}
	if err := lines.Err(); err != nil { // also that the checksum is not right
		return nil, h, err
	}
	if n != h.Clients || n > math.MaxUint32 {
		return nil, h, fmt.Errorf("it has %d clients, and says %d", n, h.Clients)
	}
	t, err = l.table()
	return t, h, err
}

func (c *snapshotLine) row() *row {
	r := &row{client: c.Client, plan: c.Plan, limits: c.Limits, from: since, until: forever}
	if c.From != nil {
		r.from = *c.From
	}
	if c.Until != nil {
		r.until = *c.Until
	}
	return r
}
