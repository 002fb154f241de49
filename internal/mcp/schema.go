package mcp

import (
	"encoding/json"
	"fmt"
	"reflect"

	"github.com/google/jsonschema-go/jsonschema"
)

// outputSchema is the schema of a tool that answers with one of some documents.
// Every document has the version of all of them, and what was cut.
func outputSchema(documents []reflect.Type) (*jsonschema.Schema, error) {
	anything := &jsonschema.ForOptions{TypeSchemas: map[reflect.Type]*jsonschema.Schema{reflect.TypeFor[json.RawMessage](): {}}}
	cut, err := jsonschema.For[[]Cut](nil)
	if err != nil {
		return nil, err
	}
	cut.Description = "the lists that are not shown whole; give max_items to see more"
	out := &jsonschema.Schema{Type: "object"}
	for _, t := range documents {
		s, err := jsonschema.ForType(t, anything)
		if err != nil {
			return nil, fmt.Errorf("schema of %v: %w", t, err)
		}
		s.Properties["schema"] = &jsonschema.Schema{Type: "integer", Description: "the version of all documents"}
		s.Properties["cut"] = cut.CloneSchemas()
		s.PropertyOrder = append([]string{"schema"}, append(s.PropertyOrder, "cut")...)
		s.Required = append(s.Required, "schema")
		out.AnyOf = append(out.AnyOf, s)
	}
	if len(out.AnyOf) == 1 {
		return out.AnyOf[0], nil
	}
	return out, nil
}
