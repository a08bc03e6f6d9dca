package resp

import (
	"bytes"
	"fmt"

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
