package resp

import (
	"math"
	"net"
	"strings"
	"testing"
	"time"
)

// far is a connection between addresses as long as they get.
type far struct{ script }

func (*far) RemoteAddr() net.Addr {
	return &net.TCPAddr{IP: net.ParseIP("ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"), Port: 65535, Zone: "an-interface-15"}
}

func (f *far) LocalAddr() net.Addr { return f.RemoteAddr() }

func TestLongestDescriptionIsWithinItsBound(t *testing.T) {
	long := strings.Repeat("x", mostAbout)
	c := newConn(newTestServer(), &far{}, math.MaxInt64)
	c.about.Store(&about{long, long, long, long, true})
	c.shown[0].Store(math.MaxInt64)
	if line := c.describe(c.created.Add(math.MaxInt64), math.MaxInt64); len(line) > mostDescription {
		t.Errorf("a description has %d bytes, and room was made for %d:\n%s", len(line), mostDescription, line)
	}
}

func TestIdleTimeIsThatSinceTheLastCommand(t *testing.T) {
	c := newConn(newTestServer(), &script{}, 1)
	later := c.created.Add(7 * time.Second)
	if idle := c.idle(later); idle != 7*time.Second {
		t.Errorf("idle for %v after 7s without a command", idle)
	}
	c.feed([]byte("PING\r\n"))
	if idle := c.idle(later); idle != 0 {
		t.Errorf("idle for %v after a command", idle)
	}
}
