package resp

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"weak"

	"pgregory.net/rapid"
)

// kept returns the bytes of a connection's buffers beyond the usual sizes.
func (c *conn) kept() int64 {
	return beyond(cap(c.in), usualInput) + beyond(cap(c.out.buf), usualOutput) + int64(cap(c.pending.queue))
}

// feed lets the connection read a client's input.
func (c *conn) feed(input ...[]byte) (open bool) {
	client := &script{pieces: input}
	c.net = client
	for len(client.pieces) > 0 {
		if c.closing || !c.round() {
			c.close()
			return false
		}
	}
	return true
}

func TestDroppedRepliesKeepNoMemory(t *testing.T) {
	text := strings.Repeat("x", 500_000)
	for name, input := range map[string][]string{
		"OFF":            {"CLIENT|REPLY|OFF", "ECHO|" + text, "PING"},
		"SKIP":           {"CLIENT|REPLY|SKIP", "ECHO|" + text},
		"SKIP and EXEC":  {"MULTI", "ECHO|" + text, "ECHO|" + text, "CLIENT|REPLY|SKIP", "EXEC"},
		"OFF and MULTI":  {"CLIENT|REPLY|OFF", "MULTI", "ECHO|" + text, "ECHO|" + text, "EXEC", "PING"},
		"replies before": {strings.Repeat("y", 100), "CLIENT|REPLY|OFF", "ECHO|" + text},
		"OFF and LIST":   {"CLIENT|REPLY|OFF", "CLIENT|LIST"},
		"SKIP and LIST":  {"CLIENT|REPLY|SKIP", "CLIENT|LIST"},
	} {
		s := newTestServer()
		for id := range int64(500) {
			s.conns[newConn(s, &script{}, id)] = struct{}{}
		}
		c := newConn(s, nil, 1000)
		for _, command := range input {
			c.feed(pipeline(1, command))
		}
		c.feed([]byte("\r\n")) // the buffer for input goes back before the next input
		if held := s.buffered.Load(); cap(c.out.buf) > usualOutput || c.kept() != 0 || held != 0 {
			t.Errorf("%s: %d bytes for replies, %d bytes beyond the usual, %d in the account", name, cap(c.out.buf), c.kept(), held)
		}
	}
}

// TestRepliesOfMutedTransactionStaySmall has replies without a reader within one
// command.
func TestRepliesOfMutedTransactionStaySmall(t *testing.T) {
	for _, waits := range []bool{false, true} {
		s := newTestServer()
		s.options.Waits = waits
		most := 0
		c := newConn(s, nil, 1)
		s.commands["ECHO"].run = func(c *conn) {
			c.out.bytes(c.args[1])
			most = max(most, cap(c.out.buf))
		}
		for range 2 {
			input := pipeline(1, "CLIENT|REPLY|OFF")
			input = append(append(input, pipeline(1, "MULTI")...), pipeline(300, "ECHO|"+strings.Repeat("x", 2000))...)
			c.feed(input, pipeline(1, "EXEC"))
		}
		if most > 2*usualOutput {
			t.Errorf("the replies of one EXEC that are dropped took %d bytes", most)
		}
	}
}

func TestBrokenTransactionKeepsNothing(t *testing.T) {
	s := newTestServer()
	c := newConn(s, nil, 1)
	c.feed(pipeline(1, "MULTI"), pipeline(1, "NONSENSE"), pipeline(100, "ECHO|"+strings.Repeat("x", 1000)))
	if held := s.buffered.Load(); held != 0 || c.pending.queue != nil {
		t.Errorf("%d bytes are in the account, and %d in the queue", held, cap(c.pending.queue))
	}
	if got := c.told(); !strings.HasSuffix(got, "+QUEUED\r\n") {
		t.Errorf("the reply is %q", got)
	}
}

// TestLongBuffersAreCollected measures memory outside the account that a
// connection might.
func TestLongBuffersAreCollected(t *testing.T) {
	s := newTestServer()
	c := newConn(s, nil, 1)
	var input, queue weak.Pointer[byte]
	s.commands["PING"].run = func(c *conn) { queue = weak.Make(&c.pending.queue[0]) }
	s.commands["ECHO"].run = func(c *conn) { input = weak.Make(&c.in[0]) }
	c.feed(pipeline(1, "ECHO|"+strings.Repeat("x", 500_000)))
	long := pipeline(1, "MULTI")
	long = append(append(long, pipeline(100, "PING|"+strings.Repeat("x", 3000))...), pipeline(1, "EXEC")...)
	c.feed(long)
	c.feed([]byte("\r\n"))
	c.net = nil
	runtime.GC()
	if input.Value() != nil || queue.Value() != nil {
		t.Errorf("alive are the long input: %v, the queue of the transaction: %v", input.Value() != nil, queue.Value() != nil)
	}
	runtime.KeepAlive(c)
}

// accountCommands are commands that keep memory, and commands that free memory.
func accountCommands(t *rapid.T) []byte {
	switch rapid.SampledFrom([]int{0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9}).Draw(t, "command") {
	case 0:
		return pipeline(1, "CLIENT|REPLY|"+rapid.SampledFrom([]string{"ON", "OFF", "SKIP", "NO"}).Draw(t, "replies"))
	case 1:
		return pipeline(1, "MULTI")
	case 2:
		return pipeline(1, rapid.SampledFrom([]string{"EXEC", "EXEC", "DISCARD", "RESET", "NONSENSE", "QUIT"}).Draw(t, "end"))
	case 3, 4:
		return pipeline(1, "ECHO|"+strings.Repeat("x", rapid.SampledFrom([]int{0, 10, 15_000, 30_000, 100_000}).Draw(t, "length")))
	case 5:
		return pipeline(1, "CLIENT|LIST")
	case 6:
		return pipeline(rapid.SampledFrom([]int{1, 2, 40}).Draw(t, "many"), "COMMAND|DOCS")
	case 7:
		return pipeline(rapid.SampledFrom([]int{1, 128, 500}).Draw(t, "many"), "WEIR.PEEK|#|5/1s")
	case 8:
		return pipeline(1, "PING"+strings.Repeat("|x", rapid.SampledFrom([]int{0, 1, 1000, mostArgs}).Draw(t, "words")))
	default:
		return []byte(rapid.SampledFrom([]string{"PING\r\n", "\r\n", "WEIR.TAKE k 1/1s\r\n", "*1\r\n+", "GET x"}).Draw(t, "line"))
	}
}

// TestAccountHoldsWhatIsKept checks after each read that the account has at least the bytes that
// the connections keep, stays within its bound, and is empty when they are closed.
func TestAccountHoldsWhatIsKept(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := newTestServer()
		s.options.MaxBuffered, s.options.Waits = 400_000, rapid.Bool().Draw(t, "waits")
		var open []*conn
		check := func(after string) {
			sum := int64(0)
			for _, c := range open {
				sum += c.kept()
			}
			if held := s.buffered.Load(); held < sum || held > s.options.MaxBuffered {
				t.Fatalf("after %s %d bytes are kept, and %d are in the account of at most %d", after, sum, held, s.options.MaxBuffered)
			}
		}
		for step := range rapid.SampledFrom([]int{5, 40, 100}).Draw(t, "steps") {
			i := rapid.SampledFrom([]int{0, 1, 2, 3}).Draw(t, "client")
			if i >= len(open) {
				open = append(open, newConn(s, &script{}, int64(step)))
				s.conns[open[len(open)-1]] = struct{}{}
				i = len(open) - 1
			}
			input := accountCommands(t)
			if cut := rapid.SampledFrom([]int{1 << 20, 1 << 20, 5, 30, len(input) / 2}).Draw(t, "cut"); cut < len(input) {
				input = input[:cut] // the rest never comes, or the next input replaces it
			}
			if !open[i].feed(input) {
				open = slices.Delete(open, i, i+1)
			}
			check(fmt.Sprintf("%.40q", input))
		}
		for _, c := range open {
			c.close()
		}
		if held := s.buffered.Load(); held != 0 {
			t.Fatalf("%d bytes are in the account when all are closed", held)
		}
	})
}

// TestIdleConnectionsThatAskedForListsBlockNobody has 330 connections without reads of their
// lists.
func TestIdleConnectionsThatAskedForListsBlockNobody(t *testing.T) {
	s := newTestServer()
	s.options.MaxBuffered = 256 << 20
	var all []*conn
	for id := range int64(330) {
		c := newConn(s, &script{}, id)
		s.conns[c] = struct{}{}
		all = append(all, c)
	}
	for _, c := range all {
		c.feed(pipeline(1, "CLIENT|REPLY|OFF"), pipeline(1, "CLIENT|LIST"))
	}
	honest := newConn(s, nil, 1000)
	honest.feed(pipeline(1, "MULTI"), pipeline(45, "PING|"+strings.Repeat("x", 20_000)), pipeline(1, "EXEC"))
	if got := honest.told(); strings.Contains(got, "-ERR") || strings.Count(got, "$20000\r\n") != 45 {
		t.Errorf("a transaction is answered %.100q; %d bytes are in the account", got, s.buffered.Load())
	}
}
