// Package admission decides on requests, whatever protocol they come by, and settles what they hold when they are answered. The middleware of packages
// httplimit and grpclimit is a [Gate] with a protocol around it; for another framework, do as they do:
//
//	a := gate.Admit(r)      // who asks, what it costs, whether it may pass
//	… refuse it, if !a.Outcome.Pass() …
//	defer a.Finish(…)       // a lease ends, a cost that is known now is settled; also if the handler panics
//	a.Await(ctx)            // a leaky queue's turn
//	… serve it …
//
// A request that holds nothing ([Admission.Held]) needs no Finish.
package admission
