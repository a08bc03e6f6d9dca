package clients_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/weirlimit/weir"
	"github.com/weirlimit/weir/policy/clients"
)

func TestParseLimits(t *testing.T) {
	one := func(texts ...string) []weir.Limit { return limits(texts...)[""] }
	for text, want := range map[string]map[string][]weir.Limit{
		"1000/1m":                          {"": one("1000/1m")},
		" 1000/1m ;50/1s\n":                {"": one("1000/1m", "50/1s")},
		"api: 2000/1m; 100/1s":             {"api": one("2000/1m", "100/1s")},
		"10/1s\r\napi:2000/1m\n\nb : 3/1h": {"": one("10/1s"), "api": one("2000/1m"), "b": one("3/1h")},
		"10000/month anchor=15 tz=Europe/Berlin; concurrent 10 lease=30s": {"": one("10000/month anchor=15 tz=Europe/Berlin", "concurrent 10 lease=30s")},
	} {
		got, err := clients.ParseLimits(text)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
}

func TestLimitsThatAreRefused(t *testing.T) {
	for text, want := range map[string]string{
		"":                            "accepted: limits such as",
		" \n ":                        "accepted: limits such as",
		"1000":                        "accepted: [algorithm] count/period",
		"1000/1m;":                    "accepted: [algorithm] count/period",
		"1000/1m, 50/1s":              "accepted:",
		"1000/1m\n50/1s":              "two lines",
		"api: 1/1s\napi: 2/1s":        `two lines for policy "api"`,
		": 1/1s":                      `the policy ""`,
		"a b: 1/1s":                   `the policy "a b"; accepted: a name`,
		"a: b: 1/1s":                  "accepted:",
		`["1/1s"]`:                    "accepted:",
		strings.Repeat("1/1s;", 1000): "of 5000 bytes; accepted: at most 4096 bytes",
	} {
		if got, err := clients.ParseLimits(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, %v; want %q", text, got, err, want)
		}
	}
}

// What is accepted is written and read again as the same.
func FuzzParseLimits(f *testing.F) {
	for _, text := range []string{"1000/1m; 50/1s", "api: 1/1s\n2/1s", "a:b:c", ";", "gcra 10/1s burst=3;concurrent 10 lease=30s\nx: 500/day tz=Europe/Berlin"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		all, err := clients.ParseLimits(text)
		if err != nil {
			return
		}
		again, err := clients.ParseLimits(clients.FormatLimits(all))
		if len(clients.FormatLimits(all)) <= 4096 && (err != nil || !reflect.DeepEqual(all, again)) {
			t.Errorf("%q: %v, written and read: %v, %v", text, all, again, err)
		}
	})
}
