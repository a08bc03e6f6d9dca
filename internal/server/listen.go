package server

import (
	"context"
	"net"
	"net/netip"

	"github.com/weirlimit/weir/internal/server/guard"
	"github.com/weirlimit/weir/internal/server/handshake"
	"github.com/weirlimit/weir/internal/server/proxied"
)

// listen listens on the addresses of the protocols. A connection passes the header of the PROXY
// protocol, the TLS handshake, and then its protocol.
func (s *Server) listen(ctx context.Context) error {
	proxies, unix, err := networks("proxy-protocol-from", s.cfg.ProxyProtocolFrom)
	if err != nil {
		return err
	}
	for _, p := range s.protocols {
		l, err := s.listenAt(ctx, p)
		if err != nil {
			return err
		}
		log := s.cfg.Log.With("protocol", p.name)
		p.accepts = newAcceptor(l, log, nil)
		atOnce := handshakeBounds(openFiles())
		if p.direct {
			p.accepts.spares, atOnce = newSpares(), adminBounds(openFiles())
		}
		p.listener = p.accepts
		if (len(proxies) > 0 || unix) && !p.direct {
			p.proxied = proxied.Listen(p.listener, proxied.Options{From: proxies, Unix: unix, Log: log, Panics: s.panics})
			p.listener = p.proxied
		}
		if s.certified != nil && !p.isLocal(l) {
			p.shakes = guard.New(guard.Options{
				Protocol: p.name, Max: atOnce.total, MaxPerAddress: atOnce.perAddress, Log: s.cfg.Log, Panics: s.panics,
			})
			p.listener = handshake.Listen(p.listener, handshake.Options{
				Config: s.certified.Config(p.alpn...), Guard: p.shakes, Plain: p.plain, Panics: s.panics,
			})
		}
	}
	return nil
}

// isLocal reports whether no client beyond this machine can connect, so there is no TLS: at a Unix
// socket, and for the admin listener at loopback, where health checks and scrapers of this machine
// have no certificate.
func (p *protocol) isLocal(l net.Listener) bool {
	tcp, ok := l.Addr().(*net.TCPAddr)
	return !ok || p.direct && tcp.IP.IsLoopback()
}

// listenAt listens at the address of a protocol.
func (s *Server) listenAt(ctx context.Context, p *protocol) (l net.Listener, err error) {
	if isUnix(p.address) {
		l, err = listenUnix(ctx, p.address)
	} else {
		l, err = net.Listen(tcpNetwork(p.address), p.address) //nolint:noctx // there is nothing to wait for that a context could end
	}
	if err != nil {
		return nil, &ConfigError{Field: p.name, Value: p.address, Problem: why(err), Accept: AddressAccepted}
	}
	tcp, ok := l.Addr().(*net.TCPAddr)
	if !ok || tcp.IP.IsLoopback() {
		return l, nil
	}
	if err := s.cfg.exposed(p.name, p.address); err != nil {
		_ = l.Close()
		return nil, err
	}
	if lacks := s.cfg.lacks(); lacks != "" {
		s.cfg.Log.Warn("listening beyond this machine without "+lacks+": "+means(p.name, lacks), "protocol", p.name, "address", tcp.String())
	}
	return l, nil
}

// tcpNetwork returns the network of an address. An IPv4 address is one of IPv4 only: 0.0.0.0 would
// otherwise be all addresses of IPv6 too, which a firewall may not cover.
func tcpNetwork(address string) string {
	host, _, _ := net.SplitHostPort(address) // a valid address
	if addr, err := netip.ParseAddr(host); err == nil && addr.Is4() {
		return "tcp4"
	}
	return "tcp"
}

// means describes the possibilities of strangers at a protocol that lacks protection.
func means(protocol, lacks string) string {
	switch {
	case lacks == "TLS":
		return "everybody on the way can read and change requests, and read the secrets in them"
	case protocol == "admin":
		return "whoever can connect can read metrics, status and profiles, without a password"
	}
	return "whoever can connect can use and reset every key, without a password"
}

// handshakes returns the counts of refused and failed TLS handshakes of a protocol.
func (s *Server) handshakes(name string) (c guard.Counts) {
	for _, p := range s.protocols {
		if p.name == name && p.shakes != nil {
			c = p.shakes.Counts()
		}
	}
	return c
}
