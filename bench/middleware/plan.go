package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// A result is one measurement.
type result struct {
	Peer     string
	Workload string
	Timing   timing
}

// A plan is what is measured, and how often.
type plan struct {
	settings

	contenders []contender
	workloads  []workload
}

func makePlan(s settings) (plan, error) {
	p := plan{settings: s}
	for _, c := range contenders() {
		if selected(c.Name, s.peers) {
			p.contenders = append(p.contenders, c)
		}
	}
	for _, w := range workloads() {
		if s.workloads == "" || slices.Contains(strings.Split(s.workloads, ","), w.Slug) {
			p.workloads = append(p.workloads, w)
		}
	}
	switch {
	case len(p.contenders) == 0:
		_, err := find(s.peers)
		return p, fmt.Errorf("-peers selects none: %w", err)
	case len(p.workloads) == 0:
		_, err := findWorkload(s.workloads)
		return p, fmt.Errorf("-workloads selects none: %w", err)
	}
	return p, nil
}

// selected reports whether the name has one of the parts, which stand in a list with semicolons.
func selected(name, parts string) bool {
	for part := range strings.SplitSeq(parts, ";") {
		if strings.Contains(name, part) {
			return true
		}
	}
	return false
}

// measure runs every pair in every round.
func (p plan) measure(ctx context.Context, progress io.Writer) ([]result, error) {
	var all []result
	for round := range p.rounds {
		fmt.Fprintf(progress, "round %d of %d\n", round+1, p.rounds)
		for _, w := range p.workloads {
			for i := range p.contenders {
				c := p.contenders[(i+round)%len(p.contenders)]
				if w.denied() && c.Open {
					continue
				}
				fmt.Fprintf(progress, "  %s: %s\n", w.Slug, c.Name)
				r, err := p.spawn(ctx, c, w)
				if err != nil {
					return nil, fmt.Errorf("%s, %s: %w", c.Name, w.Slug, err)
				}
				all = append(all, r)
			}
		}
	}
	return all, nil
}

func (p plan) spawn(ctx context.Context, c contender, w workload) (result, error) {
	self, err := os.Executable()
	if err != nil {
		return result{}, err
	}
	args := []string{"-slot", w.Slug, "-slot-peer", c.Name, "-time", p.time.String()}
	if p.profiles != "" {
		args = append(args, "-profiles", filepath.Join(p.profiles, w.Slug+"-"+slug(c.Name)+".pprof"))
	}
	var out, problems bytes.Buffer
	cmd := exec.CommandContext(ctx, self, args...)
	cmd.Stdout, cmd.Stderr = &out, &problems
	if err := cmd.Run(); err != nil {
		return result{}, fmt.Errorf("%w: %s", err, problems.Bytes())
	}
	var r result
	err = json.Unmarshal(out.Bytes(), &r)
	return r, err
}
