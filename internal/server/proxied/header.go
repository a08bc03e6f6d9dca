package proxied

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/netip"

	"github.com/pires/go-proxyproto"

	"github.com/weirlimit/weir/internal/server/guard"
)

const (
	// maxLine is the length of the longest header of version 1, in bytes. That of version 2 is bounded by proxyproto.MaxV2HeaderSize.
	maxLine = 107
	// bufferSize is that of what is read together with a header, in bytes.
	bufferSize = 512
)

// line is what a header of version 1 begins with.
var line = []byte("PROXY ")

// unspecified is what a header of version 2 begins with that hands on a connection (PROXY, 1) of an unspecified family (UNSPEC, 0).
var unspecified = append(bytes.Clone(proxyproto.SIGV2), 0x21, 0x00)

var errNothing = errors.New("closed before anything came")

// read returns the connection after its header.
func read(c net.Conn) (net.Conn, error) {
	r := bufio.NewReaderSize(c, bufferSize)
	if err := fill(r); err != nil {
		return nil, err
	}
	from := c.RemoteAddr()
	silent, err := readUnspecified(r)
	if err != nil {
		return nil, err
	}
	if !silent {
		header, err := proxyproto.Read(r)
		if err != nil {
			return nil, err
		}
		from = client(header, from)
	}
	return &conn{Conn: c, rest: rest(r), client: from}, nil
}

// readUnspecified reads the header, if it is one of version 2 that hands on a connection and says nothing of it (PROXY, UNSPEC), as UNKNOWN does in version 1. The protocol leaves it to
// who receives that whether the connection is the proxy's then, or closed: here it is the proxy's, and with proxyproto it would be closed.
func readUnspecified(r *bufio.Reader) (bool, error) {
	for n := len(proxyproto.SIGV2); n <= len(unspecified); n++ {
		if r.Buffered() < len(proxyproto.SIGV2) {
			return false, nil // of version 1
		}
		if got, err := r.Peek(n); err != nil || !bytes.HasPrefix(unspecified, got) {
			return false, nil //nolint:nilerr // proxyproto meets it again
		}
	}
	head, err := r.Peek(len(unspecified) + 2)
	if err != nil {
		return false, err
	}
	length := binary.BigEndian.Uint16(head[len(unspecified):])
	if length > proxyproto.MaxV2HeaderSize {
		return false, proxyproto.ErrInvalidLength
	}
	_, err = r.Discard(len(head) + int(length))
	return true, err
}

// fill waits until there is no doubt what begins, so that who brings no header need not bring more to learn it. It waits for the whole of a header of version 1, because proxyproto
// refuses those that come in pieces, as a network may deliver them.
func fill(r *bufio.Reader) error {
	for n := 1; n <= maxLine; n = r.Buffered() + 1 {
		got, err := r.Peek(n)
		switch {
		case err == io.EOF && len(got) == 0:
			return errNothing
		case err != nil:
			return err
		}
		got, _ = r.Peek(r.Buffered()) // what is there can be peeked at
		switch {
		case bytes.HasPrefix(got, proxyproto.SIGV2):
			return nil
		case bytes.HasPrefix(got, line) && bytes.IndexByte(got, '\n') >= 0:
			return nil
		case !bytes.HasPrefix(got, line) && !bytes.HasPrefix(line, got) && !bytes.HasPrefix(proxyproto.SIGV2, got):
			return proxyproto.ErrNoProxyProtocol
		}
	}
	return nil // longer than any: proxyproto says so
}

// rest returns what was read beyond the header.
func rest(r *bufio.Reader) []byte {
	if r.Buffered() == 0 {
		return nil
	}
	b, _ := r.Peek(r.Buffered())
	return bytes.Clone(b)
}

// client returns the address that a header tells. A connection of the proxy's own, and one of which it says nothing or no address of IP, is the proxy's.
func client(h *proxyproto.Header, proxy net.Addr) net.Addr {
	ip, _, _ := h.IPs()
	port, _, _ := h.Ports()
	addr, ok := netip.AddrFromSlice(ip)
	if h.Command.IsLocal() || !ok {
		return proxy
	}
	return net.TCPAddrFromAddrPort(netip.AddrPortFrom(addr.Unmap(), uint16(port)))
}

// A conn is a connection after its header.
type conn struct {
	net.Conn
	rest   []byte // what came with the header, and is yet to be read
	client net.Addr
}

// RemoteAddr returns the address of the client.
func (c *conn) RemoteAddr() net.Addr { return c.client }

// Read reads what came after the header.
func (c *conn) Read(b []byte) (int, error) {
	if len(c.rest) == 0 {
		return c.Conn.Read(b)
	}
	n := copy(b, c.rest)
	if c.rest = c.rest[n:]; len(c.rest) == 0 {
		c.rest = nil
	}
	return n, nil
}

// CloseWrite ends what is sent, and goes on receiving.
func (c *conn) CloseWrite() error { return guard.CloseWrite(c.Conn) }
