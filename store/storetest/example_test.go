package storetest_test

import (
	"fmt"
	"testing"

	"github.com/weirlimit/weir/store"
	"github.com/weirlimit/weir/store/memory"
	"github.com/weirlimit/weir/store/storetest"
)

// The examples are tests of yours: t is the argument of a test, m that of TestMain.
var (
	t *testing.T
	m *testing.M
)

// A store that nobody else can share.
func ExampleRun() {
	storetest.Run(t, storetest.Harness{
		Open: func(testing.TB, storetest.Options) store.Store { return memory.New(memory.Options{}) },
		Tick: 1, // nanosecond
	})
}

// A store that processes share: the suite starts the test binary again, and asks it to open the store too.
func ExampleMain() {
	open := func(url string, o storetest.Options) (store.Store, error) {
		return connect(url, o.TrustClientTime)
	}
	func() { // TestMain
		storetest.Main(m, open)
	}()
	func() { // a test
		const url = "engine://127.0.0.1:1234"
		storetest.Run(t, storetest.Harness{
			Open: func(t testing.TB, o storetest.Options) store.Store {
				s, err := connect(url, o.TrustClientTime)
				if err != nil {
					t.Fatal(err)
				}
				return s
			},
			Process: url,
		})
	}()
}

func ExampleRules() {
	for _, rule := range storetest.Rules() {
		if rule.Name == "T1-rewind" || rule.Name == "A7-peek" {
			fmt.Println(rule.Name+":", rule.Sentence)
		}
	}
	// Output:
	// T1-rewind: Time that steps back mints nothing.
	// A7-peek: A request of cost 0 changes nothing, on a fresh key and on another, at whatever time it looks.
}

// connect stands for how your stores are opened.
func connect(string, bool) (store.Store, error) { return memory.New(memory.Options{}), nil }
