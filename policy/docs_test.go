package policy_test

import (
	"os"
	"regexp"
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
