// Package weir decides whether a request may pass: no more than this, per client.
package weir
