package clients

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/weirlimit/weir"
	"github.com/weirlimit/weir/policy"
)

// A model is clients as a plain map.
type model map[string]row

// grant is what a client has, in the model.
func (m model) grant(client string, now time.Time) string {
	r, ok := m[client]
	if us := now.UnixMicro(); !ok || us < r.from || us >= r.until {
		return ""
	}
	return r.plan + r.limits
}

// grants are all that clients have or may come to have, in the model.
func (m model) grants(now time.Time) []string {
	all := map[string]bool{}
	for _, r := range m {
		if !r.over(now) {
			all[r.plan+r.limits] = true
		}
	}
	return slices.Sorted(maps.Keys(all))
}

func drawRow(t *rapid.T, client string, now time.Time) row {
	r := row{client: client, from: since, until: forever}
	if rapid.Bool().Draw(t, "planned") {
		r.plan = rapid.SampledFrom([]string{"gold", "silver", "bronze"}).Draw(t, "plan")
	} else {
		r.limits = fmt.Sprintf("%d/1m", rapid.IntRange(1, 4).Draw(t, "count"))
	}
	if rapid.IntRange(0, 2).Draw(t, "bounded") == 0 {
		r.from = now.Add(time.Duration(rapid.IntRange(-5, 5).Draw(t, "from")) * time.Minute).UnixMicro()
		r.until = r.from + time.Duration(rapid.IntRange(1, 5).Draw(t, "for")).Microseconds() + int64(rapid.IntRange(1, 300).Draw(t, "seconds"))*1_000_000
	}
	return r
}

// A table after any changes, with the base built anew at times, and after a snapshot, has what a map has.
func TestTableIsAMap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		now := time.Unix(1_800_000_000, 0)
		clock := func() time.Time { return now }
		m := model{}
		table, err := newLoad(clock, nil, nil).table()
		if err != nil {
			t.Fatal(err)
		}
		for range rapid.IntRange(1, 20).Draw(t, "steps") {
			changes := map[string]*row{}
			for range rapid.IntRange(0, 8).Draw(t, "changes") {
				name := nameOf(rapid.IntRange(0, 12).Draw(t, "client"))
				if changes[name] = nil; rapid.IntRange(0, 3).Draw(t, "gone") > 0 {
					r := drawRow(t, name, now)
					changes[name] = &r
				}
			}
			for name, r := range changes {
				if delete(m, name); r != nil {
					m[name] = *r
				}
			}
			if table, err = table.with(changes, nil); err == nil && rapid.IntRange(0, 4).Draw(t, "rebuild") == 0 {
				table, err = table.rebuilt()
			}
			if err == nil && rapid.IntRange(0, 4).Draw(t, "snapshot") == 0 {
				table, err = throughSnapshot(table)
			}
			if err != nil {
				t.Fatal(err)
			}
			now = now.Add(time.Duration(rapid.IntRange(0, 3).Draw(t, "minutes")) * time.Minute)
			compare(t, table, m, now)
		}
	})
}

func throughSnapshot(table *Table) (*Table, error) {
	var file bytes.Buffer
	if err := encodeSnapshot(&file, snapshotHead{Version: snapshotVersion, Clients: table.Len()}, table); err != nil {
		return nil, err
	}
	table, _, err := decodeSnapshot(&file, table.now, nil)
	return table, err
}

// nameOf returns a client's name, for every third client with a source.
func nameOf(i int) string {
	if i%3 == 0 {
		return fmt.Sprint("attribute:tenant=c", i)
	}
	return fmt.Sprint("c", i)
}

// unqualified counts the names without a source, in the model.
func (m model) unqualified() (n int) {
	for name := range m {
		if !policy.NamesSource(name) {
			n++
		}
	}
	return n
}

func compare(t *rapid.T, table *Table, m model, now time.Time) {
	t.Helper()
	for i := range 14 {
		name := nameOf(i)
		got := ""
		if g, ok := table.Grant(name); ok {
			got = g.Plan + FormatLimits(g.Limits)
		}
		if want := m.grant(name, now); got != want {
			t.Fatalf("%s has %q, want %q", name, got, want)
		}
	}
	if got, want := table.Unqualified(), m.unqualified(); table.Len() == len(m) && got != want {
		t.Fatalf("%d names have no source, want %d", got, want)
	}
	var all []string
	seen := map[*policy.Grant]bool{}
	_ = table.Grants(func(g *policy.Grant) error {
		if seen[g] {
			t.Fatalf("grant %+v comes twice", g)
		}
		seen[g] = true
		all = append(all, g.Plan+FormatLimits(g.Limits))
		return nil
	})
	slices.Sort(all)
	want := m.grants(now)
	for _, w := range want {
		if !slices.Contains(all, w) {
			t.Fatalf("grants %q, want %q", all, want)
		}
	}
	for _, g := range all { // one whose last client's time is over may stay until the base is built anew
		if !slices.ContainsFunc(slices.Collect(maps.Values(m)), func(r row) bool { return r.plan+r.limits == g }) {
			t.Fatalf("grant %q is nobody's, of %q", g, want)
		}
	}
	if n := len(all); len(slices.Compact(all)) != n {
		t.Fatalf("grants %q come twice", all)
	}
}

// A change of many builds the base anew, and one of few does not.
func TestBaseIsBuiltAnew(t *testing.T) {
	table, err := newLoad(time.Now, nil, nil).table()
	if err != nil {
		t.Fatal(err)
	}
	first := table.base
	put := func(from, to int) {
		changes := map[string]*row{}
		for i := from; i < to; i++ {
			changes[fmt.Sprint(i)] = &row{client: fmt.Sprint(i), plan: "gold", from: since, until: forever}
		}
		if table, err = table.with(changes, nil); err != nil {
			t.Fatal(err)
		}
	}
	put(0, leastOver)
	if table.base != first || table.Len() != leastOver {
		t.Errorf("the base was built anew for %d of %d", leastOver, table.Len())
	}
	put(leastOver, leastOver+1)
	if table.base == first || len(table.over) != 0 || table.Len() != leastOver+1 {
		t.Errorf("the base was not built anew for %d of %d", leastOver+1, table.Len())
	}
	for i := range leastOver + 1 {
		if _, ok := table.Grant(fmt.Sprint(i)); !ok {
			t.Fatalf("client %d is lost", i)
		}
	}
}

// The client of a bad row keeps its grant, and the table before the change stays unchanged.
func TestBadRow(t *testing.T) {
	table, err := NewTable(Client{Name: "acme", Plan: "gold"}, Client{Name: "b", Plan: "gold"})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range []row{
		{client: "b", limits: "1/0s", until: forever},
		{client: "b", plan: "gold", limits: "1/1s", until: forever},
		{client: "b", until: forever},
		{client: "b", plan: "gold", from: forever, until: forever},
		{client: "b\x00", plan: "gold", until: forever},
		{client: "", plan: "gold", until: forever},
	} {
		next, err := table.with(map[string]*row{"acme": nil, "b": &r}, nil)
		if err != nil || next.Len() != 1 || len(next.BadRows()) != 1 || len(table.BadRows()) != 0 {
			t.Fatalf("%+v: %v, %d", r, err, next.Len())
		}
		if g, ok := next.Grant("b"); !ok || g.Plan != "gold" {
			t.Errorf("%+v: b has %v", r, g)
		}
		if next, err = next.rebuilt(); err != nil || len(next.BadRows()) != 1 {
			t.Errorf("%+v: built anew: %v, %v", r, err, next.BadRows())
		}
	}
	if g, ok := table.Grant("acme"); !ok || g.Plan != "gold" || table.Len() != 2 {
		t.Errorf("acme has %v", g)
	}
	// An expired row may be invalid, and deletes its client.
	if next, err := table.with(map[string]*row{"b": {client: "b", limits: "?", from: since, until: 1}}, nil); err != nil || next.Len() != 1 || len(next.BadRows()) != 0 {
		t.Error(err)
	}
}

// A secret under a source that it can't have, as after names were changed to begin with client_ip=,
// is masked in the error of its row.
func TestBadRowMasksSecrets(t *testing.T) {
	const secret = "sk_live_4f9a8b7c6d5e4f3a"
	for _, name := range []string{"header:x-api-key=" + secret, "client_ip=" + secret, "client_ip=" + secret + "/24"} {
		table, err := NewTable()
		if err == nil {
			table, err = table.with(map[string]*row{name: {client: name, plan: "gold", until: forever}}, nil)
		}
		if err != nil || len(table.BadRows()) != 1 {
			t.Fatalf("%s: %v", name, err)
		}
		if text := table.BadRows()[0].Error(); strings.Contains(text, "sk_live") || !strings.Contains(text, "sk_l") || !strings.Contains(text, "accepted: ") {
			t.Errorf("the error is %s", text)
		}
	}
}

// A snapshot that is not whole, or of another version, is refused, whatever is wrong with it.
func TestSnapshotsThatAreRefused(t *testing.T) {
	table, err := NewTable(Client{Name: "acme", Plan: "gold"}, Client{Name: "b", Plan: "gold"})
	if err != nil {
		t.Fatal(err)
	}
	encoded := func(h snapshotHead) []byte {
		var file bytes.Buffer
		if err := encodeSnapshot(&file, h, table); err != nil {
			t.Fatal(err)
		}
		return file.Bytes()
	}
	good := encoded(snapshotHead{Version: snapshotVersion, Clients: 2})
	if _, _, err := decodeSnapshot(bytes.NewReader(good), time.Now, nil); err != nil {
		t.Fatal(err)
	}
	for name, data := range map[string][]byte{
		"of more clients":    encoded(snapshotHead{Version: snapshotVersion, Clients: 3}),
		"of a newer version": encoded(snapshotHead{Version: snapshotVersion + 1, Clients: 2}),
		"empty":              nil,
		"text":               []byte("clients"),
		"with a changed sum": append(slices.Clone(good[:len(good)-8]), 1, 2, 3, 4, 5, 6, 7, 8),
	} {
		if _, _, err := decodeSnapshot(bytes.NewReader(data), time.Now, nil); err == nil {
			t.Errorf("one %s is accepted", name)
		}
	}
	for n := range good {
		if _, _, err := decodeSnapshot(bytes.NewReader(good[:n]), time.Now, nil); err == nil {
			t.Errorf("one cut after %d of %d bytes is accepted", n, len(good))
		}
	}
}

func FuzzSnapshot(f *testing.F) {
	table, err := NewTable(Client{Name: "acme", Plan: "gold"}, Client{Name: "b", Limits: mustLimits("1/1s"), Until: time.Unix(1<<33, 0)})
	if err != nil {
		f.Fatal(err)
	}
	var file bytes.Buffer
	if err := encodeSnapshot(&file, snapshotHead{Version: snapshotVersion, Clients: 2}, table); err != nil {
		f.Fatal(err)
	}
	f.Add(file.Bytes())
	f.Add(file.Bytes()[:file.Len()/2])
	f.Add([]byte("{}"))
	f.Fuzz(func(t *testing.T, data []byte) {
		table, h, err := decodeSnapshot(bytes.NewReader(data), time.Now, nil)
		if err == nil && (h.Version != snapshotVersion || table.Len() > h.Clients) {
			t.Errorf("%+v, %d clients", h, table.Len())
		}
	})
}

func mustLimits(text string) map[string][]weir.Limit {
	l, err := ParseLimits(text)
	if err != nil {
		panic(err)
	}
	return l
}
