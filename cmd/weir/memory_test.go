package main

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/weirlimit/weir/internal/server"
)

func TestSoftMemoryLimit(t *testing.T) {
	t.Setenv("GOMEMLIMIT", "") // restores the variable
	if err := os.Unsetenv("GOMEMLIMIT"); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		cfg  server.Config
		want int64 // 0: none
	}{
		{server.Config{Store: server.InMemory, Memory: 64 << 20}, 384 << 20},
		{server.Config{Store: server.InMemory}, 2304 << 20},
		{server.Config{Store: "redis://127.0.0.1"}, 0},
	} {
		if got, ok := softLimit(test.cfg); got != test.want || ok != (test.want > 0) {
			t.Errorf("%s, %d: %d, %v; want %d", test.cfg.Store, test.cfg.Memory, got, ok, test.want)
		}
	}
	t.Setenv("GOMEMLIMIT", "off")
	if got, ok := softLimit(server.Config{Store: server.InMemory}); ok {
		t.Errorf("%d with GOMEMLIMIT=off", got)
	}
}

// floods are requests by which clients try to use memory: i counts the requests.
var floods = map[string]func(i int) []string{
	"keys of a name": func(i int) []string { return []string{fmt.Sprint(i), "5/1h", "NAME", "keys"} },
	"words":          func(i int) []string { return []string{fmt.Sprint(i), "5/1h"} },
	"states":         func(i int) []string { return []string{fmt.Sprint(i), "sliding-window 5/1h"} },
	"cells": func(i int) []string {
		return []string{fmt.Sprint(i), "sliding-buckets 5/1h cells=3600", "NAME", "cells"}
	},
	"logs": func(i int) []string { return []string{fmt.Sprint(i % 300), "sliding-log 100000/1h", "NAME", "logs"} },
	"changes": func(i int) []string {
		return []string{fmt.Sprint(i % 500), fmt.Sprintf("sliding-buckets 1000/1h cells=%d", 100<<(i%6)+i%97), "NAME", "changes"}
	},
	"limits":        func(i int) []string { return []string{fmt.Sprint(i), fmt.Sprintf("5/%dms", 1001+i), "NAME", "limits"} },
	"limits, 1 key": func(i int) []string { return []string{"k", fmt.Sprintf("5/%dms", 1001+i), "NAME", "one key"} },
	"word limits":   func(i int) []string { return []string{fmt.Sprint(i), fmt.Sprintf("5/%dms", 1001+i)} },
	"state limits":  func(i int) []string { return []string{fmt.Sprint(i), fmt.Sprintf("fixed-window 5/%dms", 1001+i)} },
}

// TestMemoryUnderFloods sends floods of all kinds at once to a daemon, and compares its memory with
// the bounds that docs/stores.md states. The peak of the process is for -v.
func TestMemoryUnderFloods(t *testing.T) {
	if os.Getenv("GOMEMLIMIT") != "" {
		t.Skip("GOMEMLIMIT replaces the daemon's own limit")
	}
	const memory, batch = 64 << 20, 100
	requests := 10_000
	if testing.Short() {
		requests /= 10
	}
	d := startDaemon(t, "memory", "--memory", "64MiB")
	d.ask(t, "WEIR.TAKE k 5/1m NAME other") // has a share before the floods
	var wg sync.WaitGroup
	for what, request := range floods {
		wg.Go(func() {
			if err := flood(d.resp, request, requests, batch); err != nil {
				t.Errorf("%s: %v", what, err)
			}
		})
	}
	wg.Wait()
	for i := range 100 {
		if got := d.ask(t, fmt.Sprintf("WEIR.TAKE new%d 5/1m NAME other", i))[0]; !strings.HasPrefix(got, "[1 ") {
			t.Fatalf("new key %d of another name: %s", i, got)
		}
	}
	counted, limit := d.metric(t, "weir_memory_bytes"), d.metric(t, "go_gc_gomemlimit_bytes")
	if counted > memory*17/16 {
		t.Errorf("%.0f bytes are counted, of %d", counted, memory)
	}
	if limit != 2*memory+besideKeys {
		t.Errorf("the soft memory limit is %.0f, want %d", limit, 2*memory+besideKeys)
	}
	// Of Go alone: the race detector takes more.
	if sys := d.metric(t, "go_memstats_sys_bytes"); sys > limit {
		t.Errorf("Go had %.0f bytes, the soft memory limit is %.0f", sys, limit)
	}
	status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", d.cmd.Process.Pid))
	if peak := regexp.MustCompile(`VmHWM:\s+(\d+) kB`).FindSubmatch(status); peak != nil {
		kilobytes, _ := strconv.Atoi(string(peak[1]))
		t.Logf("--memory 64MiB: %.1f MiB are counted, the process had at most %d MiB", counted/(1<<20), kilobytes>>10)
	}
}

// flood sends WEIR.TAKE with the words of each request, some at a time, and reads the replies.
func flood(address string, words func(i int) []string, requests, batch int) error {
	c, err := net.Dial("tcp", address)
	if err != nil {
		return err
	}
	defer c.Close()
	r, w := bufio.NewReader(c), bufio.NewWriter(c)
	for i := 0; i < requests; i += batch {
		for n := range batch {
			all := append([]string{"WEIR.TAKE"}, words(i+n)...)
			_, _ = fmt.Fprintf(w, "*%d\r\n", len(all))
			for _, word := range all {
				_, _ = fmt.Fprintf(w, "$%d\r\n%s\r\n", len(word), word)
			}
		}
		if err := w.Flush(); err != nil {
			return err
		}
		for range batch * 7 { // a line for the array, and one for each of its six integers
			line, err := r.ReadString('\n')
			if err != nil || line[0] != '*' && line[0] != ':' {
				return fmt.Errorf("reply %q, %w", line, err)
			}
		}
	}
	return nil
}

// metric returns the value of a metric without labels.
func (d *daemon) metric(t *testing.T, name string) float64 {
	t.Helper()
	resp, err := http.Get("http://" + d.admin + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(`(?m)^` + name + ` (\S+)$`).FindSubmatch(text)
	if found == nil {
		t.Fatalf("no metric %s", name)
	}
	value, err := strconv.ParseFloat(string(found[1]), 64)
	if err != nil {
		t.Fatal(err)
	}
	return value
}
