package yaml

import (
	"encoding/json"
	"fmt"
	"strings"
)

// Parse reads a file of one document. An empty one is [Null].
func Parse(data []byte) (Value, error) {
	p := &parser{}
	if err := p.split(string(data)); err != nil {
		return Value{}, err
	}
	if !p.more() {
		return Value{}, nil
	}
	v, err := p.block(p.lines[p.at].indent, 0)
	if err == nil && p.more() {
		err = p.wrong("it is indented less than what stands before it, and begins nothing")
	}
	return v, err
}

// line is a line with something on it.
type line struct {
	number int
	indent int
	text   string // without indentation and comment
	tab    bool   // indented by one
}

type parser struct {
	lines []line
	all   []string // every line of the file, for literal texts
	at    int
}

func (p *parser) more() bool { return p.at < len(p.lines) }

func (p *parser) wrong(format string, args ...any) error {
	n := len(p.all)
	if p.at < len(p.lines) {
		n = p.lines[p.at].number
	}
	return &Error{n, fmt.Sprintf(format, args...)}
}

// split finds the lines that have something on them.
func (p *parser) split(text string) error {
	text = strings.TrimPrefix(text, "\ufeff")
	p.all = strings.Split(strings.ReplaceAll(text, "\r\n", "\n"), "\n")
	begun := false
	for i, raw := range p.all {
		body := strings.TrimLeft(raw, " ")
		trimmed := strings.TrimSpace(uncomment(body))
		switch {
		case trimmed == "" || strings.HasPrefix(raw, "%") && !begun:
			continue
		case strings.HasPrefix(raw, "---") && strings.Trim(trimmed, "-") == "":
			if begun {
				return &Error{i + 1, "a second document begins: give a file with one"}
			}
			begun = true
			continue
		case raw == "...":
			return nil
		}
		begun = true
		p.lines = append(p.lines, line{i + 1, len(raw) - len(body), trimmed, body[0] == '\t'})
	}
	return nil
}

// uncomment cuts a comment off: a # at the beginning or behind a blank, outside of
// quotes.
func uncomment(s string) string {
	var quote byte
	for i := 0; i < len(s); i++ {
		c := s[i]
		switch {
		case quote == '"' && c == '\\':
			i++
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case c == '"' || c == '\'':
			if i == 0 || strings.IndexByte(" :[{,-", s[i-1]) >= 0 {
				quote = c
			}
		case c == '#' && (i == 0 || s[i-1] == ' ' || s[i-1] == '\t'):
			return s[:i]
		}
	}
	return s
}

// block reads a mapping or a list whose lines are indented so far, or a scalar.
func (p *parser) block(indent, depth int) (Value, error) {
	l := p.lines[p.at]
	switch {
	case depth > maxDepth:
		return Value{}, p.wrong("values are nested too deep")
	case isItem(l.text):
		return p.list(indent, depth)
	}
	if _, _, ok, err := p.key(l.text); ok || err != nil {
		return p.mapping(indent, depth)
	}
	p.at++
	return p.scalar(l.text, l.number, indent-1, depth)
}

func isItem(text string) bool { return text == "-" || strings.HasPrefix(text, "- ") }

func (p *parser) list(indent, depth int) (Value, error) {
	v := Value{Kind: List, Line: p.lines[p.at].number}
	for p.more() && p.lines[p.at].indent == indent && isItem(p.lines[p.at].text) {
		l := &p.lines[p.at]
		rest := strings.TrimLeft(l.text[1:], " ")
		var item Value
		var err error
		switch _, _, isKey, _ := p.key(rest); {
		case rest == "":
			p.at++
			item, err = p.under(indent, indent+1, l.number, depth)
		case isKey || isItem(rest): // a mapping or list that begins behind the dash
			l.indent += len(l.text) - len(rest)
			l.text = rest
			item, err = p.block(l.indent, depth+1)
		default:
			p.at++
			item, err = p.scalar(rest, l.number, indent, depth)
		}
		if err != nil {
			return v, err
		}
		v.Items = append(v.Items, item)
	}
	return v, p.aligned(indent)
}

// aligned refuses a line that is indented more than the block before it.
func (p *parser) aligned(indent int) error {
	if p.more() && p.lines[p.at].indent > indent {
		return p.wrong("it is indented more than what stands before it")
	}
	return nil
}

func (p *parser) mapping(indent, depth int) (Value, error) {
	v := Value{Kind: Map, Line: p.lines[p.at].number}
	var keys seen
	for p.more() && p.lines[p.at].indent == indent && !isItem(p.lines[p.at].text) {
		l := p.lines[p.at]
		key, rest, ok, err := p.key(l.text)
		if err != nil {
			return v, err
		}
		if l.tab {
			return v, p.wrong("a tab indents it: use blanks")
		}
		if !ok {
			return v, p.wrong("%.40q is no key: write key: value", l.text)
		}
		if keys.twice(key) {
			return v, p.wrong("%.80q is given twice", key)
		}
		e := Entry{Key: key, Line: l.number}
		p.at++
		if rest == "" {
			e.Value, err = p.under(indent, indent, l.number, depth)
		} else {
			e.Value, err = p.scalar(rest, l.number, indent, depth)
		}
		if err != nil {
			return v, err
		}
		v.Entries = append(v.Entries, e)
	}
	return v, p.aligned(indent)
}

// under reads the value below a key or a dash that has none on its line: further right, or a list that begins at list or behind it, as a
// list may stand as far left as its key.
func (p *parser) under(indent, list, number, depth int) (Value, error) {
	if p.more() {
		if l := p.lines[p.at]; l.indent > indent || l.indent >= list && isItem(l.text) {
			return p.block(l.indent, depth+1)
		}
	}
	return Value{Line: number}, nil
}

// key splits "key: value".
func (p *parser) key(text string) (key, rest string, ok bool, err error) {
	if text == "" || strings.IndexByte("[{|>", text[0]) >= 0 {
		return "", "", false, nil
	}
	if q := text[0]; q == '"' || q == '\'' {
		end := closing(text)
		if end < 0 {
			return "", "", false, nil
		}
		rest, ok = strings.CutPrefix(strings.TrimLeft(text[end+1:], " "), ":")
		if !ok || rest != "" && rest[0] != ' ' {
			return "", "", false, nil
		}
		key, err = unquote(text[:end+1], p.lines[p.at].number)
		return key, strings.TrimSpace(rest), true, err
	}
	at := strings.Index(text, ": ")
	if at < 0 {
		if !strings.HasSuffix(text, ":") {
			return "", "", false, nil
		}
		at = len(text) - 1
	}
	key = strings.TrimSpace(text[:at])
	if key == "<<" || strings.HasPrefix(key, "&") || strings.HasPrefix(key, "*") || strings.HasPrefix(key, "!") || strings.HasPrefix(key, "?") {
		return "", "", false, p.wrong("%.20q: anchors, aliases, tags and merge keys are not read; write the values out", key)
	}
	return key, strings.TrimSpace(text[at+1:]), true, nil
}

// closing returns where a text in quotes ends, below 0 if it does not.
func closing(text string) int {
	q := text[0]
	for i := 1; i < len(text); i++ {
		switch {
		case q == '"' && text[i] == '\\':
			i++
		case text[i] != q:
		case q == '\'' && i+1 < len(text) && text[i+1] == '\'':
			i++
		default:
			return i
		}
	}
	return -1
}

// unquote reads a text in quotes on a line.
func unquote(text string, number int) (string, error) {
	if text[0] == '\'' {
		return strings.ReplaceAll(text[1:len(text)-1], "''", "'"), nil
	}
	var s string
	if err := json.Unmarshal([]byte(text), &s); err != nil {
		return "", &Error{number, fmt.Sprintf("%.40s is no text in quotes that can be read", text)}
	}
	return s, nil
}

// scalar reads what stands behind a key or a dash: brackets, quotes, the mark of a
// literal text, or a plain word.
func (p *parser) scalar(text string, number, indent, depth int) (Value, error) {
	wrong := func(format string, args ...any) (Value, error) {
		return Value{}, &Error{number, fmt.Sprintf(format, args...)}
	}
	switch text[0] {
	case '[', '{':
		return p.flow(text, number, depth)
	case '|', '>':
		return p.literal(text, number, indent), nil
	case '&', '*', '!':
		return wrong("%.20q: anchors, aliases and tags are not read; write the value out", text)
	case '"', '\'':
		end := closing(text)
		if end < 0 {
			return wrong("a quote is not closed on its line")
		}
		if end != len(text)-1 {
			return wrong("%.20q stands behind a text in quotes", text[end+1:])
		}
		s, err := unquote(text, number)
		return Value{Kind: Scalar, Line: number, Text: s, Quoted: true}, err
	case '@', '`', '%':
		return wrong("%.20q begins with a character that YAML reserves: put it in quotes", text)
	}
	if strings.Contains(text, ": ") {
		return wrong("%.40q has a colon: put it in quotes", text)
	}
	words := []string{text}
	for p.more() && p.lines[p.at].indent > indent { // a plain text may go on
		words = append(words, p.lines[p.at].text)
		p.at++
	}
	return plain(strings.Join(words, " "), number), nil
}

// plain is a word without quotes.
func plain(text string, number int) Value {
	switch text {
	case "~", "null", "Null", "NULL", "":
		return Value{Line: number}
	}
	return Value{Kind: Scalar, Line: number, Text: text}
}

// literal reads the lines below | or >.
func (p *parser) literal(mark string, number, indent int) Value {
	var out []string
	last := number
	for _, raw := range p.all[number:] {
		body := strings.TrimLeft(raw, " ")
		if body != "" && len(raw)-len(body) <= indent {
			break
		}
		out = append(out, body)
		last++
	}
	for p.more() && p.lines[p.at].number <= last {
		p.at++
	}
	between := "\n"
	if mark[0] == '>' {
		between = " "
	}
	return Value{Kind: Scalar, Line: number, Text: strings.TrimRight(strings.Join(out, between), " \n"), Quoted: true}
}
