package testengine

import (
	"fmt"
	"math/rand/v2"
	"net"
)

// Ports for engines: below those that systems give to outgoing connections, so that an engine finds its port
// free when it starts again, and so that the cluster bus (a port of its own) has room too.
const firstPort, lastPort = 11_000, 32_000

// freePort returns a port that nobody listens on. Another process may take it before the engine does: then the engine
// fails to start, and is given another.
func freePort() (int, error) {
	var err error
	for range 100 {
		port := firstPort + rand.IntN(lastPort-firstPort)
		var l net.Listener
		if l, err = net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port)); err == nil {
			return port, l.Close()
		}
	}
	return 0, fmt.Errorf("finding a free port: %w", err)
}
