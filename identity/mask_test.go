package identity_test

import (
	"strings"
	"testing"

	"github.com/weirlimit/weir/identity"
)

func TestMask(t *testing.T) {
	for name, want := range map[string]string{
		"":                                "",
		"acme":                            "#822b33ad",
		"bob@example.com":                 "#5ff860bf",
		"sk_live_4f9a8b7c6d5e":            "sk_l…#",
		strings.Repeat("k", 16):           "kkkk…#",
		strings.Repeat("k", 128):          "kkkk…#",
		strings.Repeat("k", 129):          "#",
		strings.Repeat("é", 20):           "#",
		"name, with a comma and a blank":  "#",
		"line\nbreak and more characters": "#",
	} {
		got := identity.Mask(name)
		if !strings.HasPrefix(got, want) || len(name) > 5 && strings.Contains(got, name[:5]) || name != "" && len(got)-strings.Index(got, "#") != 9 {
			t.Errorf("%q is %s, want %s", name, got, want)
		}
		if name == "" {
			continue
		}
		if part := identity.MaskPart(identity.Encode(name)); part != got {
			t.Errorf("%q as a part of a key is %s, want %s", name, part, got)
		}
	}
	if a, b := identity.Mask("acme"), identity.Mask("acme2"); a == b {
		t.Errorf("two names have the form %s", a)
	}
	if got := identity.MaskPart("-"); got != "-" {
		t.Errorf("no value is %s", got)
	}
}

// Every value has one form, by its name and as a part of a key, and the form has at most the first
// four characters.
func FuzzMask(f *testing.F) {
	for _, seed := range []string{"acme", "sk_live_4f9a8b7c6d5e", "%2D", "-", "#", "a,b", "\xff\x00", strings.Repeat("%", 60), strings.Repeat("é", 40)} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, name string) {
		masked := identity.Mask(name)
		if name != "" && identity.MaskPart(identity.Encode(name)) != masked {
			t.Errorf("%q: %s, as a part %s", name, masked, identity.MaskPart(identity.Encode(name)))
		}
		if len(masked) > len("abcd…#01234567") {
			t.Errorf("%q: %s", name, masked)
		}
	})
}

func TestMaskPartOfAnyText(*testing.T) {
	for _, part := range []string{"", "%", "%2", "%zz", "#", "#x", "#" + strings.Repeat("A", 43), "a%2"} {
		identity.MaskPart(part) // does not panic
	}
}
