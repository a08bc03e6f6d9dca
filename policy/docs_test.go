package policy_test

import (
	"io/fs"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/weirlimit/weir/policy"
)

// What the documentation shows is accepted, by the parser and by the schema.
func TestDocumentedSamples(t *testing.T) {
	text, err := os.ReadFile("../docs/policies.md")
	if err != nil {
		t.Fatal(err)
	}
	samples := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllStringSubmatch(string(text), -1)
	if len(samples) < 5 {
		t.Errorf("there are %d samples", len(samples))
	}
	s := compiledSchema(t)
	for _, sample := range samples {
		if _, err := policy.Parse([]byte(sample[1]), "policies.md"); err != nil {
			t.Errorf("%s\n%v", sample[1], err)
		}
		if err := s.Validate(instance(t, sample[1])); err != nil {
			t.Errorf("%s\n%v", sample[1], err)
		}
	}
}

// Samples of policies in the documentation and in examples have no warning: nobody should copy a
// policy that clients can avoid.
func TestSamplesHaveNoWarning(t *testing.T) {
	fenced, indented, quoted := regexp.MustCompile("(?s)```yaml\n(policies:.*?)```"),
		regexp.MustCompile(`(?m)^    policies:\n(?:      .*\n)+`), regexp.MustCompile("(?s)`\n(policies:\n.*?)`")
	samples := 0
	err := filepath.WalkDir("..", func(path string, _ fs.DirEntry, err error) error {
		example := strings.HasSuffix(path, "_test.go") && strings.HasPrefix(filepath.Base(path), "example")
		if err != nil || !example && filepath.Ext(path) != ".md" {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		found := indented.FindAllString(string(text), -1)
		for _, sample := range append(fenced.FindAllStringSubmatch(string(text), -1), quoted.FindAllStringSubmatch(string(text), -1)...) {
			found = append(found, sample[1])
		}
		for _, sample := range found {
			config, err := policy.Parse([]byte(sample), path)
			if err != nil {
				continue // a sample of errors
			}
			samples++
			set, err := policy.New(config, policy.Options{})
			if err != nil {
				t.Errorf("%s: %v", path, err)
				continue
			}
			for _, w := range set.Warnings() {
				if !w.Note {
					t.Errorf("%v, in the sample\n%s", w, sample)
				}
			}
		}
		return nil
	})
	if err != nil || samples < 12 {
		t.Errorf("%d samples: %v", samples, err)
	}
}

// In the sample file the budget of a tenant does not grow with the API keys and addresses that a
// client makes up.
func TestSampleFileBoundsInventedKeys(t *testing.T) {
	set, err := policy.Load(t.Context(), "../examples/weir.yaml", policy.Options{})
	if err != nil {
		t.Fatal(err)
	}
	allowed := 0
	for i := range 20 {
		d, err := set.Check(t.Context(), &policy.Request{
			Method: "POST", Path: "/api/completions", ClientIP: netip.AddrFrom4([4]byte{192, 0, 2, byte(i)}),
			Header:     http.Header{"X-Api-Key": {"invented " + string(rune('a'+i))}},
			Attributes: map[string]string{"tenant": "acme", "tokens": "1000"},
		})
		if err != nil {
			t.Fatal(err)
		}
		if d.Allowed {
			allowed++
		}
	}
	if allowed != 10 {
		t.Errorf("%d requests of 1000 tokens passed under 10000/month, want 10", allowed)
	}
}
