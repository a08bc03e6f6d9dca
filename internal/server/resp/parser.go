package resp

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/weirlimit/weir/internal/server/guard"
)

// maxDigits bounds the numbers of the protocol, such as the length of an argument.
const maxDigits = 9

// A parser finds commands in a buffer of what was received, in place: the arguments that it returns are
// slices of the buffer. It keeps no state, so that what it finds does not depend on how the input arrived.
type parser struct {
	maxCommand int // bytes of a command, with all that the protocol puts around it
	maxInline  int // bytes of a command that is a line of words
	maxArgs    int
}

// A protocolError is what is said to a client before its connection is closed.
type protocolError string

func (e protocolError) Error() string { return "Protocol error: " + string(e) }

// errTLS is the error for the first bytes of a TLS client.
const errTLS = protocolError("this port does not speak TLS")

// next finds the command at the start of buf and appends its arguments to args.
//
// It returns how many bytes the command takes: 0 if buf does not hold all of it, and need is then a length of buf
// below which asking again is of no use. A command of no arguments is to be ignored. After an error the rest of
// the input can't be made sense of.
func (p *parser) next(buf []byte, args [][]byte) (found [][]byte, size, need int, err error) {
	if len(buf) == 0 {
		return args, 0, 1, nil
	}
	if buf[0] != '*' {
		return p.inline(buf, args)
	}
	if len(buf) > 1 && buf[1] == '-' {
		return p.negative(buf, args)
	}
	count, i, ok := header(buf, 1)
	switch {
	case !ok || count > p.maxArgs:
		return args, 0, 0, protocolError("invalid multibulk length")
	case i == 0:
		return args, 0, len(buf) + 1, nil
	}
	for range count {
		arg, end, need, err := p.bulk(buf, i)
		if end == 0 {
			return args, 0, need, err
		}
		args = append(args, arg)
		i = end
	}
	return args, i, 0, nil
}

// bulk returns the argument at i and where the next one begins, or 0.
func (p *parser) bulk(buf []byte, i int) (arg []byte, next, need int, err error) {
	if i == len(buf) {
		return nil, 0, i + 1, nil
	}
	if buf[i] != '$' {
		return nil, 0, 0, protocolError(fmt.Sprintf("expected '$', got %q", buf[i]))
	}
	n, start, ok := header(buf, i+1)
	switch {
	case !ok:
		return nil, 0, 0, protocolError("invalid bulk length")
	case start == 0:
		return nil, 0, len(buf) + 1, nil
	case n > p.maxCommand-start-2:
		return nil, 0, 0, protocolError(fmt.Sprintf("invalid bulk length: a command may have %d bytes", p.maxCommand))
	}
	end := start + n
	if len(buf) < end+2 {
		return nil, 0, end + 2, nil
	}
	if buf[end] != '\r' || buf[end+1] != '\n' {
		return nil, 0, 0, protocolError("expected CRLF after bulk")
	}
	return buf[start:end:end], end + 2, 0, nil
}

// negative passes over an array of a negative length, which stands for no command.
func (p *parser) negative(buf []byte, args [][]byte) (found [][]byte, size, need int, err error) {
	_, i, ok := header(buf, 2)
	switch {
	case !ok:
		return args, 0, 0, protocolError("invalid multibulk length")
	case i == 0:
		return args, 0, len(buf) + 1, nil
	}
	return args, i, 0, nil
}

// header reads a number and the end of its line, and returns where the next line begins: 0 if that is not
// in buf yet.
func header(buf []byte, i int) (n, next int, ok bool) {
	first := i
	for ; i < len(buf); i++ {
		if digit := buf[i] - '0'; digit <= 9 {
			if i-first == maxDigits {
				return 0, 0, false
			}
			n = n*10 + int(digit)
			continue
		}
		if buf[i] != '\r' || i == first {
			return 0, 0, false
		}
		if i+1 == len(buf) {
			return 0, 0, true
		}
		return n, i + 2, buf[i+1] == '\n'
	}
	return 0, 0, true
}

// inline reads a command that is a line of words, as people type it.
func (p *parser) inline(buf []byte, args [][]byte) (found [][]byte, size, need int, err error) {
	if guard.IsTLS(buf) {
		return args, 0, 0, errTLS
	}
	line := buf[:min(len(buf), p.maxInline)]
	end := bytes.IndexByte(line, '\n')
	switch {
	case end >= 0:
	case len(line) == p.maxInline:
		return args, 0, 0, protocolError("too big inline request")
	default:
		return args, 0, len(buf) + 1, nil
	}
	args, ok := words(bytes.TrimSuffix(line[:end], []byte{'\r'}), args, p.maxArgs)
	if !ok {
		return args, 0, 0, protocolError("unbalanced quotes in request, or too many words")
	}
	return args, end + 1, 0, nil
}

// words splits a line at spaces and appends the words to args, at most limit in all. A word may be in quotes: in double
// quotes with the escapes \n \r \t \b \a \xHH, in single ones with \'. Escapes are undone in place.
// It returns false for quotes that do not end, or that end in the middle of a word.
func words(line []byte, args [][]byte, limit int) ([][]byte, bool) {
	for i := 0; ; {
		for i < len(line) && isSpace(line[i]) {
			i++
		}
		if i == len(line) {
			return args, true
		}
		if len(args) == limit {
			return args, false
		}
		word, end, ok := word(line, i)
		if !ok {
			return args, false
		}
		args = append(args, word)
		i = end
	}
}

// word reads the word at i, which may begin and end with parts in quotes.
func word(line []byte, i int) (w []byte, end int, ok bool) {
	start, out := i, i // what was read is kept at line[start:out], and out ≤ i
	for i < len(line) && !isSpace(line[i]) {
		if quote := line[i]; quote == '"' || quote == '\'' {
			if out, i, ok = quoted(line, out, i+1, quote); !ok {
				return nil, 0, false
			}
			break
		}
		line[out] = line[i]
		out, i = out+1, i+1
	}
	return line[start:out:out], i, true
}

// quoted moves what is between the quotes to out. After the closing quote the word must end.
func quoted(line []byte, out, i int, quote byte) (outEnd, end int, ok bool) {
	for i < len(line) && line[i] != quote {
		c, size := line[i], 1
		if c == '\\' && i+1 < len(line) {
			c, size = escape(line[i+1:], quote)
		}
		line[out] = c
		out, i = out+1, i+size
	}
	if i == len(line) {
		return 0, 0, false
	}
	i++
	return out, i, i == len(line) || isSpace(line[i])
}

// escape returns what stands for the text after a backslash, and how long it is with the backslash.
func escape(text []byte, quote byte) (c byte, size int) {
	if quote == '\'' {
		if text[0] == '\'' {
			return '\'', 2
		}
		return '\\', 1
	}
	if text[0] == 'x' && len(text) > 2 {
		if hi, lo := hex(text[1]), hex(text[2]); hi < 16 && lo < 16 {
			return hi<<4 | lo, 4
		}
	}
	switch text[0] {
	case 'n':
		return '\n', 2
	case 'r':
		return '\r', 2
	case 't':
		return '\t', 2
	case 'b':
		return '\b', 2
	case 'a':
		return '\a', 2
	}
	return text[0], 2
}

// hex returns the value of a hexadecimal digit, and 16 or more for any other byte.
func hex(c byte) byte {
	switch {
	case '0' <= c && c <= '9':
		return c - '0'
	case 'a' <= c|0x20 && c|0x20 <= 'f':
		return c | 0x20 - 'a' + 10
	}
	return 16
}

func isSpace(c byte) bool { return c == ' ' || '\t' <= c && c <= '\r' || c == 0 }

// httpMethods are the methods of a request line without a version, as in HTTP/0.9.
var httpMethods = []string{"CONNECT", "DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "PUT", "TRACE"}

// isHTTP reports whether the words of a line belong to the head of an HTTP request. A web page can
// make a browser send one here, with commands in its body. The connection is closed before they are
// read.
func (c *conn) isHTTP(words [][]byte) bool {
	switch {
	case len(words) == 0:
		return false
	case c.is(words[0], "POST"), c.is(words[0], "HOST:"):
		return true
	case len(words) == 3 && bytes.HasPrefix(words[2], []byte("HTTP/")):
		return true
	case len(words) == 2 && bytes.HasPrefix(words[1], []byte("/")):
		return slices.Contains(httpMethods, string(c.upper(words[0])))
	}
	return false
}
