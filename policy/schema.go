package policy

import (
	_ "embed" // of the schema
	"slices"
)

//go:embed weir.schema.json
var schema []byte

// Schema returns the JSON Schema of a configuration, for editors and for who writes files of policies with programs. It knows the shape; what [Parse] refuses besides is what a text
// of the right shape can still say that makes no sense.
func Schema() []byte { return slices.Clone(schema) }
