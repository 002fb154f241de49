package anonymous

import (
	"slices"
	"strings"

	"github.com/ashlar-mem/ashlar/settings"
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

// hideSettings keeps numbers and the settings text.
func hideSettings(s trace.Settings) trace.Settings {
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
