package model

import (
	"encoding/json"
	"fmt"
	"strings"
)

// UnknownError says that a config is of a model that no family describes. A rough
// plan of it may be possible.
type UnknownError struct {
	Type   string                     // its model_type, or the class of diffusers
	Config map[string]json.RawMessage // the whole file
}

func (e *UnknownError) Error() string {
	if e.Diffusers() {
		return fmt.Sprintf("%s, a model of diffusers, has no family here; ashlar plan on the command line gives a rough plan", e.Type)
	}
	return fmt.Sprintf("model_type %q has no family here; ashlar plan on the command line gives a rough plan. Families are %s", e.Type, strings.Join(modelTypes(), ", "))
}

// Diffusers reports whether the file is one of diffusers.
func (e *UnknownError) Diffusers() bool { return e.Config["model_type"] == nil }

// Class is what the model is called: its class, or its model_type.
func (e *UnknownError) Class() string {
	f := newFields(&Model{}, e.Config, "")
	if class := f.architecture(); class != "" {
		return class
	}
	return e.Type
}

// DTypeOf is the type of the weights that a config names; empty if it names none.
func DTypeOf(config map[string]json.RawMessage) string {
	f := newFields(&Model{}, config, "")
	for _, name := range inner {
		if of := f.object(name); of != nil {
			return of.dtype(f)
		}
	}
	return f.dtype(f)
}

// Parse reads the fields of a config without understanding them.
func Parse(data []byte) (map[string]json.RawMessage, error) { return parse(data) }
