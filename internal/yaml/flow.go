package yaml

import (
	"fmt"
	"strings"
)

// flow reads lists and mappings in brackets, which may go on over several lines.
func (p *parser) flow(text string, number, depth int) (Value, error) {
	f := &flow{parser: p, text: text, line: number, depth: depth}
	v, err := f.value()
	if err == nil {
		f.blanks()
		if f.text != "" {
			err = f.wrong("%.20q stands behind the closing bracket", f.text)
		}
	}
	return v, err
}

type flow struct {
	parser *parser
	text   string // the rest of the line
	line   int
	depth  int
}

func (f *flow) wrong(format string, args ...any) error {
	return &Error{f.line, fmt.Sprintf(format, args...)}
}

func (f *flow) blanks() { f.text = strings.TrimLeft(f.text, " \t") }

// next skips blanks and goes on to the next line. It returns 0 at the end of the
// file.
func (f *flow) next() byte {
	f.blanks()
	for f.text == "" {
		if !f.parser.more() {
			return 0
		}
		l := f.parser.lines[f.parser.at]
		f.text, f.line = l.text, l.number
		f.parser.at++
	}
	return f.text[0]
}

func (f *flow) value() (Value, error) {
	if f.depth++; f.depth > maxDepth {
		return Value{}, f.wrong("values are nested too deep")
	}
	defer func() { f.depth-- }()
	c := f.next()
	switch c {
	case 0:
		return Value{}, f.wrong("a bracket is not closed")
	case '[', '{':
		return f.nested(c)
	}
	return f.scalar()
}

func (f *flow) nested(open byte) (Value, error) {
	v, end := Value{Kind: List, Line: f.line}, byte(']')
	if open == '{' {
		v.Kind, end = Map, '}'
	}
	f.text = f.text[1:]
	var keys seen
	for {
		switch f.next() {
		case 0:
			return v, f.wrong("a bracket is not closed")
		case end:
			f.text = f.text[1:]
			return v, nil
		}
		e := Entry{Line: f.line}
		var err error
		if v.Kind == Map {
			key, err := f.scalar()
			if err != nil {
				return v, err
			}
			if f.next() != ':' {
				return v, f.wrong("a key in braces is followed by a colon and its value")
			}
			e.Key, f.text = key.Text, f.text[1:]
		}
		if e.Value, err = f.value(); err != nil {
			return v, err
		}
		if v.Kind == Map {
			if keys.twice(e.Key) {
				return v, f.wrong("%.80q is given twice", e.Key)
			}
			v.Entries = append(v.Entries, e)
		} else {
			v.Items = append(v.Items, e.Value)
		}
		switch f.next() {
		case ',':
			f.text = f.text[1:]
		case end:
		case 0:
			return v, f.wrong("a bracket is not closed")
		default:
			return v, f.wrong("a comma or a closing bracket is missing")
		}
	}
}

func (f *flow) scalar() (Value, error) {
	switch f.text[0] {
	case '"', '\'':
		end := closing(f.text)
		if end < 0 {
			return Value{}, f.wrong("a quote is not closed on its line")
		}
		s, err := unquote(f.text[:end+1], f.line)
		f.text = f.text[end+1:]
		return Value{Kind: Scalar, Line: f.line, Text: s, Quoted: true}, err
	case '&', '*', '!':
		return Value{}, f.wrong("%.20q: anchors, aliases and tags are not read; write the value out", f.text)
	}
	end := 0
	for end < len(f.text) && strings.IndexByte(",]}[{", f.text[end]) < 0 && !strings.HasPrefix(f.text[end:], ": ") && f.text[end:] != ":" {
		end++
	}
	word := strings.TrimSpace(f.text[:end])
	if word == "" {
		return Value{}, f.wrong("a value is missing before %.10q", f.text)
	}
	f.text = f.text[end:]
	return plain(word, f.line), nil
}
