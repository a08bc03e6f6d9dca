package httplimit_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/weirlimit/weir"
	"github.com/weirlimit/weir/admission"
	"github.com/weirlimit/weir/httplimit"
)

// charges are what a Charge function was told, one after the other.
type charges struct {
	mu   sync.Mutex
	seen []admission.Response
	done chan struct{}
}

func (c *charges) charge(_ *http.Request, r admission.Response) int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.seen = append(c.seen, r)
	if c.done != nil {
		close(c.done)
	}
	return 1
}

func (c *charges) limit(t *testing.T, next http.HandlerFunc) http.Handler {
	t.Helper()
	return limit(t, newLimiter(t, "1000/1h", weir.WithName("work")), httplimit.Options{Charge: c.charge}, next)
}

var answers = []struct {
	name   string
	answer http.HandlerFunc
	status int
	bytes  int64
}{
	{"nothing", func(http.ResponseWriter, *http.Request) {}, 200, 0},
	{"only a body", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "12345") }, 200, 5},
	{"a text", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "123")
		_, _ = io.WriteString(w, "45")
	}, 200, 5},
	{"a status", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNotFound) }, 404, 0},
	{"both", func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusInternalServerError)
		fmt.Fprint(w, "no")
	}, 500, 2},
	{"a status too late", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, "12")
		w.WriteHeader(http.StatusInternalServerError)
	}, 200, 2},
	{"two statuses", func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusCreated)
		w.WriteHeader(http.StatusInternalServerError)
	}, 201, 0},
	{"a flush", func(w http.ResponseWriter, _ *http.Request) {
		w.(http.Flusher).Flush()
		w.WriteHeader(http.StatusInternalServerError)
	}, 200, 0},
	{"a flush by its controller", func(w http.ResponseWriter, _ *http.Request) {
		_ = http.NewResponseController(w).Flush()
		w.WriteHeader(http.StatusInternalServerError)
	}, 200, 0},
	{"hints first", func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusEarlyHints)
		w.WriteHeader(http.StatusNotFound)
	}, 404, 0},
	{"hints only", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusEarlyHints) }, 200, 0},
	{"a copy", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.Copy(w, strings.NewReader("12345")) }, 200, 5},
	{"a copy after a status", func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusPartialContent)
		_, _ = io.CopyN(w, neverEnds{}, 1<<17)
	}, 206, 1 << 17},
	{"not modified", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNotModified) }, 304, 0},
}

type neverEnds struct{}

func (neverEnds) Read(b []byte) (int, error) { return len(b), nil }

func TestChargeIsToldOfTheAnswer(t *testing.T) {
	for _, a := range answers {
		t.Run(a.name, func(t *testing.T) {
			c := charges{done: make(chan struct{})}
			url := serve(t, c.limit(t, func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("X-Work", "7")
				a.answer(w, r)
			}))
			got := get(t, url)
			<-c.done
			if seen := c.seen[0]; seen.Status != a.status || seen.Bytes != a.bytes || seen.Header.Get("X-Work") != "7" || got.status != a.status {
				t.Errorf("seen %d with %d bytes, want %d with %d; the client saw %d", seen.Status, seen.Bytes, a.status, a.bytes, got.status)
			}
		})
	}
}

func TestHeadHasNoBytes(t *testing.T) {
	var c charges
	if one(c.limit(t, ok), http.MethodHead, nil); len(c.seen) != 1 || c.seen[0].Bytes != 0 || c.seen[0].Status != 200 {
		t.Errorf("seen %+v", c.seen)
	}
}

// A handler that panics has failed, whatever it had begun to say, and its panic goes on.
func TestPanicsAreFailures(t *testing.T) {
	for _, value := range []any{"boom", http.ErrAbortHandler} {
		for _, begins := range []bool{false, true} {
			var c charges
			h := c.limit(t, func(w http.ResponseWriter, r *http.Request) {
				if begins {
					ok(w, r)
				}
				panic(value)
			})
			func() {
				defer func() {
					if got := recover(); got != value {
						t.Errorf("recovered %v, want %v", got, value)
					}
				}()
				one(h, http.MethodGet, nil)
			}()
			if len(c.seen) != 1 || c.seen[0].Status != 500 {
				t.Errorf("%v, begun %v: seen %+v", value, begins, c.seen)
			}
		}
	}
}

// Of logins, those that fail count.
func TestFailures(t *testing.T) {
	l := newLimiter(t, "3/1h", weir.WithName("logins"))
	url := serve(t, limit(t, l, httplimit.Options{Name: "logins", Charge: admission.Failures}, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("password") != "right" {
			http.Error(w, "no", http.StatusUnauthorized)
		}
	})))
	wantStatus(t, url+"?password=right", 200, 200, 200, 200, 200)
	wantStatus(t, url, 401, 401)
	wantStatus(t, url+"?password=right", 200, 200)
	wantStatus(t, url, 401, 429)
	wantStatus(t, url+"?password=right", 429)
}

// While answers are out, no more requests are let in than the limit has room for.
func TestFailuresInParallel(t *testing.T) {
	const room, clients = 5, 40
	l := newLimiter(t, strconv.Itoa(room)+"/1h", weir.WithName("logins"))
	var entered sync.WaitGroup
	entered.Add(room)
	fail := make(chan struct{})
	h := limit(t, l, httplimit.Options{Charge: admission.Failures}, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		entered.Done() // panics if there are more
		<-fail
		w.WriteHeader(http.StatusUnauthorized)
	}))
	statuses := make(chan int, clients)
	for range clients {
		go func() {
			w := httptest.NewRecorder()
			h.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/login", nil))
			statuses <- w.Code
		}()
	}
	entered.Wait()
	for range clients - room {
		if status := <-statuses; status != 429 {
			t.Errorf("status %d while %d are out", status, room)
		}
	}
	close(fail)
	for range room {
		if status := <-statuses; status != 401 {
			t.Errorf("status %d", status)
		}
	}
}

func TestSize(t *testing.T) {
	l := newLimiter(t, "1000/1h", weir.WithName("bytes"))
	h := limit(t, l, httplimit.Options{Name: "bytes", Charge: admission.Size}, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write(make([]byte, 700))
	}))
	var statuses []int
	for range 3 {
		got := one(h, http.MethodGet, nil)
		statuses = append(statuses, got.status)
	}
	if want := []int{200, 200, 429}; !slices.Equal(statuses, want) { // the second owes 400
		t.Errorf("answers %v, want %v", statuses, want)
	}
}

// What a ResponseWriter can do it can do also while it is watched.
func TestWatchedWriterCanWhatItCould(t *testing.T) {
	var c charges
	var lacks []string
	url := serve(t, c.limit(t, func(w http.ResponseWriter, _ *http.Request) {
		if _, can := w.(http.Flusher); !can {
			lacks = append(lacks, "Flusher")
		}
		if _, can := w.(http.Hijacker); !can {
			lacks = append(lacks, "Hijacker")
		}
		if _, can := w.(io.ReaderFrom); !can {
			lacks = append(lacks, "ReaderFrom")
		}
		if err := http.NewResponseController(w).EnableFullDuplex(); err != nil {
			lacks = append(lacks, err.Error())
		}
	}))
	if get(t, url); lacks != nil {
		t.Errorf("it lacks %q", lacks)
	}
	one(c.limit(t, func(w http.ResponseWriter, _ *http.Request) {
		if _, can := w.(http.Hijacker); can {
			t.Error("a recorder can't be hijacked, and now it can")
		}
	}), http.MethodGet, nil)
}

// A connection that is taken over counts as one that has switched protocols, whatever is between the server and the middleware. It counts when its handler returns.
func TestHijack(t *testing.T) {
	for name, wrap := range outside {
		t.Run(name, func(t *testing.T) {
			if name == "terse" {
				t.Skip("it can't be hijacked")
			}
			testHijack(t, wrap)
		})
	}
}

func testHijack(t *testing.T, wrap func(http.ResponseWriter) http.ResponseWriter) {
	c := charges{done: make(chan struct{})}
	url := serve(t, outsideOf(wrap, c.limit(t, func(w http.ResponseWriter, _ *http.Request) {
		conn, buffered, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		_, _ = buffered.WriteString("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
		_ = buffered.Flush()
		line, _ := buffered.ReadString('\n')
		_, _ = conn.Write([]byte(line))
	})))
	conn, err := net.Dial("tcp", strings.TrimPrefix(url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprint(conn, "GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
	in := bufio.NewReader(conn)
	response, err := http.ReadResponse(in, nil)
	if err != nil || response.StatusCode != http.StatusSwitchingProtocols {
		t.Fatal(response, err)
	}
	fmt.Fprint(conn, "hello\n")
	if line, err := in.ReadString('\n'); line != "hello\n" {
		t.Errorf("read %q, %v", line, err)
	}
	if <-c.done; c.seen[0].Status != 101 {
		t.Errorf("seen %+v", c.seen)
	}
}
