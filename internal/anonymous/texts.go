package anonymous

import (
	"slices"
	"strings"
	"unicode"

	"github.com/ashlar-mem/ashlar/settings"
	"github.com/ashlar-mem/ashlar/snapshot/recorder"
	"github.com/ashlar-mem/ashlar/snapshot/stats"
	"github.com/ashlar-mem/ashlar/trace"
)

// annotation hides the name of a range. Those that mark steps stay what they are.
func (h *hider) annotation(name string) string {
	if start := profilerRange.FindString(name); start != "" {
		return start
	}
	start := optimizerRange.FindString(name)
	return start + h.word("range", name[len(start):])
}

// metadata hides all of user_metadata but its numbers.
func (h *hider) metadata(text string) string {
	body, byAddress := strings.CutSuffix(text, addressed)
	out := ""
	if body != "" {
		out = strings.Join(append([]string{h.word("text", number.ReplaceAllString(body, "#"))}, number.FindAllString(body, -1)...), " ")
	}
	if byAddress {
		out += addressed
	}
	return out
}

func (h *hider) compile(text string) string {
	if compileContext.MatchString(text) {
		return text
	}
	return h.word("context", text)
}

// settings keeps numbers and the settings text.
func (h *hider) settings(s trace.Settings) trace.Settings {
	var fields trace.Extra
	for _, f := range s.Fields {
		if text, ok := f.Value.(string); ok && isVariable(f.Name) {
			fields = append(fields, trace.Field{Name: f.Name, Value: conf(text)})
		} else if v, ok := plain(f.Value); ok && (settingKeys[f.Name] || settingFields[f.Name]) {
			fields = append(fields, trace.Field{Name: f.Name, Value: v})
		}
	}
	s.Conf, s.Fields = conf(s.Conf), fields
	return s
}

func isVariable(name string) bool { return slices.Contains(settings.Variables[:], name) }

// conf leaves out of a settings text what is no setting.
func conf(text string) string {
	var kept []string
	depth, from := 0, 0
	for i := 0; i <= len(text); i++ {
		switch {
		case i < len(text) && text[i] == '[':
			depth++
		case i < len(text) && text[i] == ']':
			depth--
		case i == len(text) || text[i] == ',' && depth <= 0:
			part := strings.TrimSpace(text[from:i])
			key, value, _ := strings.Cut(part, ":")
			if settingKeys[strings.TrimSpace(key)] && settingValue.MatchString(strings.TrimSpace(value)) {
				kept = append(kept, part)
			}
			from = i + 1
		}
	}
	return strings.Join(kept, ",")
}

// message leaves out of an error text all words that PyTorch's do not have.
func message(text string) string {
	var kept []string
	for _, word := range strings.Fields(text) {
		bare := strings.Trim(word, ".,;:()")
		digits := strings.TrimLeft(bare, "0123456789.")
		if messageWords[bare] || bare == "" || digits == "" || digits != bare && messageWords[digits] {
			kept = append(kept, word)
		}
	}
	return strings.Join(kept, " ")
}

// fileExtra hides the fields of a file: what our recorder wrote, and what later
// versions of PyTorch add.
func (h *hider) fileExtra(x trace.Extra) trace.Extra {
	out := numbersOf(x, fileFields)
	if facts, ok := x.Get(recorder.Key).(trace.Extra); ok {
		out = append(out, trace.Field{Name: recorder.Key, Value: hideFacts(facts)})
	}
	return out
}

func hideFacts(x trace.Extra) trace.Extra {
	out := numbersOf(x, factFields)
	add := func(name string, value any) { out = append(out, trace.Field{Name: name, Value: value}) }
	for _, f := range x {
		text, _ := f.Value.(string)
		dict, _ := f.Value.(trace.Extra)
		switch f.Name {
		case "torch", "cuda", "hip":
			if v := versionText.FindString(text); v != "" {
				add(f.Name, v)
			}
		case "reason":
			if text == recorder.OOM || text == recorder.Signal || text == recorder.Call {
				add(f.Name, text)
			}
		case "message":
			if text != "" {
				add(f.Name, message(text))
			}
		case "settings":
			variables := trace.Extra{}
			for _, v := range dict {
				if value, ok := v.Value.(string); ok && isVariable(v.Name) {
					variables = append(variables, trace.Field{Name: v.Name, Value: conf(value)})
				}
			}
			add(f.Name, variables)
		case "memory_stats":
			add(f.Name, hideStats(dict))
		case "devices":
			add(f.Name, hideDevices(f.Value))
		}
	}
	return out
}

func hideStats(x trace.Extra) trace.Extra {
	known := set(stats.Keys()...)
	out := trace.Extra{}
	for _, device := range x {
		if values, ok := device.Value.(trace.Extra); ok && !strings.ContainsFunc(device.Name, func(r rune) bool { return !unicode.IsDigit(r) }) {
			out = append(out, trace.Field{Name: device.Name, Value: numbersOf(values, known)})
		}
	}
	return out
}

func hideDevices(v any) trace.List {
	list, _ := v.(trace.List)
	out := trace.List{}
	for _, item := range list {
		x, ok := item.(trace.Extra)
		if !ok {
			continue
		}
		d := numbersOf(x, deviceFields)
		if name, ok := x.Get("name").(string); ok && deviceName.MatchString(name) {
			d = append(d, trace.Field{Name: "name", Value: name})
		}
		if c, ok := x.Get("capability").(string); ok && versionText.FindString(c) == c {
			d = append(d, trace.Field{Name: "capability", Value: c})
		}
		out = append(out, d)
	}
	return out
}

// numbersOf returns the named fields as far as they hold numbers.
func numbersOf(x trace.Extra, names map[string]bool) trace.Extra {
	var out trace.Extra
	for _, f := range x {
		if v, ok := plain(f.Value); ok && names[f.Name] {
			out = append(out, trace.Field{Name: f.Name, Value: v})
		}
	}
	return out
}

// plain returns a value without the texts in it, false if it is one.
func plain(v any) (any, bool) {
	switch v := v.(type) {
	case string:
		return nil, false
	case trace.List:
		out := trace.List{}
		for _, item := range v {
			if x, ok := plain(item); ok {
				out = append(out, x)
			}
		}
		return out, true
	case trace.Extra:
		out := trace.Extra{}
		for _, f := range v {
			if x, ok := plain(f.Value); ok && number.FindString(f.Name) == f.Name {
				out = append(out, trace.Field{Name: f.Name, Value: x})
			}
		}
		return out, true
	}
	return v, true
}
