package replay

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestKeysAreReadAndWritten(t *testing.T) {
	for text, want := range map[string]string{
		"client_ip": "client_ip", "user-agent": "user-agent", "client_ip,path": "client_ip,path",
		"client_ip/48": "client_ip/48", "path,client_ip/24/64": "path,client_ip/24/64",
		" host , user,method": "host,user,method", //nolint:gocritic // spaces are let through
	} {
		if k, err := ParseKey(text); err != nil || k.String() != want {
			t.Errorf("%q: got %q, %v", text, k, err)
		}
	}
	if k := (Key{}); k.String() != "client_ip" {
		t.Errorf("the zero key is %q", k)
	}
	for _, text := range []string{
		"", "IP", "client_ip,", "client_ip,client_ip", "client_ip path", strings.Repeat("client_ip,", 1000),
		"client_ip/0", "client_ip/129", "client_ip/33/64", "client_ip/24/64/1", "client_ip48", "client_ip/+48",
	} {
		if _, err := ParseKey(text); err == nil || !strings.Contains(err.Error(), "accepted: one or more of client_ip, user") || len(err.Error()) > 350 {
			t.Errorf("%q: %v", text, err)
		}
	}
	for _, text := range []string{"ip", "path, ip"} {
		if _, err := ParseKey(text); err == nil || !strings.HasSuffix(err.Error(), "; did you mean client_ip?") {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestNoTwoTuplesOfFieldsAreOneKey(t *testing.T) {
	key, err := ParseKey("client_ip,path,user-agent")
	if err != nil {
		t.Fatal(err)
	}
	field := rapid.SliceOfN(rapid.SampledFrom([]byte("a,\x00\x01\x02\" ")), 0, 3)
	long := rapid.Custom(func(t *rapid.T) []byte {
		return bytes.Repeat(field.Draw(t, "part"), rapid.SampledFrom([]int{1, 1, 1, 400, 700}).Draw(t, "times"))
	})
	tuple := rapid.Custom(func(t *rapid.T) line {
		return line{address: long.Draw(t, "client_ip"), path: long.Draw(t, "path"), agent: long.Draw(t, "agent")}
	})
	rapid.Check(t, func(t *rapid.T) {
		a, b := tuple.Draw(t, "a"), tuple.Draw(t, "b")
		keyA, wholeA := key.of(nil, &a)
		keyB, _ := key.of(nil, &b)
		same := bytes.Equal(a.address, b.address) && bytes.Equal(a.path, b.path) && bytes.Equal(a.agent, b.agent)
		if bytes.Equal(keyA, keyB) != same {
			t.Fatalf("keys %q and %q", keyA, keyB)
		}
		if whole := len(a.address) > 0 && len(a.path) > 0 && len(a.agent) > 0; whole != wholeA {
			t.Fatalf("whole is %v", wholeA)
		}
		parts := key.split(string(keyA))
		for i, f := range [][]byte{a.address, a.path, a.agent} {
			if want := string(f); len(f) > 0 && len(f) <= maxKeyPart && parts[i] != want || len(f) == 0 && parts[i] != "-" {
				t.Fatalf("part %d is %q, want %q", i, parts[i], want)
			}
		}
	})
}

func TestALongFieldIsHeldShortAndApartFromItsEqualBeginnings(t *testing.T) {
	key, _ := ParseKey("path")
	base := bytes.Repeat([]byte("x"), 1<<20)
	var keys []string
	for _, end := range []string{"a", "b"} {
		k, whole := key.of(nil, &line{path: slices.Concat(base, []byte(end))})
		if len(k) > 2*maxKeyPart || !whole {
			t.Errorf("%d bytes, whole %v", len(k), whole)
		}
		keys = append(keys, string(k))
	}
	if keys[0] == keys[1] {
		t.Error("two paths are one key")
	}
}
