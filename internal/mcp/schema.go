package mcp

import (
	"encoding/json"
	"fmt"
	"reflect"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/ashlar-mem/ashlar/internal/timeline"
	"github.com/ashlar-mem/ashlar/internal/view"
)

// outputSchema is the schema of a tool that answers with one of some documents.
// Every document has the version of all of them, and what was cut.
func outputSchema(documents []reflect.Type) (*jsonschema.Schema, error) {
	cut, err := schemaOf(reflect.TypeFor[[]Cut]())
	if err != nil {
		return nil, err
	}
	cut.Description = "the lists that are not shown whole: where ([] stands for every row of the list around it), how many of the entries are shown, and how many the longest of these lists has; max_items gives more"
	out := &jsonschema.Schema{Type: "object"}
	for _, t := range documents {
		s, err := schemaOf(t)
		if err != nil {
			return nil, err
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

// schemaOf describes what encoding/json writes for a type of a document. Its
// fields are those that the page's types have, too.
func schemaOf(t reflect.Type) (*jsonschema.Schema, error) {
	if t == reflect.TypeFor[json.RawMessage]() {
		return &jsonschema.Schema{}, nil
	}
	switch t.Kind() {
	case reflect.Bool:
		return &jsonschema.Schema{Type: "boolean"}, nil
	case reflect.String:
		return &jsonschema.Schema{Type: "string"}, nil
	case reflect.Int, reflect.Int32, reflect.Int64, reflect.Uint32, reflect.Uint64:
		return &jsonschema.Schema{Type: "integer"}, nil
	case reflect.Float64:
		return &jsonschema.Schema{Type: "number"}, nil
	case reflect.Interface:
		return &jsonschema.Schema{}, nil
	case reflect.Struct:
		return structSchema(t)
	case reflect.Pointer, reflect.Slice, reflect.Array, reflect.Map:
		s, err := schemaOf(t.Elem())
		switch {
		case err != nil:
			return nil, err
		case t.Kind() == reflect.Slice:
			s = &jsonschema.Schema{Type: "array", Items: s}
		case t.Kind() == reflect.Array:
			return &jsonschema.Schema{Type: "array", Items: s}, nil
		case t.Kind() == reflect.Map:
			s = &jsonschema.Schema{Type: "object", AdditionalProperties: s}
		}
		if s.Type != "" { // each of them may be null
			s.Type, s.Types = "", []string{s.Type, "null"}
		}
		return s, nil
	}
	return nil, fmt.Errorf("schema: %v has no form in JSON", t)
}

func structSchema(t reflect.Type) (*jsonschema.Schema, error) {
	out := &jsonschema.Schema{Type: "object", Properties: map[string]*jsonschema.Schema{}, AdditionalProperties: &jsonschema.Schema{Not: &jsonschema.Schema{}}}
	for _, f := range view.Fields(t) {
		if f.Type == reflect.TypeFor[timeline.Site]() {
			continue // only the page gets them
		}
		s, err := schemaOf(f.Type)
		if err != nil {
			return nil, fmt.Errorf("%v.%s: %w", t, f.Name, err)
		}
		out.Properties[f.Name] = s
		out.PropertyOrder = append(out.PropertyOrder, f.Name)
		if !f.Optional {
			out.Required = append(out.Required, f.Name)
		}
	}
	return out, nil
}
