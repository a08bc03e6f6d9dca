package policy

import (
	"errors"
	"reflect"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/weirlimit/weir"
)

func TestTokensAreReadAsTheyWereWritten(t *testing.T) {
	limits := []string{"100/1m", "gcra 10/1s burst=20", "10000/month anchor=15 tz=Europe/Berlin", "concurrent 10 lease=30s"}
	rapid.Check(t, func(t *rapid.T) {
		want := token{id: rapid.Int64().Draw(t, "id"), life: rapid.Int64Range(0, int64(maxHold)).Draw(t, "life")}
		for range rapid.IntRange(1, 5).Draw(t, "holdings") {
			want.held = append(want.held, holding{
				name: rapid.StringN(1, 20, 50).Draw(t, "name"), limit: weir.MustParseLimit(rapid.SampledFrom(limits).Draw(t, "limit")),
				key: rapid.String().Draw(t, "key"), units: rapid.Int64Range(0, MaxCost).Draw(t, "units"), end: rapid.Int64().Draw(t, "end"),
				lease: rapid.Bool().Draw(t, "lease"), local: rapid.Bool().Draw(t, "local"), quiet: rapid.Bool().Draw(t, "quiet"), said: rapid.Bool().Draw(t, "said"),
			})
		}
		text := want.String()
		got, err := parseToken(text)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Fatalf("%+v is read as %+v, error %v", want, got, err)
		}
		i := rapid.IntRange(0, len(text)-1).Draw(t, "place")
		other := text[:i] + string("AB"[map[bool]int{true: 1}[text[i] == 'A']]) + text[i+1:]
		if _, err := parseToken(other); !errors.Is(err, ErrToken) {
			t.Errorf("a token that was changed at %d is read, error %v", i, err)
		}
	})
}

func FuzzToken(f *testing.F) {
	f.Add(token{id: 7, life: int64(time.Minute), held: []holding{{name: "a/1", limit: weir.MustParseLimit("100/1m"), key: "k", units: 3, said: true}}}.String())
	f.Add(token{held: []holding{{name: "a/1", limit: weir.MustParseLimit("concurrent 10 lease=30s"), key: "", units: 1, end: 1 << 60, lease: true}}}.String())
	f.Add("AQAAAAAAAA")
	f.Fuzz(func(t *testing.T, text string) {
		found, err := parseToken(text)
		if err != nil {
			if !errors.Is(err, ErrToken) {
				t.Errorf("error %v", err)
			}
			return
		}
		if again := found.String(); again != text {
			t.Errorf("%q is read, and written %q", text, again)
		}
	})
}
