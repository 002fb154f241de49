package view

import (
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/ashlar-mem/ashlar/internal/timeline"
)

// placedFrame is a frame as the page shows it.
type placedFrame struct {
	timeline.Frame
	Text  string         `json:"text"`
	User  bool           `json:"user"`            // it is of the user's own program
	Extra map[string]any `json:"extra,omitempty"` // what torch.fx adds
}

func newPlacedFrame(f timeline.Frame) placedFrame {
	return placedFrame{Frame: f, Text: f.String(), User: f.User()}
}

// worded returns the document of a command with its stacks in words, so that the
// page need not know how they are chosen: every frame is a placedFrame, and what
// has a [timeline.Site] has it as the text "site".
func worded(document any) any {
	if v := reflect.ValueOf(document); hasWords(v.Type()) {
		return wordedValue(v)
	}
	return document
}

func wordedValue(v reflect.Value) any {
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() {
			return nil
		}
		return wordedValue(v.Elem())
	case reflect.Slice:
		if v.IsNil() {
			return nil
		}
		out := make([]any, v.Len())
		for i := range out {
			out[i] = wordedValue(v.Index(i))
		}
		return out
	}
	switch x := v.Interface().(type) {
	case timeline.Frame:
		return newPlacedFrame(x)
	case timeline.Site:
		return siteText(x)
	}
	out := map[string]any{}
	for _, f := range Fields(v.Type()) {
		switch field := v.FieldByIndex(f.index); {
		case f.Optional && field.IsZero():
		case f.words:
			out[f.Name] = wordedValue(field)
		default:
			out[f.Name] = field.Interface()
		}
	}
	return out
}

// siteText is nil for a site without a stack. It leaves out what distinguishes
// sites that look the same: the page opens the stacks.
func siteText(s timeline.Site) *string {
	if s == (timeline.Site{}) {
		return nil
	}
	s.Via = nil
	text := s.String()
	return &text
}

// Field is a field of a document as the page gets it.
type Field struct {
	Name     string
	Type     reflect.Type
	Optional bool // it is left out if it is zero

	index []int
	words bool // there are frames or sites in it
}

var knownFields sync.Map // reflect.Type -> []Field

// Fields lists the fields of a struct of a document: those that encoding/json
// writes, and sites.
func Fields(t reflect.Type) []Field {
	if known, ok := knownFields.Load(t); ok {
		return known.([]Field)
	}
	all := appendFields(nil, t, nil)
	out := slices.DeleteFunc(slices.Clone(all), func(f Field) bool { // a field hides those of the same name that are embedded
		return slices.ContainsFunc(all, func(o Field) bool { return o.Name == f.Name && len(o.index) < len(f.index) })
	})
	knownFields.Store(t, out)
	return out
}

func appendFields(out []Field, t reflect.Type, embedded []int) []Field {
	for f := range t.Fields() {
		index := append(slices.Clone(embedded), f.Index...)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case f.Anonymous && f.Type.Kind() == reflect.Pointer:
			out = appendFields(out, f.Type.Elem(), index)
			continue
		case f.Anonymous:
			out = appendFields(out, f.Type, index)
			continue
		case f.Type == reflect.TypeFor[timeline.Site]():
			name = "site"
		case name == "-" || !f.IsExported():
			continue
		case name == "":
			name = f.Name
		}
		out = append(out, Field{name, f.Type, strings.Contains(options, "omit"), index, hasWords(f.Type)})
	}
	return out
}

func hasWords(t reflect.Type) bool {
	if Shown(t) != t {
		return true
	}
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice:
		return hasWords(t.Elem())
	case reflect.Struct:
		for _, f := range Fields(t) {
			if f.words {
				return true
			}
		}
	}
	return false
}

// Shown returns the type that stands for another one in the documents of the
// page: the same one but for frames and sites.
func Shown(t reflect.Type) reflect.Type {
	switch t {
	case reflect.TypeFor[timeline.Frame]():
		return reflect.TypeFor[placedFrame]()
	case reflect.TypeFor[timeline.Site]():
		return reflect.TypeFor[*string]()
	}
	return t
}
