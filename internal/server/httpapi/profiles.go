package httpapi

import (
	"io"
	"net/http"
	"runtime/pprof"
	"runtime/trace"
	"strconv"
	"sync"
	"time"
)

const (
	// maxProfileSeconds is the longest time that a profile may take.
	maxProfileSeconds = 60
	// cpuSeconds and traceSeconds are the times of requests without seconds. They are those of net/http/pprof.
	cpuSeconds, traceSeconds = 30, 1
)

// profiles serves the profiles of the process, in the formats of go tool pprof and go tool trace.
//
// Package net/http/pprof has no bound on the number and the length of profiles, shows the arguments
// of the process, which may have a password, and adds its routes to http.DefaultServeMux of the
// whole program.
type profiles struct {
	recordings chan struct{} // an element while a recording is made, which takes seconds
	snapshots  chan struct{} // an element while a snapshot is written
	closed     chan struct{}
	close      func()
}

func newProfiles() profiles {
	p := profiles{recordings: make(chan struct{}, 1), snapshots: make(chan struct{}, 1), closed: make(chan struct{})}
	p.close = sync.OnceFunc(func() { close(p.closed) })
	return p
}

// snapshotNames are the profiles that are written at once.
var snapshotNames = []string{"allocs", "goroutine", "heap"}

const profilesPath = "/debug/pprof/"

// profileIndex is the text at profilesPath.
const profileIndex = `allocs      memory allocated since the start
goroutine   stacks of all goroutines; ?debug=2 for people
heap        memory in use
profile     CPU, of ?seconds=30
trace       events of the scheduler, of ?seconds=1

go tool pprof http://127.0.0.1:8082/debug/pprof/heap
`

func (p *profiles) routes() map[string]func(http.ResponseWriter, *http.Request) *Problem {
	routes := map[string]func(http.ResponseWriter, *http.Request) *Problem{
		profilesPath:             static("text/plain; charset=utf-8", []byte(profileIndex)),
		profilesPath + "profile": p.recording(cpuSeconds, pprof.StartCPUProfile, pprof.StopCPUProfile),
		profilesPath + "trace":   p.recording(traceSeconds, trace.Start, trace.Stop),
	}
	for _, name := range snapshotNames {
		routes[profilesPath+name] = p.snapshot(name)
	}
	return routes
}

// snapshot writes a profile of the present.
func (p *profiles) snapshot(name string) func(http.ResponseWriter, *http.Request) *Problem {
	return func(w http.ResponseWriter, r *http.Request) *Problem {
		debug, problem := parameter(r, "debug", 0, 0, 2)
		if problem != nil {
			return problem
		}
		leave, problem := enter(p.snapshots)
		if problem != nil {
			return problem
		}
		defer leave()
		kind := "application/octet-stream"
		if debug > 0 {
			kind = "text/plain; charset=utf-8"
		}
		w.Header().Set("Content-Type", kind)
		if r.Method != http.MethodHead {
			_ = pprof.Lookup(name).WriteTo(w, debug)
		}
		return nil
	}
}

// recording writes a profile of the seconds that follow. It ends early with the request or the
// server.
func (p *profiles) recording(standard int, start func(io.Writer) error, stop func()) func(http.ResponseWriter, *http.Request) *Problem {
	return func(w http.ResponseWriter, r *http.Request) *Problem {
		seconds, problem := parameter(r, "seconds", standard, 1, maxProfileSeconds)
		if problem != nil {
			return problem
		}
		leave, problem := enter(p.recordings)
		if problem != nil {
			return problem
		}
		defer leave()
		w.Header().Set("Content-Type", "application/octet-stream")
		if r.Method == http.MethodHead {
			return nil
		}
		length := time.Duration(seconds) * time.Second
		extendDeadlines(w, length)
		if start(w) != nil { // the program that the server is a part of makes one
			return busy()
		}
		defer stop()
		timer := time.NewTimer(length)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-r.Context().Done():
		case <-p.closed:
		}
		return nil
	}
}

// extendDeadlines gives a response more time than others have. Responses without deadlines, in
// tests, are none the worse.
func extendDeadlines(w http.ResponseWriter, more time.Duration) {
	c, now := http.NewResponseController(w), time.Now()
	_ = c.SetReadDeadline(now.Add(more + readTimeout))
	_ = c.SetWriteDeadline(now.Add(more + writeTimeout))
}

// parameter reads the one parameter that a profile has. Requests that a browser sends for a page of
// another site are refused: a profile costs the server time.
func parameter(r *http.Request, name string, standard, least, most int) (int, *Problem) {
	if site := r.Header.Get("Sec-Fetch-Site"); site == "cross-site" || site == "same-site" {
		p := refuse("Sec-Fetch-Site", site, "none, or same-origin")
		p.Status = http.StatusForbidden
		return 0, p
	}
	n, accepted := standard, "a whole number from "+strconv.Itoa(least)+" to "+strconv.Itoa(most)
	for other, values := range r.URL.Query() {
		if other != name {
			return 0, refuse("parameter "+shown(other), values[0], name)
		}
		var err error
		if n, err = strconv.Atoi(values[0]); err != nil || len(values) > 1 || n < least || n > most {
			return 0, refuse(name, values[0], accepted)
		}
	}
	return n, nil
}

// busy is the response to a request for a profile while another is made.
func busy() *Problem {
	return &Problem{Status: http.StatusServiceUnavailable, Detail: "another profile is being made; try again"}
}

// enter takes the one place for a profile of a kind.
func enter(places chan struct{}) (leave func(), problem *Problem) {
	select {
	case places <- struct{}{}:
		return func() { <-places }, nil
	default:
		return nil, busy()
	}
}
