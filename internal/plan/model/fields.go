package model

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Upper bounds of what a field may say. They are far above any model, and low
// enough that no product of two of them overflows, and that a plan, whose memory
// grows with the layers, takes little over a gigabyte.
const (
	maxWidth     = 1 << 24
	maxLayers    = 1 << 8
	maxVocab     = 1 << 28
	maxPositions = 1 << 31
	maxExperts   = 1 << 16
)

// fields is one JSON object of the file. The first error sticks; every getter
// then returns a harmless value, so that a family's reader is a plain list.
type fields struct {
	model *Model
	raw   map[string]json.RawMessage
	at    string // "" or "text_config."
	used  map[string]bool
	err   error
}

func newFields(m *Model, raw map[string]json.RawMessage, at string) *fields {
	return &fields{model: m, raw: raw, at: at, used: map[string]bool{}}
}

func (f *fields) fail(format string, args ...any) {
	if f.err == nil {
		f.err = fmt.Errorf(format, args...)
	}
}

func (f *fields) assume(name, value, why string) {
	f.model.Assumed = append(f.model.Assumed, Assumption{Field: f.at + name, Value: value, Why: why})
}

func (f *fields) ignore(name, value, why string) {
	f.model.Ignored = append(f.model.Ignored, Assumption{Field: f.at + name, Value: value, Why: why})
}

// state is what the file says about a field.
type state int

const (
	missing state = iota
	null
	given
)

// why words the reason for a value that the file does not give.
func (s state) why(reason string) string {
	if s == null {
		return "null in the file; " + reason
	}
	return "not in the file; " + reason
}

func (f *fields) preset() string { return "transformers' default for " + f.model.Family }

// find looks a field up under all of its spellings. Two spellings that
// disagree are an error: which one counts depends on transformers' version.
func (f *fields) find(names ...string) (json.RawMessage, string, state) {
	found, at, st := json.RawMessage(nil), names[0], missing
	for _, name := range names {
		raw, ok := f.raw[name]
		if !ok {
			continue
		}
		f.used[name] = true
		switch {
		case isNull(raw):
			if st == missing {
				st = null
			}
		case st != given:
			found, at, st = raw, name, given
		case !bytes.Equal(bytes.TrimSpace(found), bytes.TrimSpace(raw)):
			f.fail("%s is %s and %s is %s, two names of one thing: remove one", f.at+at, show(found), f.at+name, show(raw))
		}
	}
	return found, at, st
}

func isNull(raw json.RawMessage) bool { return string(bytes.TrimSpace(raw)) == "null" }

// show prints a value in a message, short and on one line.
func show(raw json.RawMessage) string {
	s := []rune(oneLine(string(raw)))
	if len(s) > 40 {
		return string(s[:40]) + "..."
	}
	return string(s)
}

// whole reads a whole number from low to high.
func (f *fields) whole(raw json.RawMessage, name string, low, high int) int {
	text := string(bytes.TrimSpace(raw))
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		// Python writes 1e6 and 4096.0 for floats that hold whole numbers.
		x, ferr := strconv.ParseFloat(text, 64)
		if ferr != nil || x != math.Trunc(x) || math.Abs(x) > 1<<53 || text[0] == '"' {
			f.fail("%s is %s; it must be a whole number from %d to %d", f.at+name, show(raw), low, high)
			return low
		}
		n = int64(x)
	}
	if n < int64(low) || n > int64(high) {
		f.fail("%s is %s; it must be a whole number from %d to %d", f.at+name, show(raw), low, high)
		return low
	}
	return int(n)
}

// count reads a number of at least 1. Missing and null give the default.
func (f *fields) count(def, high int, names ...string) int {
	return f.number(def, 1, high, names...)
}

// number is count with a lower bound of its own.
func (f *fields) number(def, low, high int, names ...string) int {
	raw, name, st := f.find(names...)
	if st != given {
		f.assume(name, strconv.Itoa(def), st.why(f.preset()))
		return def
	}
	return f.whole(raw, name, low, high)
}

// optional reads a number for which null means "none". A missing field gives
// the default, none if that is 0.
func (f *fields) optional(def, high int, names ...string) (int, state) {
	raw, name, st := f.find(names...)
	switch st {
	case given:
		return f.whole(raw, name, 1, high), given
	case missing:
		if def > 0 {
			f.assume(name, strconv.Itoa(def), st.why(f.preset()))
		}
		return def, missing
	}
	return 0, null
}

// derived reads a number that is computed from others if the file leaves it
// out.
func (f *fields) derived(value, high int, rule string, names ...string) int {
	raw, name, st := f.find(names...)
	if st == given {
		return f.whole(raw, name, 1, high)
	}
	f.assume(name, strconv.Itoa(value), st.why(rule))
	return value
}

// flag reads true or false.
func (f *fields) flag(def bool, names ...string) bool {
	raw, name, st := f.find(names...)
	if st != given {
		f.assume(name, strconv.FormatBool(def), st.why(f.preset()))
		return def
	}
	switch string(bytes.TrimSpace(raw)) {
	case "true":
		return true
	case "false":
		return false
	}
	f.fail("%s is %s; it must be true or false", f.at+name, show(raw))
	return def
}

// share reads a probability.
func (f *fields) share(def float64, names ...string) float64 {
	raw, name, st := f.find(names...)
	if st != given {
		f.assume(name, decimal(def), st.why(f.preset()))
		return def
	}
	x, ok := f.float(raw, name)
	if ok && (x < 0 || x > 1) {
		f.fail("%s is %s; a dropout must be from 0 to 1", f.at+name, show(raw))
	}
	return x
}

// cap reads a soft cap, for which null means none.
func (f *fields) cap(def float64, name string) float64 {
	raw, _, st := f.find(name)
	switch st {
	case missing:
		text := "none"
		if def > 0 {
			text = decimal(def)
		}
		f.assume(name, text, st.why(f.preset()))
		return def
	case null:
		return 0
	}
	x, ok := f.float(raw, name)
	if ok && x <= 0 {
		f.fail("%s is %s; it must be above 0, or null for none", f.at+name, show(raw))
	}
	return x
}

func (f *fields) float(raw json.RawMessage, name string) (float64, bool) {
	var x float64
	if err := json.Unmarshal(raw, &x); err != nil {
		f.fail("%s is %s; it must be a number", f.at+name, show(raw))
		return 0, false
	}
	return x, true
}

func decimal(x float64) string { return strconv.FormatFloat(x, 'g', -1, 64) }

// word reads a string; missing and null are empty.
func (f *fields) word(names ...string) string {
	raw, name, st := f.find(names...)
	if st != given {
		return ""
	}
	var s string
	if err := json.Unmarshal(raw, &s); err != nil {
		f.fail("%s is %s; it must be a string", f.at+name, show(raw))
	}
	return s
}

// named is word with a default that is listed.
func (f *fields) named(def string, names ...string) string {
	_, name, st := f.find(names...)
	if st != given {
		f.assume(name, def, st.why(f.preset()))
		return def
	}
	return f.word(names...)
}

// object reads a nested object; missing and null are nil.
func (f *fields) object(name string) *fields {
	raw, _, st := f.find(name)
	if st != given {
		return nil
	}
	var inner map[string]json.RawMessage
	if err := json.Unmarshal(raw, &inner); err != nil || inner == nil {
		f.fail("%s is %s; it must be an object", f.at+name, show(raw))
		return nil
	}
	return newFields(f.model, inner, f.at+name+".")
}

// dtype is the type of the weights; both objects of a multimodal file may name
// one, and the text model's counts. dtype is the new name, and wins.
func (f *fields) dtype(outer *fields) string {
	for _, in := range []*fields{f, outer} {
		for _, name := range []string{"dtype", "torch_dtype"} {
			text := in.word(name)
			if text == "" {
				continue
			}
			switch strings.TrimPrefix(text, "torch.") {
			case "float32", "float":
				return "float32"
			case "bfloat16":
				return "bfloat16"
			case "float16", "half":
				return "float16"
			}
			in.fail("%s is %q; plans are for float32, bfloat16 and float16", in.at+name, text)
			return ""
		}
	}
	return ""
}
