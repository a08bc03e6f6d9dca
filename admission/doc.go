// Package admission decides on requests, whatever protocol they come by, and settles what they hold when they are answered. The middleware of packages
// httplimit and grpclimit is a [Gate] with a protocol around it; for another framework, do as they do:
//
//	a := gate.Admit(r)      // who asks, what it costs, whether it may pass
//	… refuse it, if a.Outcome says so …
//	a.Await(ctx)            // a leaky queue's turn
//	… serve it …
//	a.Finish(response)      // a lease ends, a cost that is known now is settled
package admission
