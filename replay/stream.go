package replay

import (
	"errors"
	"fmt"
	"io"
	"math"
)

// A stream is the requests of one log, in order.
type stream struct {
	run    *run
	lines  lineReader
	line   line
	key    []byte
	order  order
	counts *LogCounts
}

func newStream(r *run, log Log, counts *LogCounts) *stream {
	raw := log.Reader
	if r.options.Progress != nil {
		raw = meter{raw, r.options.Progress}
	}
	s := &stream{run: r, lines: lineReader{raw: raw}, counts: counts}
	s.order = order{window: int64(r.options.Window.Seconds()), most: maxHeld, misplaced: s.misplaced}
	return s
}

// next returns the next request, or false after the last.
func (s *stream) next() (request, bool, error) {
	for !s.order.ready() {
		if s.order.ended {
			return request{}, false, nil
		}
		text, long, err := s.lines.next()
		if errors.Is(err, io.EOF) {
			s.order.end()
			continue
		}
		if err == nil {
			err = s.take(text, long)
		}
		if err != nil {
			return request{}, false, fmt.Errorf("replay: %s, after line %d: %w", s.counts.Name, s.lines.number, err)
		}
	}
	return s.order.pop(), true, nil
}

// take counts a line and, if it is a request, puts it in order.
func (s *stream) take(text []byte, long bool) error {
	r := s.run
	s.counts.Lines++
	reason := fmt.Sprintf("longer than %d bytes", maxLine)
	if !long {
		reason = s.line.parse(text)
	}
	if reason != "" {
		s.counts.Unparsed++
		r.report.Unparsed.add(s.counts.Name, s.lines.number, reason, text)
		return nil
	}
	if s.line.cut != "" {
		s.counts.CutShort++
		r.report.CutShort.add(s.counts.Name, s.lines.number, s.line.cut, text)
	}
	var whole bool
	if s.key, whole = r.options.Key.of(s.key[:0], &s.line); !whole {
		r.report.WithoutKey++
	}
	client, err := r.clients.of(s.key)
	if err != nil {
		return err
	}
	s.counts.Requests++
	s.order.push(request{s.line.second, s.lines.number, client})
	return nil
}

// misplaced counts a request that is decided at the time of the newest instead of its own.
func (s *stream) misplaced(r, newest request) {
	report, count := &s.run.report.Late, &s.counts.Late
	if r.second > newest.second {
		report, count = &s.run.report.Ahead, &s.counts.Ahead
	} else {
		s.run.report.span(r.second)
	}
	*count++
	report.add(Misplaced{
		Log: s.counts.Name, Line: r.place, Time: at(r.second), NewestLine: newest.place, Newest: at(newest.second),
	})
}

// clients numbers the clients, from 0, and counts their requests.
type clients struct {
	number   map[string]int32
	keys     []string
	requests []int64
	most     int
}

func (c *clients) of(key []byte) (int32, error) {
	n, known := c.number[string(key)] // no allocation
	if !known {
		if len(c.keys) >= min(c.most, math.MaxInt32) {
			return 0, fmt.Errorf("more than %d clients; accepted: a key of fewer, or a higher max-clients", c.most)
		}
		n = int32(len(c.keys))
		own := string(key)
		c.number[own] = n
		c.keys, c.requests = append(c.keys, own), append(c.requests, 0)
	}
	c.requests[n]++
	return n, nil
}
