package memcached

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
)

const (
	// defaultItemSize is the largest item without the option -I, in bytes.
	defaultItemSize = 1 << 20
	// overhead is more than an item has besides the state: 250 bytes of key, a header, and the head.
	overhead = 1 << 10
	// plainHead is the part of it that is for the head. With reservations a head is longer.
	plainHead = 512
)

// check reads the settings of all servers.
func (e *engine) check(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, e.timeout)
	defer cancel()
	for _, s := range e.servers {
		if err := e.checkServer(ctx, s); err != nil {
			return err
		}
	}
	return nil
}

// checkServer reads the settings of a server.
func (e *engine) checkServer(ctx context.Context, s *server) error {
	settings, err := s.settings(ctx)
	if err != nil {
		return fmt.Errorf("memcached: %s: asking for its settings: %w", s.text, err)
	}
	if settings["cas_enabled"] == "no" {
		return fmt.Errorf("memcached: %s knows no compare-and-swap; accepted: a server that was started without -C", s.text)
	}
	if size, err := strconv.ParseInt(settings["item_size_max"], 10, 64); err == nil && size > 0 {
		s.size.Store(size)
	}
	largest := int64(defaultItemSize)
	for _, s := range e.servers {
		if size := s.size.Load(); size > 0 {
			largest = min(largest, size)
		}
	}
	e.largest.Store(max(0, largest-overhead))
	return nil
}

// settings returns the settings of a server. A proxy may return none.
func (s *server) settings(ctx context.Context) (map[string]string, error) {
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, s.network, s.text)
	if err != nil {
		return nil, err
	}
	defer func() { _ = conn.Close() }()
	if deadline, ok := ctx.Deadline(); ok {
		if err := conn.SetDeadline(deadline); err != nil {
			return nil, err
		}
	}
	if _, err := conn.Write([]byte("stats settings\r\n")); err != nil {
		return nil, err
	}
	settings := map[string]string{}
	lines := bufio.NewScanner(conn)
	for lines.Scan() {
		word := strings.Fields(lines.Text())
		switch {
		case len(word) > 0 && word[0] == "STAT":
			if len(word) == 3 {
				settings[word[1]] = word[2]
			}
		case len(word) > 0 && (word[0] == "END" || strings.HasSuffix(word[0], "ERROR")):
			return settings, nil
		default:
			return nil, fmt.Errorf("it answers %.50q, and is no memcached", lines.Text())
		}
	}
	if err := lines.Err(); err != nil {
		return nil, err
	}
	return nil, errors.New("it hung up")
}
