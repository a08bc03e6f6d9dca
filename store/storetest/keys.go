package storetest

import (
	"context"
	"strings"
	"unsafe"

	"github.com/weirlimit/weir/algorithm"
	"github.com/weirlimit/weir/store"
)

// long is the length of a key from which on a store may refuse it.
const long = 1 << 20

// oddKeys is pitfall S12: each of them has a budget of its own.
func oddKeys(k *check) {
	x := strings.Repeat("x", long-1)
	keys := []string{
		"", " ", "  ", "\x00", "\x00\x00", "a", "a ", " a", "a\x00", "a\x00b", "a\n", "a\r\n", "\n", "\t", "A",
		"*", "?", "[a]", "a*", "a?[b", `\`, `\\`, "{", "}", "{}", "{a}", "{a", "a}", "{a}b", "%", "%25", "%00", "%2525", "#", "+", "'", `"`, "'; --", "$1",
		"a:b", "a|b", "a/b", "a,b", ":", "::", "2001:db8::1/x", "2001:db8::1", "10/1h", "weir:1:{a}::10/1h",
		"\xff", "\xfe", "\xff\xfe", "\xc3", "\xc3\x28", "\ufffd", "\ufeff", "\u65e5\u672c", "😀",
		strings.Repeat("k", 95), strings.Repeat("k", 96), strings.Repeat("k", 97), strings.Repeat("k", 250), strings.Repeat("k", 251), strings.Repeat("\x00", 97),
		x + "x", x + "y", "y" + x, strings.Repeat("\xff", long),
	}
	k.mustBind(k.trusting(), "1000/1h").separate(keys)
}

// spellings is pitfall S13: keys are bytes, and the two spellings of é are two keys.
func spellings(k *check) {
	k.mustBind(k.trusting(), "1000/1h").separate([]string{"jos\u00e9", "jose\u0301", "jose", "JOSE", "\u212a", "K", "k", "\ufb01", "fi", "ß", "ss"})
}

// separate takes from all keys, twice. What it finds each time is what was left of that key alone.
func (b *bound) separate(keys []string) {
	b.Helper()
	ctx := context.Background()
	for round := int64(1); round <= 2; round++ {
		for i, key := range keys {
			cost := int64(i + 1)
			want := b.expect(start, algorithm.Op{Cost: cost * round})
			want.Granted = cost
			v, err := b.ask(ctx, key, algorithm.Op{Cost: cost}, start)
			switch {
			case err != nil && len(key) >= long:
				b.refusedKey(key)
			case err != nil:
				b.Fatalf("the key %q of %d bytes: %v", shorten(key), len(key), err)
			case v != want:
				b.Fatalf("the key %q of %d bytes shares a budget: it is %s, want %s", shorten(key), len(key), show(v), show(want))
			}
		}
	}
}

// refusedKey holds a key that is refused for its length to nothing being charged.
func (b *bound) refusedKey(key string) {
	b.Helper()
	if v, err := b.ask(context.Background(), key, algorithm.Op{}, start); err == nil && v.Remaining != b.limit.Capacity() {
		b.Fatalf("the key %q of %d bytes is refused, and charged all the same: %s", shorten(key), len(key), show(v))
	}
}

func shorten(key string) string { return key[:min(len(key), 40)] }

// names is pitfall S12 for names: no name and key, or limit without a name and key, read together like another pair.
func names(k *check) {
	s := k.trusting()
	tag := k.name()
	long := strings.Repeat("n", 200)
	seen := 0
	for _, name := range []string{
		"", "a", "a:b", "a:", ":a", "a|b", "{a}", "a}", "%", "%3A", "#", " ", "\x00", "\xff", "jos\u00e9", "jose\u0301", long, long + "n", "debt", ":debt",
		"1000/1h", ":1000/1h", "gcra 1000/1h", "gcra+1000/1h", ":gcra+1000/1h", "fixed-window 1000/1h", "a:1000/1h",
	} {
		texts := []string{"1000/1h", "gcra 1000/1h", "fixed-window 1000/1h", "1001/1h"}
		if name != "" {
			texts = texts[:1] // another would find what was taken under this one
		}
		for _, limit := range k.accepted(texts) {
			b := k.bindSpec(s, store.Spec{Limit: limit, Name: name})
			for _, key := range []string{"c", "b:c", ":c", "b|c", "{c}", "a:c", "", "1000/1h"} {
				if seen++; b.take(key+tag, 1, start) != b.expect(start, algorithm.Op{Cost: 1}) {
					k.Fatalf("the key %q under the name %q and the limit %v shares a budget with another", key, shorten(name), limit)
				}
			}
		}
	}
	k.Logf("%d tuples", seen)
}

// sharing holds bindings of equal name, and those without a name of equal limit, to one state, in one store and in two.
func sharing(k *check) {
	s := k.trusting()
	stores := []store.Store{s, s}
	if k.shared() {
		stores = append(stores, k.trusting())
	}
	for _, limit := range k.accepted(limits) {
		for _, name := range []string{k.name(), ""} {
			spec, key := store.Spec{Limit: limit, Name: name}, k.name()
			var ops []algorithm.Op
			for i, s := range stores {
				if spec.Limit = limit.Canonical(); i == 1 {
					spec.Limit = bare(limit)
				}
				b := k.bindSpec(s, spec)
				ops = append(ops, algorithm.Op{Cost: 1})
				b.wantf(b.take(key, 1, start), b.expect(start, ops...), "take %d of bindings of equal name, %q, and limit", i+1, name)
			}
		}
	}
}

// bare returns the same limit, without what it needs not say.
func bare(limit algorithm.Limit) algorithm.Limit {
	for _, shorten := range []func(l *algorithm.Limit){
		func(l *algorithm.Limit) { l.Algorithm = "" }, func(l *algorithm.Limit) { l.Burst = 0 },
		func(l *algorithm.Limit) { l.Queue = 0 }, func(l *algorithm.Limit) { l.Cells = 0 },
		func(l *algorithm.Limit) { l.Zone = "" }, func(l *algorithm.Limit) { l.Anchor = 0 }, func(l *algorithm.Limit) { l.Period = 0 },
	} {
		shorter := limit
		if shorten(&shorter); shorter.Canonical() == limit.Canonical() {
			limit = shorter
		}
	}
	return limit
}

// timeDebt lets limits that differ share the time until the key is fresh.
func timeDebt(k *check) {
	s := k.trusting()
	name := k.name()
	var all []*bound
	for _, text := range []string{"10/1s", "gcra 5/1s burst=20", "leaky-bucket 100/1m burst=3", "cooldown 4/1s", "min-interval 2/1s", "leaky-queue 8/1s queue=3"} {
		limit := algorithm.MustParseLimit(text)
		if k.refused(limit) == "" {
			all = append(all, k.bindSpec(s, store.Spec{Limit: limit, Name: name, TimeDebt: true}))
		}
	}
	if len(all) == 0 {
		k.Skip("the store refuses all limits of the linear family")
	}
	random := k.random()
	var state []int64
	now := start
	for i := range 300 {
		b := all[random.IntN(len(all))]
		op := algorithm.Op{Kind: []algorithm.Kind{algorithm.Take, algorithm.Take, algorithm.TakeUpTo, algorithm.Refund}[random.IntN(4)], Cost: random.Int64N(4)}
		now += random.Int64N(300) * 1_000_000
		var r algorithm.Result
		state, r = b.program.Apply(state, op, b.ticks(now))
		b.wantf(b.do("key", op, now), r.Verdict(), "step %d, %s on a key whose time debt several limits share", i, describe(op))
	}
	other := k.bindSpec(s, store.Spec{Limit: all[0].limit, Name: name})
	other.wantf(other.peek("key", now), other.expect(now), "a limit of the same name without TimeDebt")
	if _, err := s.Bind(store.Spec{Limit: algorithm.MustParseLimit("fixed-window 10/1s"), Name: name, TimeDebt: true}); err == nil {
		k.Fatalf("fixed-window 10/1s is accepted with TimeDebt, which is for the linear algorithms only")
	}
}

// keyMemory writes over a key's memory after each call.
func keyMemory(k *check) {
	for _, b := range k.bindAll(k.trusting(), []string{"1000/1h", "sliding-log 1000/1h"}) {
		memory := make([]byte, 4)
		key := unsafe.String(&memory[0], len(memory))
		for i := range int64(10) {
			copy(memory, []byte{'k', 'e', 'y', byte('0' + i)})
			b.take(key, i+1, start)
			copy(memory, "????")
		}
		for i := range int64(10) {
			want := b.expect(start, algorithm.Op{Cost: i + 1}).Remaining
			if got := b.peek("key"+string(rune('0'+i)), start).Remaining; got != want {
				k.Fatalf("%v: after its memory was used again, %d remain to the key that took %d; want %d", b.limit, got, i+1, want)
			}
		}
	}
}
