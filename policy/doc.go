// Package policy says which limits apply to a request, on what keys, at what cost and under which plan, and decides.
//
//	request ─► the policies that match ─► keys and limits, by the client's plan ─► one decision, all or nothing
//
// A [Set] is made of a [Config], which is written in YAML. It can be replaced while it runs, as a whole; what was used stays used.
package policy
