package redis

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/redis/rueidis"

	"github.com/weirlimit/weir/internal/panics"
	"github.com/weirlimit/weir/store"
)

const slots = 16384

// nodes are the masters of a cluster as it was when they were last read: when the store connected, and with each probe.
// If slots have moved since, a call counts for the circuit of another node than the one that serves it, which does not
// open as long as that node answers other calls.
type nodes struct {
	circuits []*store.Circuit
	of       [slots]uint16 // of a slot: a place in circuits
}

// circuit returns the circuit of the node that serves a name.
func (s *Store) circuit(name string) *store.Circuit {
	if !s.cluster {
		return s.whole
	}
	n := s.nodes.Load()
	if n == nil {
		return s.whole
	}
	return n.circuits[n.of[slot(name)]]
}

// readNodes reads which nodes the cluster has. Each is asked, and the first answer counts: one may hang.
func (s *Store) readNodes(ctx context.Context) error {
	c := s.client.Load()
	if !s.cluster || c == nil {
		return nil
	}
	all := c.Nodes()
	type answer struct {
		n   *nodes
		err error
	}
	answers := make(chan answer, len(all))
	for _, node := range all {
		go func() {
			var a answer
			a.err = panics.Background("redis: nodes of a cluster", func() error {
				ranges, err := node.Do(ctx, node.B().ClusterSlots().Build()).ToArray()
				if err == nil {
					a.n, err = s.parseNodes(ranges)
				}
				return err
			})
			answers <- a
		}()
	}
	err := rueidis.ErrNoSlot
	for range all {
		select {
		case a := <-answers:
			if err = a.err; err == nil {
				s.nodes.Store(a.n)
				s.breaker.Retain(append(slices.Clip(a.n.circuits), s.whole)...)
				return nil
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return fmt.Errorf("redis: reading the nodes of the cluster: %w", err)
}

// parseNodes reads a reply to CLUSTER SLOTS: ranges of a first and a last slot, and nodes of which the first is the master.
func (s *Store) parseNodes(ranges []rueidis.RedisMessage) (*nodes, error) {
	n := &nodes{}
	places := map[string]uint16{}
	for _, m := range ranges {
		fields, err := m.ToArray()
		if err != nil || len(fields) < 3 {
			return nil, fmt.Errorf("a range of slots has %d fields: %w", len(fields), err)
		}
		first, e1 := fields[0].AsInt64()
		last, e2 := fields[1].AsInt64()
		master, e3 := fields[2].ToArray()
		if e1 != nil || e2 != nil || e3 != nil || len(master) < 2 || first < 0 || last >= slots {
			return nil, fmt.Errorf("a range of slots is from %d to %d, of %d words", first, last, len(master))
		}
		host, _ := master[0].ToString() // nil for a node that does not know its address
		port, _ := master[1].AsInt64()
		address := host + ":" + strconv.FormatInt(port, 10)
		place, known := places[address]
		if !known {
			place = uint16(len(n.circuits))
			places[address] = place
			n.circuits = append(n.circuits, s.breaker.Circuit(address))
		}
		for i := first; i <= last; i++ {
			n.of[i] = place
		}
	}
	if len(n.circuits) == 0 {
		return nil, rueidis.ErrNoSlot
	}
	return n, nil
}

// probe finds out whether a node serves: all of it if ready, and otherwise whether it shows a key. A node of a cluster
// that has no slots any more is no trouble.
func (s *Store) probe(ctx context.Context, c *store.Circuit, ready bool) error {
	if err := s.connect(ctx); err != nil {
		return err
	}
	if err := s.readNodes(ctx); err != nil && ready {
		return s.fail("open", nil, err)
	}
	if ready {
		return s.Check(ctx)
	}
	name := s.probeName("{%check}")
	if n := s.nodes.Load(); n != nil && c != s.whole {
		place := slices.Index(n.circuits, c)
		if place < 0 {
			return nil
		}
		for i := 0; int(n.of[slot(name)]) != place; i++ {
			if i > mostTags {
				return nil
			}
			name = s.probeName("{%check" + strconv.Itoa(i) + "}")
		}
	}
	_, err := s.load(ctx, "inspect", []string{name})
	return err
}

// mostTags is how many names a probe tries until one is in a slot of its node: each of 16384 slots is found among so many.
const mostTags = 400_000

// probeName returns a name that no state has.
func (s *Store) probeName(key string) string {
	return strings.TrimSuffix(store.Pattern(s.prefix), "*") + key
}

// cut closes the connections to a node that hangs, so that commands whose callers have gone are not sent any more. Of
// sentinels, which are asked for a new master, it closes none.
func (s *Store) cut(c *store.Circuit) {
	if s.own == nil {
		return
	}
	sentinels := s.own.Option.InitAddress
	if s.own.Option.Sentinel.MasterSet == "" {
		sentinels = nil
	}
	s.conns.Cut(func(address string) bool {
		return (c == s.whole || address == c.Node()) && !slices.Contains(sentinels, address)
	})
}
