package resp

import (
	"fmt"
	"runtime"
	"strings"
	"time"

	"github.com/weirlimit/weir/internal/server/access"
)

func serverCommands() []*command {
	flags := []string{"loading", "stale"}
	return []*command{
		{name: "command", anyUser: true, arity: -1, flags: flags, group: "server", run: (*conn).catalogue, summary: "Tells of the commands."},
		{name: "info", anyUser: true, arity: -1, flags: flags, group: "server", run: (*conn).info, summary: "Tells of the server."},
		{name: "config", right: access.Admin, arity: -2, flags: flags, group: "server", run: (*conn).config, summary: "Tells of a few parameters."},
		{name: "acl", anyUser: true, arity: -2, flags: append([]string{"noscript"}, flags...), group: "server", run: (*conn).acl, summary: "Tells the user of the connection."},
	}
}

// info is INFO [section ...].
func (c *conn) info() {
	wanted := map[string]bool{}
	for _, arg := range c.args[1:] {
		wanted[string(c.upper(arg))] = true
	}
	all := len(wanted) == 0 || wanted["ALL"] || wanted["DEFAULT"] || wanted["EVERYTHING"]
	var text strings.Builder
	for _, section := range c.server.info(time.Now()) {
		if !all && !wanted[strings.ToUpper(section.name)] {
			continue
		}
		if text.Len() > 0 {
			text.WriteString("\r\n")
		}
		text.WriteString("# " + section.name + "\r\n")
		for _, line := range section.lines {
			text.WriteString(line + "\r\n")
		}
	}
	c.out.text(text.String())
}

type section struct {
	name  string
	lines []string
}

func (s *Server) info(now time.Time) []section {
	up, stats := int64(now.Sub(s.started).Seconds()), s.Stats()
	return []section{
		{"Server", []string{
			"redis_version:" + redisVersion, "redis_mode:standalone", "server_name:weir", "weir_version:" + s.options.Version,
			"os:" + runtime.GOOS, "arch:" + runtime.GOARCH, "go_version:" + runtime.Version(),
			"uptime_in_seconds:" + decimal(up), "uptime_in_days:" + decimal(up/86400),
		}},
		{"Weir", []string{
			"weir_wire:3", "weir_store:" + s.options.Store, "weir_trusts_client_time:" + decimal(int64(one(s.options.TrustClientTime))),
			"weir_tick_ns:" + decimal(int64(s.options.Limiters.Tick())), "weir_max_key:" + decimal(int64(s.options.MaxKey)),
		}},
		{"Clients", []string{
			"connected_clients:" + decimal(stats.Connections), fmt.Sprintf("maxclients:%d", s.options.MaxConnections),
		}},
		// Clients wait for a server that is loading.
		{"Persistence", []string{"loading:0"}},
		{"Stats", []string{
			"total_connections_received:" + decimal(stats.Accepted), "rejected_connections:" + decimal(stats.Refused),
			"cut_connections:" + decimal(stats.Cut), "total_commands_processed:" + decimal(stats.Requests),
			"total_error_replies:" + decimal(stats.Errors), "requests_allowed:" + decimal(stats.Allowed),
			"requests_denied:" + decimal(stats.Denied),
		}},
		{"Replication", []string{"role:master", "connected_slaves:0"}},
		{"Cluster", []string{"cluster_enabled:0"}},
	}
}

// config is CONFIG GET name ..., for the few parameters that clients ask for and that mean something here.
func (c *conn) config() {
	if !c.is(c.args[1], "GET") || len(c.args) < 3 {
		c.fail("ERR unknown subcommand or wrong number of arguments for " + excerpt(c.args[1]) + "; accepted: GET name")
		return
	}
	var found []string
	for _, p := range c.server.parameters() {
		for _, name := range c.args[2:] {
			if string(name) == "*" || strings.EqualFold(string(name), p[0]) {
				found = append(found, p[0], p[1])
				break
			}
		}
	}
	c.out.pairs(len(found) / 2)
	for _, text := range found {
		c.out.bulk(text)
	}
}

func (s *Server) parameters() [][2]string {
	return [][2]string{
		{"appendonly", "no"}, {"databases", "1"}, {"maxclients", decimal(int64(s.options.MaxConnections))}, {"save", ""},
		{"timeout", decimal(int64(s.options.IdleTimeout.Seconds()))},
	}
}
