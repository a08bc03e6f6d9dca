// Package storetest is the conformance suite for stores: what [store.Store] promises, as rules that a store keeps or
// breaks. It knows no engine. The test of a store is a [Harness], and:
//
//	func TestMain(m *testing.M) { storetest.Main(m, open) }
//
//	func TestConformance(t *testing.T) {
//		storetest.Run(t, storetest.Harness{
//			Open: func(t testing.TB, o storetest.Options) store.Store { … },
//		})
//	}
//
// Each rule is a subtest of its own. One that fails prints the rule's sentence, the steps that led there, and a seed to
// repeat them. What a rule compares with is [algorithm.Program] and the store in memory: every field of every verdict, on
// times that are whole microseconds.
//
// With -short the suite takes fewer random steps.
package storetest
