package replay

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
)

// maxLine is the longest line that is looked at, in bytes; a longer one is counted as unparsed.
const maxLine = 1 << 20

// MaxLogs is the most logs that one run reads, all of them at once.
const MaxLogs = 1024

// A Log is a log to read, plain or compressed with gzip.
type Log struct {
	Name string // for reports: "access.log", or "-" for standard input
	io.Reader
}

// Logs are the open logs of a run. Close them.
type Logs struct {
	List []Log
	// Size is the sum of the files' sizes in bytes, -1 when one of them is no regular file.
	Size  int64
	files []*os.File
}

// Open opens logs by name; "-" is stdin. The error names the file that can't be opened.
func Open(names []string, stdin io.Reader) (*Logs, error) {
	if len(names) < 1 || len(names) > MaxLogs {
		return nil, fmt.Errorf("replay: %d logs; accepted: 1 to %d", len(names), MaxLogs)
	}
	var logs Logs
	sawStdin := false
	for _, name := range names {
		var err error
		switch {
		case name != "-":
			err = logs.open(name)
		case sawStdin:
			err = errors.New("replay: standard input (-) given twice; accepted: once")
		default:
			sawStdin, logs.Size = true, -1
			logs.List = append(logs.List, Log{name, stdin})
		}
		if err != nil {
			return nil, errors.Join(err, logs.Close())
		}
	}
	return &logs, nil
}

func (l *Logs) open(name string) error {
	f, err := os.Open(name) //nolint:gosec // whoever runs weir names the files
	if err != nil {
		return fmt.Errorf("replay: %w", err)
	}
	l.files = append(l.files, f)
	l.List = append(l.List, Log{name, f})
	info, err := f.Stat()
	switch {
	case err != nil:
		return fmt.Errorf("replay: %w", err)
	case info.IsDir():
		return fmt.Errorf("replay: %s is a folder; accepted: access logs, plain or gzip, or - for standard input", name)
	case !info.Mode().IsRegular() || l.Size < 0:
		l.Size = -1
	default:
		l.Size += info.Size()
	}
	return nil
}

// Close closes the files.
func (l *Logs) Close() error {
	var errs []error
	for _, f := range l.files {
		errs = append(errs, f.Close())
	}
	return errors.Join(errs...)
}

// A lineReader cuts a log into lines.
type lineReader struct {
	raw    io.Reader
	in     *bufio.Reader // nil until the first line is read
	buffer []byte        // a line that does not fit in's buffer
	number int64         // of the line that was read last; the first is 1
}

// start looks at the first bytes: those of gzip, or the mark that some editors put before UTF-8.
func (r *lineReader) start() error {
	r.in = bufio.NewReaderSize(r.raw, 64<<10)
	magic, err := r.in.Peek(3)
	switch {
	case err != nil && !errors.Is(err, io.EOF):
		return err
	case bytes.HasPrefix(magic, []byte{0x1f, 0x8b}):
		unzipped, err := gzip.NewReader(r.in)
		if err != nil {
			return err
		}
		r.in = bufio.NewReaderSize(unzipped, 64<<10)
	case bytes.Equal(magic, []byte("\xef\xbb\xbf")):
		_, err := r.in.Discard(len(magic))
		return err
	}
	return nil
}

// next returns the next line without its end, until io.EOF. It is valid until the next call. Of a line that is
// longer than maxLine it returns the beginning, and that it is too long.
func (r *lineReader) next() (text []byte, long bool, err error) {
	if r.in == nil {
		if err := r.start(); err != nil {
			return nil, false, err
		}
	}
	text, err = r.in.ReadSlice('\n')
	if errors.Is(err, bufio.ErrBufferFull) {
		text, long, err = r.nextLong(text)
	}
	if err != nil && (!errors.Is(err, io.EOF) || len(text) == 0) {
		return nil, false, err
	}
	r.number++
	text = bytes.TrimSuffix(text, []byte("\n"))
	return bytes.TrimSuffix(text, []byte("\r")), long, nil
}

// nextLong gathers a line that does not fit the reader's buffer, and reads to its end in any case.
func (r *lineReader) nextLong(begin []byte) (text []byte, long bool, err error) {
	r.buffer = append(r.buffer[:0], begin...)
	for err = bufio.ErrBufferFull; errors.Is(err, bufio.ErrBufferFull); {
		var more []byte
		more, err = r.in.ReadSlice('\n')
		room := min(len(more), maxLine-len(r.buffer))
		long = long || room < len(more)
		r.buffer = append(r.buffer, more[:room]...)
	}
	return r.buffer, long, err
}
