package middleware

import (
	"fmt"

	"github.com/weirlimit/weir"
	"github.com/weirlimit/weir/admission"
	"github.com/weirlimit/weir/bench/peer"
	"github.com/weirlimit/weir/httplimit"
	"github.com/weirlimit/weir/httplimit/header"
	"github.com/weirlimit/weir/identity"
	"github.com/weirlimit/weir/policy"
)

func limitOf(b peer.Budget) weir.Limit { return weir.Limit{Count: b.Count, Period: b.Period} }

func buildWeir(b peer.Budget, o httplimit.Options, opts ...weir.Option) (wrapper, error) {
	l, err := weir.New(limitOf(b), opts...)
	if err != nil {
		return nil, err
	}
	return httplimit.New(l, o)
}

func newWeir(b peer.Budget) (wrapper, error) { return buildWeir(b, httplimit.Options{}) }

func newWeirSilent(b peer.Budget) (wrapper, error) {
	return buildWeir(b, httplimit.Options{Headers: header.None})
}

func newWeirX(b peer.Budget) (wrapper, error) {
	return buildWeir(b, httplimit.Options{Headers: header.XRateLimit})
}

func newWeirByKey(b peer.Budget) (wrapper, error) {
	return buildWeir(b, httplimit.Options{Key: identity.Key{identity.Header(keyField)}})
}

// newWeirNamed has a limiter with a name, whose limit can change while the state stays.
func newWeirNamed(b peer.Budget) (wrapper, error) {
	return buildWeir(b, httplimit.Options{}, weir.WithName("clients"))
}

// newWeirFailures charges what the handler never answers, so that every request holds a unit and gets it back.
func newWeirFailures(b peer.Budget) (wrapper, error) {
	return buildWeir(b, httplimit.Options{Charge: admission.Failures}, weir.WithName("clients"))
}

func newWeirPolicies(b peer.Budget) (wrapper, error) {
	c, err := policy.Parse(fmt.Appendf(nil, "policies: [{name: clients, key: [client_ip/64], limits: [%q]}]", limitOf(b)), "bench")
	if err != nil {
		return nil, err
	}
	set, err := policy.New(c, policy.Options{})
	if err != nil {
		return nil, err
	}
	return httplimit.New(set, httplimit.Options{})
}
