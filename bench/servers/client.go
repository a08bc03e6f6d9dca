package servers

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"time"
)

// call sends one command and returns its reply, flattened: the elements of an array, or one value.
func call(address string, words ...string) ([]string, error) {
	c, err := net.DialTimeout("tcp", address, time.Second)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	if err := c.SetDeadline(time.Now().Add(5 * time.Second)); err != nil {
		return nil, err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "*%d\r\n", len(words))
	for _, w := range words {
		fmt.Fprintf(&b, "$%d\r\n%s\r\n", len(w), w)
	}
	if _, err := io.WriteString(c, b.String()); err != nil {
		return nil, err
	}
	return reply(bufio.NewReader(c))
}

// mostElements bounds the array that reply accepts, mostBytes the string.
const mostElements, mostBytes = 64, 1 << 16

func reply(r *bufio.Reader) ([]string, error) {
	line, err := r.ReadString('\n')
	if err != nil {
		return nil, err
	}
	line = strings.TrimRight(line, "\r\n")
	if line == "" {
		return nil, fmt.Errorf("reply is an empty line; accepted: one of the Redis protocol")
	}
	mark, rest := line[0], line[1:]
	switch mark {
	case '-':
		return nil, fmt.Errorf("the server answered: %s", rest)
	case '*', '$':
		return nested(r, mark, rest)
	}
	return []string{rest}, nil
}

func nested(r *bufio.Reader, mark byte, rest string) ([]string, error) {
	n, err := strconv.Atoi(rest)
	if err != nil || n < 0 || mark == '*' && n > mostElements || n > mostBytes {
		return nil, fmt.Errorf("length in a reply is %q; accepted: 0 to %d elements or %d bytes", rest, mostElements, mostBytes)
	}
	if mark == '$' {
		b := make([]byte, n+2)
		_, err := io.ReadFull(r, b)
		return []string{string(b[:n])}, err
	}
	var all []string
	for range n {
		one, err := reply(r)
		if err != nil {
			return nil, err
		}
		all = append(all, one...)
	}
	return all, nil
}
