package model

import "slices"

// ropeTypes are the kinds of rotary positions that transformers computes.
var ropeTypes = []string{"default", "linear", "dynamic", "yarn", "longrope", "llama3", "proportional"}

// rope reads the rotary positions of heads of the given width. The files have
// rope_parameters; older ones have rope_scaling beside rope_theta.
func (f *fields) rope(width int) {
	m := f.model
	m.Rope = Rope{Tables: 1, Dim: width, Type: "default", PartialFactor: 1}
	if m.Family == "gemma3" || m.Family == "modernbert" {
		m.Rope.Tables = distinct(m.LayerTypes)
	}
	part, partial := f.partial()
	if partial {
		m.Rope.PartialFactor = part
	}
	if m.Family == "gpt_oss" {
		m.Rope.Type = "yarn"
	}
	flat := f.flatFactor()
	params := f.object("rope_parameters")
	if scaling := f.object("rope_scaling"); scaling != nil && len(scaling.raw) > 0 {
		params = scaling
	}
	_, theta := f.raw["rope_theta"]
	f.used["rope_theta"] = true
	switch {
	case params != nil:
		m.Rope.Type = "default"
		f.ropeParameters(params)
	case !theta:
		f.assume("rope_parameters", m.Rope.Type, "not in the file; "+f.preset())
	}
	if flat > 0 && !(params != nil && params.has("partial_rotary_factor")) {
		m.Rope.PartialFactor = flat
	}
	// The default kind turns a part of a head only where the family says so.
	if partial || m.Rope.Type != "default" && m.Rope.Type != "proportional" {
		m.Rope.Dim = int(float64(width) * m.Rope.PartialFactor)
	} else {
		m.Rope.PartialFactor = 1
	}
	if f.err == nil && (m.Rope.Dim < 2 || m.Rope.Dim%2 != 0) {
		f.fail("rotary positions turn %d dimensions of a head, which must be even and above 0: check head_dim and partial_rotary_factor", m.Rope.Dim)
	}
}

// partial is which part of a head turns unless the file says otherwise, of the
// families whose own frequencies turn a part.
func (f *fields) partial() (part float64, ok bool) {
	switch {
	case f.model.Linear != nil, f.model.Family == "gpt_neox":
		return 0.25, true
	case f.model.Family == "glm4":
		return 0.5, true
	case f.model.Family == "phi3":
		return 1, true
	}
	return 0, false
}

// ropeParameters reads one object of parameters, or one per layer type.
func (f *fields) ropeParameters(params *fields) {
	perType := false
	for _, t := range []LayerType{FullAttention, SlidingAttention} {
		if _, ok := params.raw[string(t)]; !ok {
			continue
		}
		perType = true
		// The full layers come first: where the types differ, theirs is named.
		if inner := params.object(string(t)); inner != nil && f.model.Rope.Type == "default" {
			f.ropeKind(inner)
		}
	}
	if !perType {
		f.ropeKind(params)
	}
	if params.err != nil && f.err == nil {
		f.err = params.err
	}
}

func (f *fields) ropeKind(params *fields) {
	kind := params.word("rope_type")
	if kind == "" {
		kind = params.word("type")
	}
	if kind == "" {
		kind = "default"
	}
	if raw, name, st := params.find("partial_rotary_factor"); st == given {
		if x, ok := params.float(raw, name); ok {
			if x <= 0 || x > 1 {
				params.fail("%s is %s; it must be above 0 and at most 1", params.at+name, show(raw))
			}
			f.model.Rope.PartialFactor = x
		}
	}
	// Multimodal files name their own kind; the text model computes the default.
	if kind == "mrope" && f.model.Linear != nil {
		kind = "default"
	}
	if f.model.Family == "phi3" && (kind == "su" || kind == "yarn") {
		kind = "longrope"
	}
	if !slices.Contains(ropeTypes, kind) {
		params.fail("%srope_type %q is not known; it must be one of %v", params.at, kind, ropeTypes)
	}
	f.model.Rope.Type = kind
	if params.err != nil && f.err == nil {
		f.err = params.err
	}
}

// flatFactor is a partial_rotary_factor beside the other fields, 0 for none.
func (f *fields) flatFactor() float64 {
	field := "partial_rotary_factor"
	if f.model.Family == "gpt_neox" {
		field = "rotary_pct"
	}
	raw, name, st := f.find(field)
	if st != given {
		return 0
	}
	x, ok := f.float(raw, name)
	if ok && (x <= 0 || x > 1) {
		f.fail("%s is %s; it must be above 0 and at most 1", f.at+name, show(raw))
	}
	return x
}

func (f *fields) has(name string) bool {
	raw, ok := f.raw[name]
	return ok && !isNull(raw)
}

func distinct(types []LayerType) int {
	seen := map[LayerType]bool{}
	for _, t := range types {
		seen[t] = true
	}
	return len(seen)
}
