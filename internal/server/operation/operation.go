// Package operation is the list of the daemon's operations: their names, arguments, rights and
// counts, and the code that runs them. The protocols decode calls of the list and encode the results,
// so a new operation of the list is one of all protocols.
package operation

import (
	"github.com/weirlimit/weir/algorithm"
	"github.com/weirlimit/weir/internal/server/access"
	"github.com/weirlimit/weir/internal/server/audit"
	"github.com/weirlimit/weir/internal/server/checks"
)

// A Form is the form of the arguments of an operation.
type Form uint8

// The forms.
const (
	OneLimit   Form = iota // a key, a limit, and the arguments that the operation accepts
	Limits                 // several keys and limits, which are charged all or none
	Request                // the fields of a request, for policies
	Settlement             // a token of a check, and perhaps a cost
)

// An Operation is a verb of the daemon. It does not change.
type Operation struct {
	Command string // of the Redis protocol, in lower case
	// Path is of HTTP. "": the path of the verb is that of a settlement, or its form has no JSON.
	Path    string
	Summary string
	Form    Form
	Right   access.Right // without it a user may not use the verb
	// Kind, Accepts and Requires are of OneLimit, and the last two of Limits: the transition, the
	// arguments, and the arguments that must be given. Without Cost it costs 1 unit, or nothing.
	Kind     algorithm.Kind
	Accepts  Argument
	Requires Argument
	Reads    bool   // it changes nothing
	Counted  bool   // its decisions are counted as allowed or denied
	Granted  bool   // its result has a number of units: taken, renewed, reserved, settled or given back
	Audit    string // the event of the audit log, or ""

	settlement checks.Settlement
}

const (
	anyCall = Name | Debt | At | NS | Time
	costs   = anyCall | Cost
	takes   = costs | OnError
	held    = costs&^Debt | ID
)

// List has all operations.
var List = list()

func list() []*Operation {
	all := []*Operation{
		{Command: "weir.take", Path: "/v1/take", Right: access.Take, Kind: algorithm.Take, Accepts: takes, Counted: true,
			Summary: "Asks to pass at a cost, under a limit."},
		{Command: "weir.takeupto", Path: "/v1/take-up-to", Right: access.Take, Kind: algorithm.TakeUpTo, Accepts: takes, Counted: true, Granted: true,
			Summary: "Takes as many units as there is room for, up to a cost."},
		{Command: "weir.takeall", Form: Limits, Right: access.Take, Accepts: Cost | Name | ID | Life | At | NS | Time | And | OnError, Counted: true,
			Summary: "Asks to pass several limits together: all are charged, or none."},
		{Command: "weir.peek", Path: "/v1/peek", Right: access.Take, Kind: algorithm.Take, Accepts: anyCall | OnError, Reads: true,
			Summary: "Says what stands for a key, and changes nothing."},
		{Command: "weir.refund", Path: "/v1/refund", Right: access.Refund, Kind: algorithm.Refund, Accepts: costs, Audit: audit.Refund,
			Summary: "Gives back units that were taken and not used."},
		{Command: "weir.cancel", Right: access.Take, Kind: algorithm.Cancel, Accepts: costs | End, Requires: End, Granted: true, Audit: audit.Cancel,
			Summary: "Gives back the units of one take, as far as they have not come back by themselves."},
		{Command: "weir.renew", Right: access.Take, Kind: algorithm.Renew, Accepts: costs | End, Requires: End, Counted: true, Granted: true,
			Summary: "Takes units of a concurrent limit for another lease, in place of those of an earlier take."},
		{Command: "weir.reserve", Right: access.Take, Kind: algorithm.Reserve, Accepts: held | Life, Requires: ID | Life | Name, Counted: true, Granted: true,
			Summary: "Takes units that can be settled at what the work really cost."},
		{Command: "weir.commit", Right: access.Take, Kind: algorithm.Commit, Accepts: held | Late, Requires: ID | Name, Granted: true,
			Summary: "Settles a reservation."},
		{Command: "weir.reset", Path: "/v1/reset", Right: access.Refund, Kind: algorithm.Reset, Accepts: anyCall, Audit: audit.Reset,
			Summary: "Forgets a key."},
		{Command: "weir.check", Path: "/v1/check", Form: Request, Right: access.Check, Counted: true,
			Summary: "Asks whether a request may pass, by the policies that match it."},
	}
	for _, s := range checks.Settlements {
		all = append(all, &Operation{
			Command: "weir.check." + s.Name, Path: "/v1/" + s.Name, Form: Settlement, Right: access.Check, Summary: s.Summary, settlement: s,
		})
	}
	return all
}

// ByCommand returns the operation of a command of the Redis protocol, or nil.
func ByCommand(name string) *Operation {
	for _, o := range List {
		if o.Command == name {
			return o
		}
	}
	return nil
}

// Settles reports whether a settlement has a cost, and may be late.
func (o *Operation) Settles() (costs bool) { return o.settlement.Costs }
