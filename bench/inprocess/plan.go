package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"

	"github.com/weirlimit/weir/bench/load"
	"github.com/weirlimit/weir/bench/peer"
)

// A result is one measurement: a Timing, or for the memory slot a Heap.
type result struct {
	Peer     string
	Workload string
	Timing   load.Timing
	Heap     load.Heap
}

// A plan is what is measured, and how often.
type plan struct {
	settings
	peerList     []peer.Peer
	workloadList []load.Workload
}

func makePlan(s settings) (plan, error) {
	p := plan{settings: s}
	for _, each := range peer.All() {
		if selected(each.Name, s.peers) {
			p.peerList = append(p.peerList, each)
		}
	}
	for _, w := range load.Workloads() {
		if s.workloads == "" || slices.Contains(strings.Split(s.workloads, ","), w.Slug) {
			p.workloadList = append(p.workloadList, w)
		}
	}
	switch {
	case len(p.peerList) == 0:
		_, err := peer.Find(s.peers)
		return p, fmt.Errorf("-peers selects none: %w", err)
	case len(p.workloadList) == 0:
		_, err := load.Find(s.workloads)
		return p, fmt.Errorf("-workloads selects none: %w", err)
	}
	return p, nil
}

// measure runs every pair in every round, and the memory slots once.
func (p plan) measure(ctx context.Context, progress io.Writer) ([]result, error) {
	var all []result
	slot := func(name, workload string) error {
		fmt.Fprintf(progress, "  %s: %s\n", workload, name)
		r, err := p.spawn(ctx, name, workload)
		all = append(all, r)
		return err
	}
	for round := range p.rounds {
		fmt.Fprintf(progress, "round %d of %d\n", round+1, p.rounds)
		for _, w := range p.workloadList {
			for i := range p.peerList {
				each := p.peerList[(i+round)%len(p.peerList)]
				if w.Denied && each.Kind == peer.Pacer {
					continue
				}
				if err := slot(each.Name, w.Slug); err != nil {
					return nil, err
				}
			}
		}
	}
	for _, each := range p.peerList {
		if p.skipMemory || each.Kind == peer.Ours && each.Name != peer.Weir { // the same table
			continue
		}
		if err := slot(each.Name, memory); err != nil {
			return nil, err
		}
	}
	return all, nil
}

func (p plan) spawn(ctx context.Context, name, workload string) (result, error) {
	self, err := os.Executable()
	if err != nil {
		return result{}, err
	}
	var out, problems bytes.Buffer
	cmd := exec.CommandContext(ctx, self, "-slot", workload, "-slot-peer", name, "-time", p.time.String())
	cmd.Stdout, cmd.Stderr = &out, &problems
	if err := cmd.Run(); err != nil {
		return result{}, fmt.Errorf("%s, %s: %w: %s", name, workload, err, problems.Bytes())
	}
	var r result
	if err := json.Unmarshal(out.Bytes(), &r); err != nil {
		return result{}, fmt.Errorf("%s, %s: %w", name, workload, err)
	}
	return r, nil
}
