// Package audit is a log of what people should be able to look up later: refunds, resets,
// changes of the configuration and refused logins, as JSON lines in a file.
package audit

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weirlimit/weir/identity"
	"github.com/weirlimit/weir/internal/server/guard"
)

// The events.
const (
	Refund = "refund"
	Reset  = "reset"
	Cancel = "cancel"
	Login  = "login"  // a refused login
	Change = "change" // of policies, clients, users or the certificate: Source
	Lost   = "lost"   // records, Count of them
)

// The results.
const (
	OK      = "ok"
	Refused = "refused"
	Failed  = "error"
)

const (
	maxQueued = 4096 // records that wait for the disk
	maxText   = 256  // bytes of a text
	// maxLogins is how many refused logins are recorded one by one in each time of loginTime; the rest
	// of that time is one record with their number. So a flood of logins does not fill the disk.
	maxLogins = 10
	loginTime = 10 * time.Second
	// quiet is the time between two lines in the log about a file that can't be written.
	quiet = time.Minute
)

// A Record is one line of the log.
type Record struct {
	Time  time.Time `json:"time"`
	Event string    `json:"event"`
	// User is the name of the user, "" without users. A refused login has the name in the login, masked
	// unless there is such a user.
	User     string `json:"user,omitempty"`
	From     string `json:"from,omitempty"` // the address of the client
	Protocol string `json:"protocol,omitempty"`
	Name     string `json:"name,omitempty"` // of the limiter
	Limit    string `json:"limit,omitempty"`
	Key      string `json:"key,omitempty"` // Write masks it
	Units    int64  `json:"units,omitempty"`
	Source   string `json:"source,omitempty"` // of a change: policies, clients, users, certificate
	File     string `json:"file,omitempty"`   // of a change: the file or the database
	Result   string `json:"result,omitempty"`
	Detail   string `json:"detail,omitempty"`
	Count    int64  `json:"count,omitempty"` // entries after a change; records lost; logins besides
}

// A Log writes records to a file. It may be used by many goroutines at once. A nil Log drops them.
type Log struct {
	path   string
	log    *slog.Logger
	queue  chan Record
	reopen chan chan error
	stop   chan struct{}
	done   sync.WaitGroup
	lost   atomic.Int64
	logins atomic.Int64 // refused logins since the last tick

	// These belong to the writer.
	file     *os.File
	torn     bool // the file ends within a line
	reported int64
	warned   guard.Sampler
}

// Open opens the file, which it makes if there is none, with mode 0600, and appends to it. Records
// beyond the queue, and those that can't be written, are lost, which is logged and counted: no
// decision waits for the disk.
func Open(path string, log *slog.Logger, panics *guard.Panics) (*Log, error) {
	file, err := open(path)
	if err != nil {
		return nil, err
	}
	l := &Log{path: path, log: log, file: file, queue: make(chan Record, maxQueued), reopen: make(chan chan error), stop: make(chan struct{})}
	l.done.Go(func() {
		for again := true; again; {
			again = !l.run(panics) // it ends after a panic, too
		}
	})
	return l, nil
}

// open opens a regular file for appending. A file that everybody can read or write is an error.
func open(path string) (*os.File, error) {
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() { // the open of a pipe could wait
		return nil, &fs.PathError{Op: "open", Path: path, Err: errors.New("is no regular file")}
	}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600) //nolint:gosec // the operator names the file
	if err != nil {
		return nil, err
	}
	info, err := file.Stat()
	if err == nil && info.Mode().Perm()&0o007 != 0 && runtime.GOOS != "windows" {
		err = &fs.PathError{Op: "open", Path: path, Err: fmt.Errorf("mode %04o lets everybody read or write it", info.Mode().Perm())}
	}
	if err != nil {
		_ = file.Close()
		return nil, err
	}
	return file, nil
}

// Write records. It never waits. Refused logins beyond maxLogins are only counted: in the queue, a
// flood of them would displace the records of refunds.
func (l *Log) Write(r Record) {
	if l == nil || r.Event == Login && l.logins.Add(1) > maxLogins {
		return
	}
	if r.Time.IsZero() {
		r.Time = time.Now()
	}
	r.Key = identity.Mask(r.Key)
	for _, text := range []*string{&r.User, &r.Name, &r.Limit, &r.Detail, &r.File} {
		*text = strings.ToValidUTF8(strings.Clone((*text)[:min(len(*text), maxText)]), "�")
	}
	select {
	case l.queue <- r:
	default:
		l.lost.Add(1)
	}
}

// Lost returns the number of records that were lost.
func (l *Log) Lost() int64 {
	if l == nil {
		return 0
	}
	return l.lost.Load()
}

// Reopen opens the file again, for programs that move it away. After an error the old file stays in
// use.
func (l *Log) Reopen() error {
	if l == nil {
		return nil
	}
	result := make(chan error, 1)
	select {
	case l.reopen <- result:
		return <-result
	case <-l.stop:
		return os.ErrClosed
	}
}

// Close writes the records that wait, and closes the file.
func (l *Log) Close() error {
	if l == nil {
		return nil
	}
	close(l.stop)
	l.done.Wait()
	return l.file.Close()
}

// run writes records until Close. It returns false after a panic.
func (l *Log) run(panics *guard.Panics) (over bool) {
	defer panics.Recover("audit: write")
	ticker := time.NewTicker(loginTime)
	defer ticker.Stop()
	for {
		select {
		case r := <-l.queue:
			l.write(r)
		case now := <-ticker.C:
			l.tick(now)
		case result := <-l.reopen:
			result <- l.exchange()
		case <-l.stop:
			for {
				select {
				case r := <-l.queue:
					l.write(r)
				default:
					l.tick(time.Now())
					return true
				}
			}
		}
	}
}

// exchange opens the file again.
func (l *Log) exchange() error {
	file, err := open(l.path)
	if err != nil {
		l.log.Error("audit: the file can't be opened again; the old one stays in use", "file", l.path, "error", err)
		return err
	}
	_ = l.file.Close()
	l.file, l.torn = file, false
	return nil
}

// tick writes the number of refused logins that have no record, and of lost records.
func (l *Log) tick(now time.Time) {
	if more := l.logins.Swap(0) - maxLogins; more > 0 {
		l.write(Record{Time: now, Event: Login, Result: Refused, Count: more, Detail: "further refused logins"})
	}
	if lost := l.lost.Load(); lost > l.reported && l.write(Record{Time: now, Event: Lost, Count: lost - l.reported}) {
		l.reported = lost
	}
}

// write writes a line, and reports success.
func (l *Log) write(r Record) bool {
	line, err := json.Marshal(r)
	if err != nil { // of texts and numbers: can't be
		line = []byte("{}")
	}
	if line = append(line, '\n'); l.torn {
		line = append([]byte{'\n'}, line...)
	}
	n, err := l.file.Write(line)
	if l.torn = l.torn && n == 0 || n > 0 && n < len(line); err == nil {
		return true
	}
	l.lost.Add(1)
	if l.warned.PassWithin(time.Now(), quiet) {
		l.log.Error("audit: records are lost: the file can't be written", "file", l.path, "lost", l.lost.Load(), "error", err)
	}
	return false
}
