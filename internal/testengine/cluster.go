package testengine

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

const masters, nodes = 3, 6

var errNotReady = errors.New("not ready")

// A Cluster is a Redis Cluster of six nodes: the first three are masters, each of the others is a replica of one.
type Cluster struct{ Nodes []*Server }

// RedisCluster starts a cluster. It returns when all slots are served and all replicas follow.
func RedisCluster(t testing.TB, args ...string) *Cluster {
	t.Helper()
	c := &Cluster{}
	for range nodes {
		c.Nodes = append(c.Nodes, start(t, clusterNode(args)))
	}
	if err := c.join(); err != nil {
		t.Fatalf("joining the nodes to a cluster: %v", err)
	}
	return c
}

func clusterNode(extra []string) engine {
	var bus int
	var err error
	e := redis("redis-server", nil)
	node := e.args
	e.prepare = func(*Server) error {
		bus, err = freePort()
		return err
	}
	e.args = func(s *Server) []string {
		return append(append(node(s),
			"--cluster-enabled", "yes", "--cluster-config-file", "nodes.conf", "--cluster-port", strconv.Itoa(bus),
			"--cluster-node-timeout", "2000"), extra...)
	}
	return e
}

// Addrs returns the addresses of all nodes.
func (c *Cluster) Addrs() []string {
	var all []string
	for _, s := range c.Nodes {
		all = append(all, s.Addr())
	}
	return all
}

// URL returns redis+cluster://host:port,host:port,…
func (c *Cluster) URL() string { return "redis+cluster://" + strings.Join(c.Addrs(), ",") }

// join makes a cluster of single nodes.
func (c *Cluster) join() error {
	const slots = 16384
	for i, s := range c.Nodes {
		if _, err := s.ask("CLUSTER", "SET-CONFIG-EPOCH", strconv.Itoa(i+1)); err != nil {
			return err
		}
		if i < masters {
			from, to := strconv.Itoa(i*slots/masters), strconv.Itoa((i+1)*slots/masters-1)
			if _, err := s.ask("CLUSTER", "ADDSLOTSRANGE", from, to); err != nil {
				return err
			}
		}
		bus, err := s.ask("CONFIG", "GET", "cluster-port")
		if err != nil {
			return err
		}
		bus = strings.TrimSpace(strings.TrimPrefix(bus, "cluster-port"))
		if _, err := c.Nodes[0].ask("CLUSTER", "MEET", "127.0.0.1", strconv.Itoa(s.port), bus); err != nil {
			return err
		}
	}
	if err := c.all("cluster_known_nodes:"+strconv.Itoa(nodes), "CLUSTER", "INFO"); err != nil {
		return err
	}
	for i, s := range c.Nodes[masters:] {
		id, err := c.Nodes[i].ask("CLUSTER", "MYID")
		if err != nil {
			return err
		}
		if err := eventually(func() error { // it must have heard of the master
			_, err := s.ask("CLUSTER", "REPLICATE", id)
			return err
		}); err != nil {
			return err
		}
	}
	return c.settled()
}

// settled waits until all nodes agree.
func (c *Cluster) settled() error {
	if err := c.all("cluster_state:ok", "CLUSTER", "INFO"); err != nil {
		return err
	}
	for i, s := range c.Nodes {
		want := "connected_slaves:1"
		if i >= masters {
			want = "master_link_status:up"
		}
		if err := s.says(want, "INFO", "replication"); err != nil {
			return err
		}
	}
	return c.every(func(s *Server) error { // clients read here who serves what
		text, err := s.ask("CLUSTER", "NODES")
		if err == nil && strings.Count(text, "slave") != nodes-masters {
			err = fmt.Errorf("%w: %s", errNotReady, text)
		}
		return err
	})
}

// all waits until each node says something.
func (c *Cluster) all(want string, command ...string) error {
	return c.every(func(s *Server) error { return s.mentions(want, command) })
}

func (c *Cluster) every(f func(s *Server) error) error {
	errs := make([]error, len(c.Nodes))
	var wg sync.WaitGroup
	for i, s := range c.Nodes {
		wg.Go(func() { errs[i] = eventually(func() error { return f(s) }) })
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// says waits until the answer to a command has a text in it.
func (s *Server) says(want string, command ...string) error {
	return eventually(func() error { return s.mentions(want, command) })
}

func (s *Server) mentions(want string, command []string) error {
	text, err := s.ask(command...)
	if err == nil && !strings.Contains(text, want) {
		err = fmt.Errorf("%w: %s on %s does not say %s, but %s", errNotReady, command, s.Addr(), want, text)
	}
	return err
}

// eventually calls f until it succeeds.
func eventually(f func() error) error {
	until := time.Now().Add(startWithin)
	for {
		err := f()
		if err == nil || time.Now().After(until) {
			return err
		}
		time.Sleep(10 * time.Millisecond)
	}
}
