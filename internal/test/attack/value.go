package attack

import (
	"bytes"
	"context"
	"encoding/json"
	"math/big"

	"github.com/ashlar-mem/ashlar/snapshot"
)

// A value of a file is nil, a bool, an int64, a *big.Int, a float64, a string, a
// *List or a *Dict.

// List is a list, or a tuple in a pickle.
type List struct {
	Items []any
	Tuple bool
}

// Dict is a dictionary in the order of the file. A key may come twice.
type Dict struct {
	Keys   []any
	Values []any
}

// Get returns the value of a key, the last one if there are several, or nil.
func (d *Dict) Get(key string) any {
	for i := len(d.Keys) - 1; i >= 0; i-- {
		if d.Keys[i] == key {
			return d.Values[i]
		}
	}
	return nil
}

// Set sets a key.
func (d *Dict) Set(key string, v any) {
	for i := range d.Keys {
		if d.Keys[i] == key {
			d.Values[i] = v
			return
		}
	}
	d.Keys, d.Values = append(d.Keys, key), append(d.Values, v)
}

// list returns the items of a list, nil if it is none.
func list(v any) []any {
	if l, ok := v.(*List); ok {
		return l.Items
	}
	return nil
}

// parseJSON reads a JSON text as a value, with its keys in order.
func parseJSON(text []byte) (any, error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	return parseNext(d)
}

func parseNext(d *json.Decoder) (any, error) {
	t, err := d.Token()
	if err != nil {
		return nil, err
	}
	switch t := t.(type) {
	case json.Delim:
		if t == '{' {
			return parseDict(d)
		}
		return parseList(d)
	case json.Number:
		if n, err := t.Int64(); err == nil {
			return n, nil
		}
		if n, ok := new(big.Int).SetString(t.String(), 10); ok {
			return n, nil
		}
		f, _ := t.Float64()
		return f, nil
	default:
		return t, nil
	}
}

func parseDict(d *json.Decoder) (any, error) {
	out := &Dict{}
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return nil, err
		}
		v, err := parseNext(d)
		if err != nil {
			return nil, err
		}
		out.Keys, out.Values = append(out.Keys, key), append(out.Values, v)
	}
	_, err := d.Token()
	return out, err
}

func parseList(d *json.Decoder) (any, error) {
	out := &List{}
	for d.More() {
		v, err := parseNext(d)
		if err != nil {
			return nil, err
		}
		out.Items = append(out.Items, v)
	}
	_, err := d.Token()
	return out, err
}

// tree returns a snapshot as a value.
func tree(data []byte) (*Dict, error) {
	f, err := snapshot.Read(context.Background(), "seed", bytes.NewReader(data), snapshot.Options{})
	if err != nil {
		return nil, err
	}
	var text bytes.Buffer
	if err := snapshot.WriteJSON(&text, f); err != nil {
		return nil, err
	}
	v, err := parseJSON(text.Bytes())
	if err != nil {
		return nil, err
	}
	d, ok := v.(*Dict)
	if !ok {
		d = &Dict{}
		d.Set("segments", v)
	}
	return d, nil
}

// clone copies a value.
func clone(v any) any {
	switch v := v.(type) {
	case *List:
		out := &List{Tuple: v.Tuple, Items: make([]any, len(v.Items))}
		for i := range v.Items {
			out.Items[i] = clone(v.Items[i])
		}
		return out
	case *Dict:
		out := &Dict{Keys: append([]any{}, v.Keys...), Values: make([]any, len(v.Values))}
		for i := range v.Values {
			out.Values[i] = clone(v.Values[i])
		}
		return out
	}
	return v
}
