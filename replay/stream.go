package replay

import (
	"errors"
	"fmt"
	"io"
	"math"
)

// A stream is the requests of one log, in order.
type stream struct {
	lines  lineReader
	line   line
	key    []byte
	order  order
	counts *LogCounts
}

func newStream(log Log, o Options, counts *LogCounts) *stream {
	raw := log.Reader
	if o.Progress != nil {
		raw = meter{raw, o.Progress}
	}
	return &stream{
		lines:  lineReader{raw: raw},
		order:  order{window: int64(o.Window.Seconds()), most: maxHeld},
		counts: counts,
	}
}

// next returns the next request, or false after the last.
func (s *stream) next(r *run) (request, bool, error) {
	for !s.order.ready() {
		if s.order.ended {
			return request{}, false, nil
		}
		text, long, err := s.lines.next()
		if errors.Is(err, io.EOF) {
			s.order.ended = true
			continue
		}
		if err == nil {
			err = s.take(r, text, long)
		}
		if err != nil {
			return request{}, false, fmt.Errorf("replay: %s, after line %d: %w", s.counts.Name, s.lines.number, err)
		}
	}
	return s.order.pop(), true, nil
}

// take counts a line and, if it is a request, puts it in order.
func (s *stream) take(r *run, text []byte, long bool) error {
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
	r.report.span(s.line.second)
	if late := s.order.push(request{s.line.second, s.lines.number, client}); late > 0 {
		s.counts.Late++
		r.report.Late.Requests++
		r.report.Late.FurthestSeconds = max(r.report.Late.FurthestSeconds, late)
	}
	return nil
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
