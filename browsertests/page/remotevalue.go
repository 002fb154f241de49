package page

import (
	"encoding/json"
	"fmt"
)

// remoteValue is a value of JavaScript as WebDriver BiDi writes it.
type remoteValue struct {
	Type  string          `json:"type"`
	Value json.RawMessage `json:"value"`
}

// plain is the value as encoding/json would have read it.
func (v remoteValue) plain() (any, error) {
	switch v.Type {
	case "undefined", "null":
		return nil, nil
	case "array":
		var items []remoteValue
		if err := json.Unmarshal(v.Value, &items); err != nil {
			return nil, err
		}
		list := make([]any, len(items))
		for i, item := range items {
			var err error
			if list[i], err = item.plain(); err != nil {
				return nil, err
			}
		}
		return list, nil
	case "object":
		var pairs [][2]json.RawMessage
		if err := json.Unmarshal(v.Value, &pairs); err != nil {
			return nil, err
		}
		fields := map[string]any{}
		for _, pair := range pairs {
			var key string
			var field remoteValue
			if err := json.Unmarshal(pair[0], &key); err != nil {
				return nil, err
			}
			err := json.Unmarshal(pair[1], &field)
			if err == nil && field.Type != "undefined" {
				fields[key], err = field.plain()
			}
			if err != nil {
				return nil, err
			}
		}
		return fields, nil
	case "string", "number", "boolean":
		if v.Type == "number" && string(v.Value) == `"-0"` {
			return 0, nil
		}
		return v.Value, nil
	}
	return nil, fmt.Errorf("a script gives a %s, which JSON has not", v.Type)
}
