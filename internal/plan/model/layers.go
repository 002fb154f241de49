package model

import (
	"encoding/json"
	"strconv"
)

// every is a row of layers of one kind in which each nth is full attention.
func every(layers, n int, kind LayerType) []LayerType {
	out := make([]LayerType, layers)
	for i := range out {
		out[i] = kind
		if (i+1)%n == 0 {
			out[i] = FullAttention
		}
	}
	return out
}

// uniform gives every layer one type. The families without layer_types have
// one; a file that says otherwise is meant for another family.
func (f *fields) uniform(kind LayerType) {
	f.model.LayerTypes = make([]LayerType, f.model.Layers)
	for i := range f.model.LayerTypes {
		f.model.LayerTypes[i] = kind
	}
	types, ok := f.givenLayers()
	if !ok {
		return
	}
	for i, t := range types {
		if t != kind {
			f.fail("%slayer_types has %q at layer %d, but all layers of %s are %s: remove it, or use the model_type that reads it",
				f.at, t, i, f.model.ModelType, kind)
			return
		}
	}
}

// windowed makes all layers sliding if there is a window.
func (f *fields) windowed(window int) {
	f.model.SlidingWindow = window
	if window > 0 {
		f.uniform(SlidingAttention)
	} else {
		f.uniform(FullAttention)
	}
}

// layers reads layer_types; the rule says what it is without the field.
func (f *fields) layers(def []LayerType, rule string) {
	_, name, st := f.find("layer_types")
	types, ok := f.givenLayers()
	if !ok {
		types = def
		f.assume(name, strconv.Itoa(len(def))+" layers", st.why(rule))
	}
	f.model.LayerTypes = types
	for i, t := range types {
		if t == SlidingAttention && f.model.SlidingWindow == 0 {
			f.fail("layer %d is sliding_attention but there is no sliding_window: set it (for qwen also use_sliding_window)", i)
			return
		}
	}
}

// givenLayers is the file's layer_types, checked.
func (f *fields) givenLayers() ([]LayerType, bool) {
	raw, name, st := f.find("layer_types")
	if st != given {
		return nil, false
	}
	var types []LayerType
	if err := json.Unmarshal(raw, &types); err != nil {
		f.fail("%s is %s; it must be a list of layer types or null", f.at+name, show(raw))
		return nil, false
	}
	if len(types) != f.model.Layers {
		f.fail("%s has %d entries but num_hidden_layers is %d: they must agree", f.at+name, len(types), f.model.Layers)
		return nil, false
	}
	for i, t := range types {
		if f.model.Linear != nil {
			t = remapped(t)
			types[i] = t
		}
		switch {
		case t == FullAttention, t == SlidingAttention && f.model.Linear == nil, t == LinearAttention && f.model.Linear != nil:
		default:
			f.fail("%s has %q at layer %d, which %s does not have: full_attention and %s can be planned",
				f.at+name, t, i, f.model.ModelType, f.otherLayer())
			return nil, false
		}
	}
	return types, true
}

func (f *fields) otherLayer() LayerType {
	if f.model.Linear != nil {
		return LinearAttention
	}
	return SlidingAttention
}

// remapped turns the names of older hybrid files into today's.
func remapped(t LayerType) LayerType {
	switch t {
	case "attention":
		return FullAttention
	case "mamba", "conv":
		return LinearAttention
	}
	return t
}

// qwenLayers reads the window and, for the dense families, the layers that use
// it: those from max_window_layers on. The window counts only with
// use_sliding_window.
func (f *fields) qwenLayers(dense bool) {
	use := f.flag(false, "use_sliding_window")
	window := 0
	if use {
		window, _ = f.optional(4096, maxPositions, "sliding_window")
	} else {
		f.used["sliding_window"] = true
	}
	if !dense {
		f.windowed(window)
		return
	}
	f.model.SlidingWindow = window
	first := f.model.Layers
	if window > 0 {
		first = f.number(28, 0, maxLayers, "max_window_layers")
	} else {
		f.used["max_window_layers"] = true
	}
	types := make([]LayerType, f.model.Layers)
	for i := range types {
		types[i] = FullAttention
		if window > 0 && i >= first {
			types[i] = SlidingAttention
		}
	}
	f.layers(types, "full attention before max_window_layers, sliding after it if there is a window")
}

// indices reads a list of layer numbers as a set.
func (f *fields) indices(name string) map[int]bool {
	raw, _, st := f.find(name)
	if st != given {
		return nil
	}
	var list []int
	if err := json.Unmarshal(raw, &list); err != nil {
		f.fail("%s is %s; it must be a list of layer numbers or null", f.at+name, show(raw))
		return nil
	}
	set := make(map[int]bool, len(list))
	for _, i := range list {
		set[i] = true
	}
	return set
}
