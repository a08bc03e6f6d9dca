package server

import (
	"runtime"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/weirlimit/weir/server/httpapi"
	"github.com/weirlimit/weir/server/resp"
	"github.com/weirlimit/weir/store/memory"
)

// sources are where the metrics come from. Those of a protocol that is off are nil.
type sources struct {
	store func() memory.Stats
	resp  func() resp.Stats
	http  func() httpapi.Stats
}

// register adds weir's metrics, and those of the Go runtime and the process, to r.
func register(r *prometheus.Registry, s sources, version string) {
	build := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "weir_build_info", Help: "Always 1; the labels say what is running.",
		ConstLabels: prometheus.Labels{"version": version, "go_version": runtime.Version()},
	})
	build.Set(1)
	r.MustRegister(
		build, collector{s},
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
	)
}

// A collector reads the counts when they are asked for, so that counting costs the requests nothing more. No label has a
// key or a limit in it: clients choose those, and could make as many as they like.
type collector struct{ sources }

var (
	decisions = desc("weir_decisions_total", "Takes decided.", "protocol", "verdict")
	errs      = desc("weir_errors_total", "Requests answered with an error.", "protocol")
	open      = desc("weir_connections", "Connections open now.", "protocol")
	accepted  = desc("weir_connections_accepted_total", "Connections served.", "protocol")
	refused   = desc("weir_connections_refused_total", "Connections closed at once because there were too many.", "protocol")
	keys      = desc("weir_keys", "Keys held now; some of them may be fresh again.")
	reclaimed = desc("weir_keys_reclaimed_total", "Keys forgotten because they were fresh again.")
	overflows = desc("weir_overflowed_total", "Operations on new keys while the store was full of live ones.")
)

func desc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc(name, help, labels, nil)
}

// Describe implements prometheus.Collector.
func (c collector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{decisions, errs, open, accepted, refused, keys, reclaimed, overflows} {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (c collector) Collect(ch chan<- prometheus.Metric) {
	s := c.store()
	gauge(ch, keys, s.Keys)
	count(ch, reclaimed, s.Reclaimed)
	count(ch, overflows, s.Overflowed)
	if c.resp != nil {
		s := c.resp()
		collect(ch, "resp", protocolStats{s.Allowed, s.Denied, s.Errors, s.Connections, s.Accepted, s.Refused})
	}
	if c.http != nil {
		s := c.http()
		collect(ch, "http", protocolStats{s.Allowed, s.Denied, s.Errors, s.Connections, s.Accepted, s.Refused})
	}
}

type protocolStats struct{ allowed, denied, errors, connections, accepted, refused int64 }

func collect(ch chan<- prometheus.Metric, protocol string, s protocolStats) {
	count(ch, decisions, s.allowed, protocol, "allowed")
	count(ch, decisions, s.denied, protocol, "denied")
	count(ch, errs, s.errors, protocol)
	gauge(ch, open, s.connections, protocol)
	count(ch, accepted, s.accepted, protocol)
	count(ch, refused, s.refused, protocol)
}

func count(ch chan<- prometheus.Metric, d *prometheus.Desc, n int64, labels ...string) {
	ch <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(n), labels...)
}

func gauge(ch chan<- prometheus.Metric, d *prometheus.Desc, n int64, labels ...string) {
	ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, float64(n), labels...)
}
