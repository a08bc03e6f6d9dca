package resp

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/weirlimit/weir/internal/server/limiters"
	"github.com/weirlimit/weir/internal/server/operation"
	"github.com/weirlimit/weir/store/memory"
)

// A script is a connection whose client sends what it says, in pieces, and takes every reply.
type script struct {
	pieces  [][]byte
	replies bytes.Buffer
}

func (s *script) Read(b []byte) (int, error) {
	if len(s.pieces) == 0 {
		return 0, io.EOF
	}
	n := copy(b, s.pieces[0])
	if s.pieces[0] = s.pieces[0][n:]; len(s.pieces[0]) == 0 {
		s.pieces = s.pieces[1:]
	}
	return n, nil
}

func (s *script) Write(b []byte) (int, error)      { return s.replies.Write(b) }
func (s *script) Close() error                     { return nil }
func (s *script) LocalAddr() net.Addr              { return &net.TCPAddr{} }
func (s *script) RemoteAddr() net.Addr             { return &net.TCPAddr{} }
func (s *script) SetDeadline(time.Time) error      { return nil }
func (s *script) SetReadDeadline(time.Time) error  { return nil }
func (s *script) SetWriteDeadline(time.Time) error { return nil }

func newTestServer() *Server {
	return New(Options{Service: &operation.Service{Limiters: limiters.New(memory.New(memory.Options{MaxKeys: 1000})), TrustClientTime: true}})
}

func pipeline(n int, command string) []byte {
	var b bytes.Buffer
	for i := range n {
		words := strings.Split(strings.ReplaceAll(command, "#", fmt.Sprintf("%012d", i)), "|")
		fmt.Fprintf(&b, "*%d\r\n", len(words))
		for _, w := range words {
			fmt.Fprintf(&b, "$%d\r\n%s\r\n", len(w), w)
		}
	}
	return b.Bytes()
}

// hotCommands are those that programs send all the time.
var hotCommands = map[string]string{
	"TAKE":        "WEIR.TAKE|key:#|100/1m",
	"TAKE AT":     "WEIR.TAKE|key:#|100/1m|COST|2|AT|1700000000000000",
	"PEEK":        "WEIR.PEEK|key:#|100/1m",
	"CL.THROTTLE": "CL.THROTTLE|key:#|15|30|60",
	"THROTTLE":    "THROTTLE|key:#|15|30|60|1",
	"RL.REDUCE":   "RL.REDUCE|key:#|15|60",
	"PING":        "PING",
}

func TestHotCommandsAllocateNothing(t *testing.T) {
	for name, command := range hotCommands {
		client := &script{}
		c, input := newConn(newTestServer(), client, 1), pipeline(64, command)
		round := func() {
			c.in = append(c.in[:0], input...)
			c.start, c.end = 0, len(input)
			c.run()
			c.publish()
			client.replies.Reset()
			c.flush()
		}
		round() // the keys are stored, and buffers take their size
		if n := testing.AllocsPerRun(100, round); n != 0 {
			t.Errorf("64 of %s allocate %v times", name, n)
		}
		if c.counts.Errors != 0 {
			t.Errorf("%s ends with errors", name)
		}
	}
}

// receive takes a piece of input as serve does, and returns the largest that the buffer was.
func (c *conn) receive(piece []byte) (most int) {
	client := &script{pieces: [][]byte{piece}}
	c.net = client
	for len(client.pieces) > 0 && !c.closing {
		if c.makeRoom(); !c.closing {
			n, _ := c.net.Read(c.in[c.end:])
			c.end += n
			most = max(most, len(c.in))
			c.run()
		}
	}
	return most
}

// told returns the replies to the last piece, written or not.
func (c *conn) told() string { return c.net.(*script).replies.String() + string(c.out.buf) }

func TestBuffersGoBackToTheirUsualSize(t *testing.T) {
	s := newTestServer()
	c, long := newConn(s, nil, 1), pipeline(1, "ECHO|"+strings.Repeat("x", 200_000))
	most := max(c.receive(long[:100]), c.receive(long[100:150_000]))
	if held := s.buffered.Load(); held != int64(most-usualInput) || most > 2*150_000 {
		t.Errorf("for 150,000 bytes of a command the buffer grew to %d, and %d was accounted for", most, held)
	}
	c.receive(long[150_000:])
	c.flush()
	c.receive([]byte("PING\r\n"))
	c.flush()
	if len(c.in) > usualInput || cap(c.out.buf) > usualOutput || s.buffered.Load() != 0 {
		t.Errorf("afterwards: %d bytes for input, %d for output, %d accounted for", len(c.in), cap(c.out.buf), s.buffered.Load())
	}
}

func TestLongCommandsOfAllClientsAreBounded(t *testing.T) {
	s := newTestServer()
	s.options.MaxBuffered = 95_000 // a long command and its reply, or two of them
	first, second := newConn(s, nil, 1), newConn(s, nil, 2)
	text := strings.Repeat("x", 60_000)
	long := pipeline(1, "ECHO|"+text)
	first.receive(long[:50_000])
	second.receive(long)
	if want := "-ERR too many long commands are arriving at once, try again\r\n"; !second.closing || second.told() != want {
		t.Errorf("second long command: closing %v, %.80q", second.closing, second.told())
	}
	second.close()
	first.receive(long[50_000:])
	if !strings.Contains(first.told(), text) {
		t.Errorf("first long command: %.80q", first.told())
	}
	first.close()
	third := newConn(s, nil, 3)
	if third.receive(long); !strings.Contains(third.told(), text) {
		t.Errorf("a long command after that: %.80q", third.told())
	}
}

// FuzzServe sends arbitrary bytes to a connection, and checks that it makes a reply of each command, in the
// form of the protocol, and the same whether the bytes come as one piece or as two.
func FuzzServe(f *testing.F) {
	for _, line := range []string{
		`WEIR.TAKE k "5/1h" COST 2 AT 1700000000000000`, `WEIR.REFUND k "5/1h"`, `WEIR.RESET k 5/1h`, `CL.THROTTLE k 1 2 3 4`,
		`THROTTLE k 9 9 9`, `RL.REDUCE k 5 60 REFILL 2 TAKE 3`, `RL.PGET k 5 60`, `HELLO 3 SETNAME y`, `HELLO 3 AUTH default x`, `GET / HTTP/1.1`,
		`CLIENT REPLY OFF`, `CLIENT LIST`, `CLIENT SETINFO LIB-NAME x`, `COMMAND INFO ping x`, `COMMAND DOCS`, `INFO stats`,
		`CONFIG GET *`, `RESET`, `MULTI`, `WEIR.RENEW k "concurrent 2 lease=1h" END 1700000000000000 TIME`, `WEIR.TAKE k "9/month tz=Europe/Berlin anchor=31" NAME n`,
		`WEIR.RESERVE k "5/1h" ID 7 LIFE 1000000 COST 2 NAME n`, `WEIR.COMMIT k "6/1h" ID 7 COST 9 NAME n NS`,
		`WEIR.TAKEALL k 5/1h ID 7 LIFE 1 NAME n AND l 6/1h COST 2 TIME`, `WEIR.TAKEALL k 5/1h AND l 1/1h COST 2 TIME`, `EXEC`, `SELECT 0`, `PING "\x00"`, `QUIT`,
	} {
		f.Add([]byte(line+"\r\n"+line+"\r\nWEIR.TAKE k 3/1h\r\n"), uint16(7))
		f.Add(pipeline(2, strings.ReplaceAll(line, " ", "|")), uint16(20))
	}
	f.Fuzz(func(t *testing.T, input []byte, cut uint16) {
		whole := replay(newTestServer(), bytes.Clone(input))
		at := min(int(cut), len(input))
		parts := replay(newTestServer(), bytes.Clone(input[:at]), bytes.Clone(input[at:]))
		w, err := kinds(whole)
		if err != nil {
			t.Fatalf("%q is answered with %q: %v", input, whole, err)
		}
		if p, err := kinds(parts); err != nil || p != w {
			t.Errorf("%q is answered with %q, cut at %d with %q, %v", input, whole, at, parts, err)
		}
	})
}

func replay(s *Server, pieces ...[]byte) []byte {
	client := &script{pieces: pieces}
	newConn(s, client, 1).serve()
	return client.replies.Bytes()
}

// kinds returns what kind each reply is, one letter for each of its parts. The rest may depend on the time of day.
func kinds(replies []byte) (list string, err error) {
	for len(replies) > 0 {
		line, rest, ok := bytes.Cut(replies, []byte("\r\n"))
		if !ok || len(line) == 0 {
			return list, fmt.Errorf("a reply does not end: %q", replies)
		}
		list += string(line[:1])
		if replies = rest; line[0] == '$' || line[0] == '=' {
			n := 0
			if _, err := fmt.Sscan(string(line[1:]), &n); err != nil || n >= 0 && n > len(rest)-2 {
				return list, fmt.Errorf("a reply has a wrong length: %q", line)
			}
			if n >= 0 {
				replies = rest[n+2:]
			}
		} else if !strings.ContainsRune("+-:*%~_", rune(line[0])) {
			return list, fmt.Errorf("a reply is of no kind: %q", line)
		}
	}
	return list, nil
}
