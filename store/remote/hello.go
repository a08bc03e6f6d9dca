package remote

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/weirlimit/weir/store"
)

// A hello is what the server says of itself.
type hello struct {
	maxKey int           // bytes
	tick   time.Duration // in which its store counts
}

// defaultMaxKey is the longest key of a server that has not told its own, in bytes.
const defaultMaxKey = 1 << 16

// greet asks the server what it is.
func (s *Store) greet(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, s.options.Timeout)
	defer cancel()
	text, err := s.do(ctx, s.command("INFO")).ToString()
	if err != nil {
		return s.fail("open", err)
	}
	fields := map[string]string{}
	for line := range strings.Lines(text) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			fields[name] = value
		}
	}
	switch {
	case fields["server_name"] != "weir":
		return fmt.Errorf("remote: what answers at %s is not a weir server", s.address)
	case fields["weir_wire"] != "3":
		return fmt.Errorf("remote: the weir server at %s, version %.30q, speaks wire %.10q; accepted: 3",
			s.address, fields["weir_version"], fields["weir_wire"])
	case s.options.TrustClientTime && fields["weir_trusts_client_time"] != "1":
		return fmt.Errorf("remote: the weir server at %s: %w", s.address, store.ErrClientTime)
	}
	var server hello
	tick := 0
	for name, field := range map[string]*int{"weir_max_key": &server.maxKey, "weir_tick_ns": &tick} {
		if *field, err = strconv.Atoi(fields[name]); err != nil || *field < 1 {
			return fmt.Errorf("remote: the weir server at %s has %s %.30q; accepted: a number", s.address, name, fields[name])
		}
	}
	server.tick = time.Duration(tick)
	s.server.Store(&server)
	return nil
}
