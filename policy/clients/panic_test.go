package clients_test

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/weirlimit/weir/policy"
	"github.com/weirlimit/weir/policy/clients"
)

// usePolicies are policies that accept every client, and use them by a function.
type usePolicies func(policy.Clients) error

func (usePolicies) ClientCheck() func(client string, g *policy.Grant) error {
	return func(string, *policy.Grant) error { return nil }
}

func (u usePolicies) UseClients(c policy.Clients) error { return u(c) }

// TestPanicDoesNotEndTheFollower has a function that panics once, after a change of the database.
func TestPanicDoesNotEndTheFollower(t *testing.T) {
	url, ctx := newSQLite(t), context.Background()
	panics, used, first := make(chan string, 10), make(chan struct{}, 10), true
	use := func(policy.Clients) error { // is called by one goroutine at a time
		if first {
			first = false
			return nil
		}
		select {
		case used <- struct{}{}:
			if len(used) == 1 {
				panic("the table is broken")
			}
		default:
		}
		return nil
	}
	f, err := clients.Follow(ctx, url, clients.Options{
		Policies: usePolicies(use), Poll: 10 * time.Millisecond, Log: slog.New(slog.DiscardHandler),
		Panicked: func(task string, value any) { panics <- task + ": " + value.(string) },
	})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	d, err := clients.Open(ctx, url)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	if err := d.Set(ctx, clients.Client{Name: "a", Plan: "free"}); err != nil {
		t.Fatal(err)
	}
	if got := <-panics; got != "clients: follow: the table is broken" {
		t.Errorf("the panic is %q", got)
	}
	for len(used) < 2 { // until it is tried again
		time.Sleep(time.Millisecond)
	}
}
