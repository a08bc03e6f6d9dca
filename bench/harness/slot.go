package harness

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/pprof"
	"strings"
	"time"
)

// A Slot is one measurement: a contender under a workload, in a process of its own, so that no
// contender meets the heap, the garbage or the cache of another.
type Slot struct {
	Contender, Workload string
	Time                time.Duration
	// Profile is the file for a CPU profile; "" for none.
	Profile string
	// Goroutines and Keys, Address (of the engine) and Fill (send one request for each key, and
	// measure nothing) are those of the engines.
	Goroutines, Keys int
	Address          string
	Fill             bool
}

// Slot returns a slot with the settings of its command. More names than the two are those of a
// profile alone.
func (s Settings) Slot(contender, workload string, more ...string) Slot {
	slot := Slot{Contender: contender, Workload: workload, Time: s.Time}
	if s.Profiles != "" {
		name := strings.Join(append([]string{workload, contender}, more...), "-")
		slot.Profile = filepath.Join(s.Profiles, slug(name)+".pprof")
	}
	return slot
}

// Spawn measures a slot in a process of its own, which is this program again, and decodes its
// result. The words go before the program, such as those of taskset.
func Spawn(ctx context.Context, command string, s Slot, result any, words ...string) error {
	text, err := json.Marshal(s)
	if err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	words = append(words, self, command, "-slot", string(text))
	var out, problem bytes.Buffer
	cmd := exec.CommandContext(ctx, words[0], words[1:]...)
	cmd.Stdout, cmd.Stderr = &out, &problem
	if err = cmd.Run(); err == nil {
		err = json.Unmarshal(out.Bytes(), result)
	}
	if err != nil {
		return fmt.Errorf("%s, %s: %w: %s", s.Contender, s.Workload, err, problem.Bytes())
	}
	return nil
}

// StartProfile begins to write the CPU profile of a slot, if it has one, and returns a function
// that ends it.
func (s Slot) StartProfile() (func(), error) {
	if s.Profile == "" {
		return func() {}, nil
	}
	f, err := os.Create(s.Profile)
	if err != nil {
		return nil, err
	}
	if err := pprof.StartCPUProfile(f); err != nil {
		return nil, err
	}
	return func() {
		pprof.StopCPUProfile()
		_ = f.Close()
	}, nil
}

// Rounds calls measure for each pair in each round. Within a round the contenders of one workload
// follow one another; each round starts with the next contender.
func Rounds[W, C any](rounds int, progress io.Writer, workloads []W, contenders []C, measure func(W, C) error) error {
	for round := range rounds {
		fmt.Fprintf(progress, "round %d of %d\n", round+1, rounds)
		for _, w := range workloads {
			for i := range contenders {
				if err := measure(w, contenders[(i+round)%len(contenders)]); err != nil {
					return err
				}
			}
		}
	}
	return nil
}
