package policy

import (
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"strconv"
	"time"
)

// A Request is what policies look at. Who is not served over HTTP leaves out what he has not, and says what he has in Attributes.
// Check does not keep it, nor change it.
type Request struct {
	Method   string
	Host     string      // with or without a port
	Path     string      // as in the URL, decoded: what is matched is exactly this
	RawQuery string      // as in the URL, without the ?
	Header   http.Header // its names in their canonical form, as its methods and package net/http write them
	// ClientIP is who asks, by an address that the caller vouches for. It is matched, and becomes a key, unmapped.
	ClientIP netip.Addr
	// Attributes are whatever else the caller knows, by names of the caller's.
	Attributes map[string]string
	// Cost, if not nil, is what the request costs, whatever the policies say: 0 is a peek.
	Cost *int64
	// Estimate, if not nil and there is no Cost, is what the request costs by policies that do not say a cost. It is the request's own, as a Cost is: with Hold it is settled
	// at what Commit says, while policies that say a cost keep to it.
	Estimate *int64
	// Hold, if positive, reserves: what is charged is an estimate, to be settled by [Set.Commit] or [Set.Cancel] within this time.
	// If neither comes, it is given back when the time is over.
	Hold time.Duration
	// May, if not nil, reports whether the request may be charged under a key of a policy. It is called
	// for each policy that matches. If it returns false, the request is charged nowhere, and the error
	// is [ErrForbidden].
	May func(policy, key string) bool
}

// ErrForbidden is the error for a request whose May returned false.
var ErrForbidden = errors.New("weir: the request may not be charged to a policy that matches it")

// check refuses a request with a hold or a cost that no request has.
func (r *Request) check() error {
	if r.Hold != 0 && (r.Hold < minHold || r.Hold > maxHold) {
		return &RequestError{"hold", r.Hold.String(), "0, for none, or " + minHold.String() + " to " + maxHold.String()}
	}
	return r.costs()
}

// costs refuses a cost that no request can have.
func (r *Request) costs() error {
	if err := costIs("cost", r.Cost); err != nil {
		return err
	}
	return costIs("estimate", r.Estimate)
}

func costIs(field string, cost *int64) error {
	if cost == nil || 0 <= *cost && *cost <= MaxCost {
		return nil
	}
	return &RequestError{field, strconv.FormatInt(*cost, 10), fmt.Sprintf("0 to %d", MaxCost)}
}
