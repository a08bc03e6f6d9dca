package policy_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v3"

	"github.com/weirlimit/weir/policy"
)

func compiledSchema(t *testing.T) *jsonschema.Schema {
	t.Helper()
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(policy.Schema()))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("weir.schema.json", document); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile("weir.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// instance is a YAML document as JSON has it.
func instance(t *testing.T, text string) any {
	t.Helper()
	var v any
	if err := yaml.Unmarshal([]byte(text), &v); err != nil {
		t.Fatal(err)
	}
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	found, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func TestSchemaTakesWhatIsValidAndNothingOfAnotherShape(t *testing.T) {
	s := compiledSchema(t)
	for _, text := range valid {
		if err := s.Validate(instance(t, text)); err != nil {
			t.Errorf("%s\n%v", text, err)
		}
	}
	for _, c := range invalid {
		if !c.shape {
			continue
		}
		if err := s.Validate(instance(t, c.text)); err == nil {
			t.Errorf("the schema takes\n%s", c.text)
		}
	}
}

// The names that the parser knows are those of its own errors.
func TestSchemaNamesWhatTheParserKnows(t *testing.T) {
	var schema struct {
		Properties map[string]json.RawMessage
		Defs       map[string]struct {
			Properties map[string]json.RawMessage
			OneOf      []struct{ Properties map[string]json.RawMessage }
		} `json:"$defs"`
	}
	if err := json.Unmarshal(policy.Schema(), &schema); err != nil {
		t.Fatal(err)
	}
	var clients struct{ Properties map[string]json.RawMessage }
	if err := json.Unmarshal(schema.Properties["clients"], &clients); err != nil {
		t.Fatal(err)
	}
	for text, known := range map[string]map[string]json.RawMessage{
		"xyzzyx: 1":                             schema.Properties,
		"policies: []\nclients: {xyzzyx: 1}":    clients.Properties,
		"policies: [{xyzzyx: 1}]":               schema.Defs["policy"].Properties,
		one("match: {xyzzyx: 1}"):               schema.Defs["match"].Properties,
		one("match: {not: {xyzzyx: 1}}"):        schema.Defs["exclude"].Properties,
		one("limits: [{xyzzyx: 1}]"):            schema.Defs["limit"].OneOf[1].Properties,
		one("plans: {gold: [{xyzzyx: 1}]}"):     schema.Defs["limit"].OneOf[1].Properties,
		one("candidate: {xyzzyx: 1}, cost: 3 "): schema.Defs["limit"].OneOf[1].Properties,
	} {
		_, err := policy.Parse([]byte(text), "w.yaml")
		_, list, found := strings.Cut(fmt.Sprint(err), "xyzzyx is not known; accepted: ")
		list, _, _ = strings.Cut(list, "\n")
		var names []string
		for name := range known {
			names = append(names, name)
		}
		accepted := strings.Split(list, ", ")
		slices.Sort(accepted)
		if slices.Sort(names); !found || !slices.Equal(accepted, names) {
			t.Errorf("%s\nthe parser knows %q, the schema %q\n%v", text, accepted, names, err)
		}
	}
}
