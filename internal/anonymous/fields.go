package anonymous

import (
	"strings"
	"unicode"

	"github.com/ashlar-mem/ashlar/snapshot/recorder"
	"github.com/ashlar-mem/ashlar/snapshot/stats"
	"github.com/ashlar-mem/ashlar/trace"
)

// hideFields keeps of a file's fields what our recorder wrote, without names, and
// what later versions of PyTorch add.
func hideFields(x trace.Extra) trace.Extra {
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
