package httpapi

import (
	"encoding/json"
	"errors"
	"math"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/weirlimit/weir/store"
)

// A request is the body of an operation.
type request struct {
	key, limit string
	name       string // of the limiter
	cost       int64
	at         time.Time
	timed      bool // at is given
	onError    store.OnError
	seen       fields
}

// fields is a set of the names that a body may have.
type fields uint8

const (
	keyField fields = 1 << iota
	limitField
	costField
	atField
	nameField
	onErrorField
)

const (
	keyAccepted   = "a string"
	limitAccepted = "a limit text such as 100/1m or gcra 10/1s burst=20"
	nameAccepted  = "a string"
	costAccepted  = "a whole number from 0 to 9223372036854775807"
	atAccepted    = "whole microseconds since 1970"
)

// decode reads a body strictly: one JSON object, each name at most once and spelled exactly, no null, nothing after it.
// What is laxer can mean two things to two readers, and one of them would be charging the wrong key.
func decode(body []byte, op operation, trustClientTime bool) (request, *Problem) {
	q := request{cost: 1}
	m, p := object(body, `{"key":"user:42","limit":"100/1m"}`)
	if p != nil {
		return q, p
	}
	for m.next() {
		if p := q.set(unquote(m.name), m.value, op, trustClientTime); p != nil {
			return q, p
		}
	}
	return q, q.missing()
}

// object returns the members of a body that is one JSON object in UTF-8; example is one that would do.
func object(body []byte, example string) (*members, *Problem) {
	if !utf8.Valid(body) || unpairedSurrogate(body) {
		return nil, refuse("body", "not Unicode", "a JSON object in UTF-8")
	}
	accepted := "a JSON object such as " + example
	if !json.Valid(body) {
		return nil, refuse("body", "not JSON"+where(body), accepted)
	}
	m, ok := membersOf(body)
	if !ok {
		return nil, refuse("body", "not a JSON object", accepted)
	}
	return m, nil
}

// where says at which byte a body stops being JSON.
func where(body []byte) string {
	if syntax, ok := errors.AsType[*json.SyntaxError](json.Unmarshal(body, new(json.RawMessage))); ok {
		return " at byte " + strconv.FormatInt(syntax.Offset, 10)
	}
	return ""
}

func (q *request) missing() *Problem {
	switch {
	case q.seen&keyField == 0:
		return refuse("key", "missing", keyAccepted)
	case q.seen&limitField == 0:
		return refuse("limit", "missing", limitAccepted)
	}
	return nil
}

// set stores one member of the object, or says why it can't be.
func (q *request) set(name string, value []byte, op operation, trustClientTime bool) *Problem {
	field := fieldOf(name)
	switch {
	case field == 0 || field == costField && !op.costs || field == onErrorField && !op.falls:
		return unknownField(name, op.fields())
	case field == atField && !trustClientTime:
		return refuse(name, "not trusted", "no time of the client's, unless weir serve runs with --trust-client-time")
	case q.seen&field != 0:
		return refuse(name, "given twice", "once")
	}
	q.seen |= field
	return q.store(field, name, value)
}

func (q *request) store(field fields, name string, value []byte) (p *Problem) {
	switch field {
	case keyField:
		q.key, p = text(name, value, keyAccepted)
	case limitField:
		q.limit, p = text(name, value, limitAccepted)
	case nameField:
		q.name, p = text(name, value, nameAccepted)
	case costField:
		q.cost, p = whole(name, value, 0, costAccepted)
	case onErrorField:
		q.onError, p = onError(name, value)
	case atField:
		var at int64
		at, p = whole(name, value, math.MinInt64, atAccepted)
		q.at, q.timed = time.UnixMicro(at), true
	}
	return p
}

func onError(name string, value []byte) (store.OnError, *Problem) {
	t, p := text(name, value, store.OnErrorAccepted)
	if p != nil {
		return store.Deny, p
	}
	on, err := store.ParseOnError(t)
	if err != nil {
		return store.Deny, refuse(name, t, store.OnErrorAccepted)
	}
	return on, nil
}

func fieldOf(name string) fields {
	switch name {
	case "key":
		return keyField
	case "limit":
		return limitField
	case "on_store_error":
		return onErrorField
	case "name":
		return nameField
	case "cost":
		return costField
	case "at_us":
		return atField
	}
	return 0
}
