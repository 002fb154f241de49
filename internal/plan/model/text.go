package model

import (
	"encoding/json"
	"sort"
	"strings"
)

// text is the text_config of a multimodal file. A file without one is legal:
// transformers then takes all of the text model's defaults and does not look
// at fields beside it, which surprises people who put hidden_size there.
func (f *fields) text(fam *family) *fields {
	inner := f.object("text_config")
	if inner == nil {
		inner = newFields(f.model, map[string]json.RawMessage{}, "text_config.")
		f.assume("text_config", "all defaults", "not in the file; "+f.preset())
	}
	if kind := inner.word("model_type"); kind != "" && kind != fam.types[0] && kind != f.model.ModelType {
		inner.fail("text_config.model_type is %q; the text model of %s is %s", kind, f.model.ModelType, fam.types[0])
	}
	f.ignore("vision_config", "vision tower", "only the text model is planned")
	f.model.LeavesOut = append(f.model.LeavesOut, "the vision tower")
	f.used["vision_config"] = true
	f.used["text_config"] = true
	var beside []string
	for name := range f.raw {
		if !textField(name) || isNull(f.raw[name]) {
			continue
		}
		beside = append(beside, name)
	}
	sort.Strings(beside)
	for _, name := range beside {
		f.ignore(name, show(f.raw[name]), "transformers reads it from text_config only")
	}
	return inner
}

// textField says whether a name is one that a text model's shape has.
func textField(name string) bool {
	switch name {
	case "hidden_size", "intermediate_size", "vocab_size", "head_dim", "layer_types", "sliding_window", "max_position_embeddings":
		return true
	}
	return strings.HasPrefix(name, "num_attention") || strings.HasPrefix(name, "num_hidden") ||
		strings.HasPrefix(name, "num_key_value") || strings.HasPrefix(name, "linear_")
}

// tieFrom settles which of two objects says whether the head is tied. The
// class that the file is loaded as decides: a multimodal class looks at the
// outer object, the text class at text_config. The defaults are the same.
func (f *fields) tieFrom(outer *fields, arch string) {
	const name = "tie_word_embeddings"
	multimodal := strings.HasSuffix(arch, "ForConditionalGeneration") || arch == "" && f.model.Family == "gemma3"
	if !multimodal {
		return
	}
	delete(f.raw, name)
	if raw, ok := outer.raw[name]; ok {
		f.raw[name] = raw
	}
}
