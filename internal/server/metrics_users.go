package server

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/weirlimit/weir/internal/server/audit"
	"github.com/weirlimit/weir/internal/server/guard"
)

// A usersCollector reads the counts of the users and of the audit log.
type usersCollector struct {
	users  *users
	audit  *audit.Log
	panics *guard.Panics
}

var (
	usersInUse    = desc("weir_users", "Users in use: --users.")
	usersRenewed  = desc("weir_users_last_reload_successful", "1 if the file of users is in use, 0 if its last change was rejected.")
	loginsRefused = desc("weir_logins_refused_total", "Refused logins.")
	auditLost     = desc("weir_audit_lost_total", "Records that the audit log lost, because its file could not be written, or not fast enough.")
)

// Describe implements prometheus.Collector.
func (c usersCollector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{usersInUse, usersRenewed, loginsRefused, auditLost} {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (c usersCollector) Collect(ch chan<- prometheus.Metric) {
	defer c.panics.Recover("metrics")
	if c.users != nil {
		s := c.users.Status()
		gauge(ch, usersInUse, int64(s.Users))
		gauge(ch, usersRenewed, map[bool]int64{true: 1}[s.Err == nil])
		count(ch, loginsRefused, c.users.RefusedLogins())
	}
	if c.audit != nil {
		count(ch, auditLost, c.audit.Lost())
	}
}
