package resp

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// mostDescription bounds the line about a client, in bytes.
const mostDescription = 640 + 4*mostAbout

// listClients accepts no filter but TYPE normal, which all clients are.
func (c *conn) listClients(args [][]byte) {
	if len(args) > 0 && (len(args) != 2 || !c.is(args[0], "TYPE") || !c.is(args[1], "NORMAL")) {
		c.fail("ERR syntax error; accepted: CLIENT LIST [TYPE normal]")
		return
	}
	if !c.permitsPart("client|list") {
		return
	}
	all := c.server.clients()
	if !c.holdReplies(2 * len(all) * mostDescription) { // the list, and the reply that it is copied to
		c.fail("ERR too many long replies are waiting to be read, try again")
		return
	}
	var list strings.Builder
	for now := time.Now(); len(all) > 0; all = all[1:] {
		idle := time.Duration(0)
		if all[0] != c {
			idle = all[0].idle(now)
		}
		list.WriteString(all[0].describe(now, idle))
	}
	c.out.text(list.String())
}

// clients returns the connections in the order in which they came.
func (s *Server) clients() []*conn {
	s.mu.Lock()
	all := slices.Collect(maps.Keys(s.conns))
	s.mu.Unlock()
	slices.SortFunc(all, func(a, b *conn) int { return cmp.Compare(a.id, b.id) })
	return all
}

// idle returns for how long sweep has seen the connection do nothing, which may be some seconds too little. It may
// be called for the connection of another goroutine.
func (c *conn) idle(now time.Time) time.Duration {
	c.server.mu.Lock()
	defer c.server.mu.Unlock()
	if c.seen != (activity{c.rounds.Load(), c.writes.Load()}) {
		return 0
	}
	return max(0, now.Sub(c.seenAt))
}

// describe returns a line about the connection, with the fields that Redis has, because clients miss them. Those
// of what there isn't here, and of what only the connection's goroutine knows, are as of a new connection. It may be
// called for the connection of another goroutine.
func (c *conn) describe(now time.Time, idle time.Duration) string {
	a, protocol := c.about.Load(), 2
	if a.three {
		protocol = 3
	}
	return fmt.Sprintf("id=%d addr=%v laddr=%v fd=-1 name=%s age=%d idle=%d flags=N db=0 sub=0 psub=0 ssub=0 multi=-1 watch=0"+
		" qbuf=0 qbuf-free=0 argv-mem=0 multi-mem=0 rbs=0 rbp=0 obl=0 oll=0 omem=0 tot-mem=0 events=r cmd=NULL user=%s"+
		" redir=-1 resp=%d lib-name=%s lib-ver=%s tot-cmds=%d\n",
		c.id, c.net.RemoteAddr(), c.net.LocalAddr(), a.name, int(now.Sub(c.created).Seconds()), int(idle.Seconds()),
		c.userName(a), protocol, a.library, a.libraryVersion, c.published().Commands)
}
