package server

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weirlimit/weir/internal/server/guard"
)

// A ruledCollector reads the counts of the policies. The names of policies are in labels: there are as many as the file has.
type ruledCollector struct {
	*ruled
	panics *guard.Panics
}

var (
	policyDecisions = desc("weir_policy_decisions_total", "Requests that a policy matched, by what its limits said: allowed or denied by those that are enforced, "+
		"shadow_denied and candidate_denied by those that are not, failed where the store could not decide.", "policy", "verdict")
	configGood    = desc("weir_config_last_reload_successful", "1 if the file of policies that is there now is in force, 0 if it was refused.")
	configAt      = desc("weir_config_last_reload_timestamp_seconds", "When the policies in force were loaded, since 1970.")
	clientsNumber = desc("weir_clients", "Clients that have plans or limits of their own.")
	clientsBad    = desc("weir_clients_bad_rows", "Rows of the database of clients that make no sense: their clients keep the last good row, or have the default limits.")
	clientsGood   = desc("weir_clients_last_sync_successful", "1 if what is in the database of clients is in force, 0 if the database is away, a row is bad or a change was refused.")
	clientsAt     = desc("weir_clients_last_sync_timestamp_seconds", "When the clients in force were loaded, since 1970.")
)

// Describe implements prometheus.Collector.
func (c ruledCollector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{policyDecisions, configGood, configAt, clientsNumber, clientsBad, clientsGood, clientsAt} {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (c ruledCollector) Collect(ch chan<- prometheus.Metric) {
	if c.ruled == nil {
		return
	}
	defer c.panics.Recover("metrics")
	for _, s := range c.set.Stats() {
		count(ch, policyDecisions, s.Allowed, s.Policy, "allowed")
		count(ch, policyDecisions, s.Denied, s.Policy, "denied")
		count(ch, policyDecisions, s.ShadowDenied, s.Policy, "shadow_denied")
		count(ch, policyDecisions, s.CandidateDenied, s.Policy, "candidate_denied")
		count(ch, policyDecisions, s.Failed, s.Policy, "failed")
	}
	config := c.set.Status().Config
	gauge(ch, configGood, truth(config.Err == nil))
	instant(ch, configAt, config.Loaded)
	if c.clients != nil {
		s := c.clients.Status()
		gauge(ch, clientsNumber, int64(s.Clients))
		gauge(ch, clientsBad, int64(s.BadRows))
		gauge(ch, clientsGood, truth(s.Away == "" && s.Refused == "" && s.BadRows == 0 && s.FromSnapshot.IsZero()))
		instant(ch, clientsAt, s.Change)
	}
}

func truth(yes bool) int64 {
	if yes {
		return 1
	}
	return 0
}

func instant(ch chan<- prometheus.Metric, d *prometheus.Desc, at time.Time) {
	ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, float64(at.UnixMilli())/1000)
}
