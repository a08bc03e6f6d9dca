package server

import (
	"runtime"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/weirlimit/weir/internal/server/access"
	"github.com/weirlimit/weir/internal/server/audit"
	"github.com/weirlimit/weir/internal/server/certificates"
	"github.com/weirlimit/weir/internal/server/guard"
	"github.com/weirlimit/weir/internal/server/latency"
	"github.com/weirlimit/weir/internal/server/operation"
	"github.com/weirlimit/weir/store"
)

// sources are where the metrics come from. Those of a protocol that is off, and of policies that are not there, are nil.
type sources struct {
	store     *kept
	policies  *ruled
	protocols map[string]func() operation.Stats // of those that run operations
	admin     func() operation.Stats
	proxied   func() map[string]int64            // connections refused for their header, by protocol
	shakes    func(protocol string) guard.Counts // connections without a TLS handshake
	accepts   func() map[string]int64            // failed attempts to accept, by protocol
	durations map[string]*latency.Decisions      // by protocol
	panics    *guard.Panics
	certified *certificates.Certificates // nil without TLS
	users     *access.Users              // nil without users
	audit     *audit.Log                 // nil without an audit log
}

// register adds weir's metrics, and those of the Go runtime and the process, to r.
func register(r *prometheus.Registry, s sources, version string) {
	build := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "weir_build_info", Help: "Always 1; the labels say what is running.",
		ConstLabels: prometheus.Labels{"version": version, "go_version": runtime.Version()},
	})
	build.Set(1)
	kind := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "weir_store_info", Help: "Always 1; the label says what keeps the state.",
		ConstLabels: prometheus.Labels{"store": s.store.kind},
	})
	kind.Set(1)
	r.MustRegister(
		build, kind, collector{s},
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
	)
}

// A collector reads the counts when they are asked for, so that counting costs the requests nothing more. No label has a
// key or a limit in it: clients choose those, and could make as many as they like.
type collector struct{ sources }

var (
	decisions       = desc("weir_decisions_total", "Takes decided.", "protocol", "verdict")
	decision        = desc("weir_decision_seconds", "Duration of decisions. Over the Redis protocol from the end of the read that completed the command; commands that were read together have the duration of all.", "protocol", "operation")
	errs            = desc("weir_errors_total", "Requests answered with an error.", "protocol")
	undecided       = desc("weir_undecided_total", "Requests on which the store could not decide: answered with an error, or as their policies say.", "protocol")
	without         = desc("weir_decisions_without_store_total", "Requests that were decided without the store, because it failed: denied or answered with an error, allowed, or decided by local limits.", "protocol", "on_store_error")
	open            = desc("weir_connections", "Connections open now.", "protocol")
	accepted        = desc("weir_connections_accepted_total", "Connections served.", "protocol")
	refused         = desc("weir_connections_refused_total", "Connections closed at once because there were too many, in all or of their address.", "protocol", "reason")
	cut             = desc("weir_connections_cut_total", "Connections ended because of what they did or did not: their reason says which.", "protocol", "reason")
	panicked        = desc("weir_panics_total", "Panics of connections and tasks, which ended those and nothing else. Each is a defect; the log has its stack.", "task")
	headless        = desc("weir_proxy_headers_refused_total", "Connections from proxies closed because they brought no header of the PROXY protocol that will do.", "protocol")
	unheard         = desc("weir_accept_failures_total", "Failed attempts to accept a connection, for want of open files or memory.", "protocol")
	keys            = desc("weir_keys", "Keys held now; some of them may be fresh again.")
	reclaimed       = desc("weir_keys_reclaimed_total", "Keys forgotten because they were fresh again.")
	overflows       = desc("weir_overflowed_total", "Operations on new keys for which the store had no room.")
	memBytes        = desc("weir_memory_bytes", "Memory that keys use, of those in memory.")
	maxBytes        = desc("weir_memory_max_bytes", "The most memory that keys may use: --memory.")
	growths         = desc("weir_growth_refused_total", "Operations denied because the record of their key needed more memory than there was.")
	healed          = desc("weir_store_healed_total", "States that were further ahead than their limit allows, made full debt: an engine's clock stepped back.")
	conflicts       = desc("weir_store_conflicts_total", "Swaps that lost to another process and were tried again.")
	reloads         = desc("weir_store_reloads_total", "Scripts that the engine had forgotten and was sent again.")
	swept           = desc("weir_store_swept_total", "States that were fresh again and were removed by this process.")
	expiry          = desc("weir_tls_certificate_expiry_timestamp_seconds", "When the certificate of the server expires.")
	renewed         = desc("weir_tls_last_reload_successful", "1 if the files of the certificate are in use, 0 if their last change was rejected.")
	failures        = desc("weir_store_failures_total", "Operations that ended in an error of the engine, or of the way to it.")
	policyDecisions = desc("weir_policy_decisions_total", "Requests that a policy matched, by what its limits said: allowed or denied by those that are enforced, "+
		"shadow_denied and candidate_denied by those that are not, failed where the store could not decide.", "policy", "verdict")
	configGood    = desc("weir_config_last_reload_successful", "1 if the file of policies that is there now is in force, 0 if it was refused.")
	configAt      = desc("weir_config_last_reload_timestamp_seconds", "When the policies in force were loaded, since 1970.")
	clientsNumber = desc("weir_clients", "Clients that have plans or limits of their own.")
	clientsBad    = desc("weir_clients_bad_rows", "Rows of the database of clients that make no sense: their clients keep the last good row, or have the default limits.")
	clientsGood   = desc("weir_clients_last_sync_successful", "1 if what is in the database of clients is in force, 0 if the database is away, a row is bad or a change was refused.")
	clientsAt     = desc("weir_clients_last_sync_timestamp_seconds", "When the clients in force were loaded, since 1970.")
	usersInUse    = desc("weir_users", "Users in use: --users.")
	usersRenewed  = desc("weir_users_last_reload_successful", "1 if the file of users is in use, 0 if its last change was rejected.")
	loginsRefused = desc("weir_logins_refused_total", "Refused logins.")
	auditLost     = desc("weir_audit_lost_total", "Records that the audit log lost, because its file could not be written, or not fast enough.")
)

func desc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc(name, help, labels, nil)
}

// Describe implements prometheus.Collector. It describes nothing: which metrics there are depends on
// the configuration.
func (collector) Describe(chan<- *prometheus.Desc) {}

// Collect implements prometheus.Collector.
func (c collector) Collect(ch chan<- prometheus.Metric) {
	defer c.panics.Recover("metrics")
	for task, n := range c.panics.Counts() {
		count(ch, panicked, n, task)
	}
	if m := c.store.memory; m != nil {
		s := m.Stats()
		gauge(ch, keys, s.Keys)
		count(ch, reclaimed, s.Reclaimed)
		count(ch, overflows, s.Overflowed)
		gauge(ch, memBytes, s.Bytes)
		gauge(ch, maxBytes, s.MaxBytes)
		count(ch, growths, s.Refused)
	}
	if counter, ok := c.store.Store.(store.Counter); ok {
		s := counter.Counts()
		count(ch, healed, s.Healed)
		count(ch, conflicts, s.Conflicts)
		count(ch, reloads, s.Reloads)
		count(ch, swept, s.Swept)
		count(ch, failures, s.Failures)
		if guarded, ok := c.store.Store.(store.Guarded); ok {
			c.store.calls.collect(ch)
			collectBreaker(ch, guarded.Breaker(), s)
		}
	}
	for name, stats := range c.protocols {
		s := stats()
		count(ch, decisions, s.Allowed, name, "allowed")
		count(ch, decisions, s.Denied, name, "denied")
		count(ch, undecided, s.Undecided, name)
		count(ch, without, s.Undecided-s.FailedOpen-s.Local, name, "deny")
		count(ch, without, s.FailedOpen, name, "allow")
		count(ch, without, s.Local, name, "local")
		c.collectConnections(ch, name, s)
	}
	if c.admin != nil {
		c.collectConnections(ch, "admin", c.admin())
	}
	c.collectSources(ch)
	for protocol, d := range c.durations {
		for o := range d {
			histogram(ch, decision, &d[o], protocol, latency.Operation(o).String())
		}
	}
	for protocol, n := range c.accepts() {
		count(ch, unheard, n, protocol)
	}
	if c.proxied != nil {
		for protocol, n := range c.proxied() {
			count(ch, headless, n, protocol)
		}
	}
}

func (c collector) collectConnections(ch chan<- prometheus.Metric, protocol string, s operation.Stats) {
	gauge(ch, open, s.Connections, protocol)
	count(ch, accepted, s.Accepted, protocol)
	count(ch, errs, s.Errors, protocol)
	for reason, n := range s.Reasons.Plus(c.shakes(protocol)) {
		if why := guard.Reason(reason); why.Refuses() {
			count(ch, refused, n, protocol, why.String())
		} else {
			count(ch, cut, n, protocol, why.String())
		}
	}
}

// collectSources collects the state of the sources of the configuration.
func (c collector) collectSources(ch chan<- prometheus.Metric) {
	if c.certified != nil {
		s := c.certified.Status()
		gauge(ch, expiry, s.NotAfter.Unix())
		gauge(ch, renewed, truth(s.Err == nil))
	}
	if c.users != nil {
		s := c.users.Status()
		gauge(ch, usersInUse, int64(s.Users))
		gauge(ch, usersRenewed, truth(s.Err == nil))
		count(ch, loginsRefused, c.users.RefusedLogins())
	}
	if c.audit != nil {
		count(ch, auditLost, c.audit.Lost())
	}
	if c.policies != nil {
		for _, s := range c.policies.set.Stats() {
			count(ch, policyDecisions, s.Allowed, s.Policy, "allowed")
			count(ch, policyDecisions, s.Denied, s.Policy, "denied")
			count(ch, policyDecisions, s.ShadowDenied, s.Policy, "shadow_denied")
			count(ch, policyDecisions, s.CandidateDenied, s.Policy, "candidate_denied")
			count(ch, policyDecisions, s.Failed, s.Policy, "failed")
		}
		config := c.policies.set.Status().Config
		gauge(ch, configGood, truth(config.Err == nil))
		instant(ch, configAt, config.Loaded)
		if c.policies.clients != nil {
			s := c.policies.clients.Status()
			gauge(ch, clientsNumber, int64(s.Clients))
			gauge(ch, clientsBad, int64(s.BadRows))
			gauge(ch, clientsGood, truth(s.Away == "" && s.Refused == "" && s.BadRows == 0 && s.FromSnapshot.IsZero()))
			instant(ch, clientsAt, s.Change)
		}
	}
}

// histogram collects a histogram that is not empty.
func histogram(ch chan<- prometheus.Metric, d *prometheus.Desc, h *latency.Histogram, labels ...string) {
	if s := h.Snapshot(); s.Count > 0 {
		ch <- prometheus.MustNewConstHistogram(d, s.Count, s.Seconds, s.Buckets, labels...)
	}
}

func count(ch chan<- prometheus.Metric, d *prometheus.Desc, n int64, labels ...string) {
	ch <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(n), labels...)
}

func gauge(ch chan<- prometheus.Metric, d *prometheus.Desc, n int64, labels ...string) {
	ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, float64(n), labels...)
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
