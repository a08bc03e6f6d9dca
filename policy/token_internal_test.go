package policy

import (
	"bytes"
	"encoding/base64"
	"errors"
	"reflect"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/weirlimit/weir"
	"github.com/weirlimit/weir/internal/decide"
)

func testKeys(first ...byte) (keys tokenKeys) {
	for _, b := range first {
		keys = append(keys, bytes.Repeat([]byte{b}, MinTokenKey))
	}
	return keys
}

func TestTokensAreReadAsTheyWereWritten(t *testing.T) {
	limits := []string{"100/1m", "gcra 10/1s burst=20", "10000/month anchor=15 tz=Europe/Berlin", "concurrent 10 lease=30s"}
	keys := testKeys(1)
	rapid.Check(t, func(t *rapid.T) {
		want := token{id: rapid.Int64().Draw(t, "id"), life: rapid.Int64Range(0, int64(maxHold)).Draw(t, "life")}
		for range rapid.IntRange(1, 5).Draw(t, "holdings") {
			want.held = append(want.held, decide.Holding{
				Name: rapid.StringN(1, 20, 50).Draw(t, "name"), Limit: weir.MustParseLimit(rapid.SampledFrom(limits).Draw(t, "limit")),
				Key: rapid.String().Draw(t, "key"), Units: rapid.Int64Range(0, MaxCost).Draw(t, "units"), End: rapid.Int64().Draw(t, "end"),
				Lease: rapid.Bool().Draw(t, "lease"), Local: rapid.Bool().Draw(t, "local"), Quiet: rapid.Bool().Draw(t, "quiet"), Stated: rapid.Bool().Draw(t, "said"),
			})
		}
		text := keys.text(want)
		got, err := keys.read(text)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Fatalf("%+v is read as %+v, error %v", want, got, err)
		}
		i := rapid.IntRange(0, len(text)-1).Draw(t, "place")
		other := text[:i] + string("AB"[map[bool]int{true: 1}[text[i] == 'A']]) + text[i+1:]
		if _, err := keys.read(other); !errors.Is(err, ErrToken) {
			t.Errorf("a token that was changed at %d is read, error %v", i, err)
		}
	})
}

// Tokens are encrypted with the first key, and read with any key, so a key can be replaced.
func TestTokenKeysAreReplaced(t *testing.T) {
	want := token{held: []decide.Holding{{Name: "a/1", Limit: weir.MustParseLimit("100/1m"), Units: 1}}}
	for _, c := range []struct {
		writes, reads tokenKeys
		ok            bool
	}{
		{testKeys(1), testKeys(1), true}, {testKeys(1), testKeys(2), false}, {testKeys(1), testKeys(2, 1), true}, {testKeys(2, 1), testKeys(1, 2), true},
		{testKeys(2, 1), testKeys(1), false},
	} {
		if _, err := c.reads.read(c.writes.text(want)); (err == nil) != c.ok || err != nil && !errors.Is(err, ErrToken) {
			t.Errorf("written with %d and read with %d: %v", c.writes[0][0], c.reads[0][0], err)
		}
	}
}

// A token shows nothing of its holdings, and no two tokens are equal.
func TestTokensShowNoKeys(t *testing.T) {
	keys, secret := testKeys(1), token{held: []decide.Holding{{Name: "a/1", Limit: weir.MustParseLimit("100/1m"), Key: "sk_live_51H8", Units: 1}}}
	text := keys.text(secret)
	b, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil || bytes.Contains(b, []byte("sk_live")) || bytes.Contains(b, []byte("100/1m")) {
		t.Errorf("%q, error %v", b, err)
	}
	if text == keys.text(secret) {
		t.Error("two tokens are equal")
	}
}

// FuzzToken parses any body. A valid body survives encryption and another read, and is refused
// without it.
func FuzzToken(f *testing.F) {
	f.Add(token{id: 7, life: int64(time.Minute), held: []decide.Holding{{Name: "a/1", Limit: weir.MustParseLimit("100/1m"), Key: "k", Units: 3, Stated: true}}}.body())
	f.Add(token{held: []decide.Holding{{Name: "a/1", Limit: weir.MustParseLimit("concurrent 10 lease=30s"), Key: "", Units: 1, End: 1 << 60, Lease: true}}}.body())
	f.Add([]byte{0, 0, 65})
	f.Add([]byte{1, 2, 3})
	keys, other := testKeys(1), testKeys(2)
	f.Fuzz(func(t *testing.T, body []byte) {
		found, err := parseToken(body)
		sealed := base64.RawURLEncoding.EncodeToString(seal(keys[0], body))
		read, readErr := keys.read(sealed)
		if (err == nil) != (readErr == nil) && len(sealed) < 80_000 || err == nil && readErr == nil && !reflect.DeepEqual(read, found) {
			t.Errorf("parsed %+v, error %v; read after encryption %+v, error %v", found, err, read, readErr)
		}
		if _, err := other.read(sealed); !errors.Is(err, ErrToken) {
			t.Errorf("read with another Key: error %v", err)
		}
		if _, err := keys.read(base64.RawURLEncoding.EncodeToString(body)); !errors.Is(err, ErrToken) {
			t.Errorf("read as plain text: error %v", err)
		}
		if err != nil {
			if !errors.Is(err, ErrToken) {
				t.Errorf("error %v", err)
			}
			return
		}
		if again, err := parseToken(found.body()); err != nil || !reflect.DeepEqual(again, found) || len(found.held) > decide.MaxHoldings {
			t.Errorf("%+v is written, and read as %+v, error %v", found, again, err)
		}
	})
}
