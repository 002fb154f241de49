package stats

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Limits of one literal.
const (
	maxDepth  = 16
	maxValues = 1 << 20
	maxString = 1 << 20
)

type kind byte

const (
	word kind = iota // None, true, NaN and the like
	text
	whole
	fraction
	list
	dict
)

// value is a literal. A dict's keys and values alternate in items.
type value struct {
	kind  kind
	at    int
	text  string
	whole int64
	items []value
}

// failure is a literal that cannot be read, and where.
type failure struct {
	at      int
	problem string
}

// literals reads literals of JSON and Python.
type literals struct {
	src    string
	at     int
	depth  int
	values int
	python bool // something only Python writes was seen
	stats  bool // a key of memory_stats() was seen
}

func (p *literals) fail(at int, format string, args ...any) *failure {
	return &failure{at, fmt.Sprintf(format, args...)}
}

// found names what stands at the place, for errors.
func (p *literals) found() string {
	if p.at >= len(p.src) {
		return "the text ends"
	}
	r, _ := utf8.DecodeRuneInString(p.src[p.at:])
	return fmt.Sprintf("found %q", r)
}

func (p *literals) blanks() {
	for p.at < len(p.src) && strings.IndexByte(" \t\r\n\f", p.src[p.at]) >= 0 {
		p.at++
	}
}

// take skips c if it comes next and reports whether it did.
func (p *literals) take(c byte) bool {
	if p.at < len(p.src) && p.src[p.at] == c {
		p.at++
		return true
	}
	return false
}

// read reads the literal at the place.
func (p *literals) read() (value, *failure) {
	p.blanks()
	if p.values++; p.values > maxValues {
		return value{}, p.fail(p.at, "more than %d values", maxValues)
	}
	if p.at >= len(p.src) {
		return value{}, p.fail(p.at, "expected a value, but the text ends; paste the whole dump")
	}
	at := p.at
	switch c := p.src[p.at]; {
	case c == '{':
		return p.nested(at, p.dict)
	case c == '[':
		return p.nested(at, func(at int) (value, *failure) { return p.list(at, ']') })
	case c == '(':
		p.python = true
		return p.nested(at, func(at int) (value, *failure) { return p.list(at, ')') })
	case c == '"' || c == '\'':
		s, err := p.string()
		return value{kind: text, at: at, text: s}, err
	case c == '-' || c == '+' || c == '.' || c >= '0' && c <= '9':
		return p.number()
	case c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z':
		return p.name()
	}
	return value{}, p.fail(at, "expected a value, but %s", p.found())
}

// tooDeep costs nothing to make: a text of brackets asks for many.
func tooDeep(at int) *failure { return &failure{at, deep} }

var deep = fmt.Sprintf("nested more than %d deep", maxDepth)

func (p *literals) nested(at int, read func(int) (value, *failure)) (value, *failure) {
	if p.depth == maxDepth {
		return value{}, tooDeep(at)
	}
	p.depth++
	p.at++
	v, err := read(at)
	p.depth--
	return v, err
}

func (p *literals) list(at int, end byte) (value, *failure) {
	v := value{kind: list, at: at}
	for {
		p.blanks()
		if p.take(end) {
			return v, nil
		}
		item, err := p.read()
		if err != nil {
			return v, err
		}
		if item.kind == list && len(item.items) == 2 && item.items[0].kind == text {
			p.note(item.items[0].text, item.items[1])
		}
		v.items = append(v.items, item)
		if err := p.separator(end); err != nil {
			return v, err
		}
	}
}

func (p *literals) dict(at int) (value, *failure) {
	v := value{kind: dict, at: at}
	for {
		p.blanks()
		if p.take('}') {
			return v, nil
		}
		key, err := p.read()
		if err != nil {
			return v, err
		}
		switch key.kind {
		case text:
		case whole:
			key.text = strconv.FormatInt(key.whole, 10)
		default:
			return v, p.fail(key.at, "a key is a string or a whole number")
		}
		p.blanks()
		if !p.take(':') {
			return v, p.fail(p.at, "expected : after the key %.40q, but %s", key.text, p.found())
		}
		item, err := p.read()
		if err != nil {
			return v, err
		}
		p.note(key.text, item)
		v.items = append(v.items, key, item)
		if err := p.separator('}'); err != nil {
			return v, err
		}
	}
}

// note remembers that a key of memory_stats() was seen.
func (p *literals) note(key string, v value) {
	key = baseName(key)
	p.stats = p.stats || known(key) || family(key) && v.kind == dict
}

// separator skips the comma after an item; before the end there may be none.
func (p *literals) separator(end byte) *failure {
	p.blanks()
	if p.take(',') || p.at < len(p.src) && p.src[p.at] == end {
		return nil
	}
	return p.fail(p.at, "expected , or %c, but %s", end, p.found())
}

// string reads a quoted string. A line end inside, which neither language
// prints, is a terminal's, and is dropped with the blanks after it.
func (p *literals) string() (string, *failure) {
	at, quote := p.at, p.src[p.at]
	p.python = p.python || quote == '\''
	p.at++
	var b strings.Builder
	for p.at < len(p.src) && p.at-at <= maxString {
		switch c := p.src[p.at]; c {
		case quote:
			p.at++
			return b.String(), nil
		case '\r', '\n':
			p.blanks()
		case '\\':
			if p.at++; p.at < len(p.src) {
				b.WriteByte(p.src[p.at])
				p.at++
			}
		default:
			b.WriteByte(c)
			p.at++
		}
	}
	if p.at < len(p.src) {
		return "", p.fail(at, "a string longer than %d bytes", maxString)
	}
	return "", p.fail(at, "a string that begins here does not end; paste the whole dump")
}

// number reads a number. A line end inside is a terminal's.
func (p *literals) number() (value, *failure) {
	const longest = 40
	at := p.at
	var digits []byte
	for p.at < len(p.src) && len(digits) < longest {
		c := p.src[p.at]
		if c == '\n' || c == '\r' {
			end := p.at
			p.blanks()
			if p.at < len(p.src) && digit(p.src[p.at]) && (digit(p.src[end-1]) || p.src[end-1] == '-') {
				continue
			}
			p.at = end
			break
		}
		if !digit(c) && strings.IndexByte("+-.eE", c) < 0 {
			break
		}
		digits = append(digits, c)
		p.at++
	}
	s := string(digits)
	if n, err := strconv.ParseInt(s, 10, 64); err == nil {
		return value{kind: whole, at: at, whole: n}, nil
	}
	f, err := strconv.ParseFloat(s, 64)
	if err != nil {
		return value{}, p.fail(at, "%q is not a number", s)
	}
	if f == math.Trunc(f) && math.Abs(f) < 1<<53 {
		return value{kind: whole, at: at, whole: int64(f)}, nil
	}
	return value{kind: fraction, at: at}, nil
}

// name reads a word: a constant, or OrderedDict with what it is made of.
func (p *literals) name() (value, *failure) {
	at := p.at
	for p.at < len(p.src) && (digit(p.src[p.at]) || strings.IndexByte("._", p.src[p.at]) >= 0 || p.src[p.at]|0x20 >= 'a' && p.src[p.at]|0x20 <= 'z') {
		p.at++
	}
	switch name := p.src[at:p.at]; name {
	case "true", "false", "null":
		return value{kind: word, at: at}, nil
	case "True", "False", "None", "nan", "NaN", "inf", "Infinity":
		p.python = true
		return value{kind: word, at: at}, nil
	case "OrderedDict", "collections.OrderedDict":
		p.python = true
		return p.ordered(at)
	default:
		return value{}, p.fail(at, "%.40q is not a value of a dump; calls are not run", name)
	}
}

func (p *literals) ordered(at int) (value, *failure) {
	p.blanks()
	if p.at >= len(p.src) || p.src[p.at] != '(' {
		return value{}, p.fail(p.at, "expected ( after OrderedDict, but %s", p.found())
	}
	v, err := p.nested(p.at, func(at int) (value, *failure) { return p.list(at, ')') })
	switch {
	case err != nil:
		return v, err
	case len(v.items) == 0:
		return value{kind: dict, at: at}, nil
	case len(v.items) == 1:
		v = v.items[0]
		v.at = at
		if v.kind == dict {
			return v, nil
		}
		if v, ok := pairs(v); ok {
			return v, nil
		}
	}
	return v, p.fail(at, "OrderedDict of something that is not pairs")
}

// pairs turns a list of pairs with text keys into a dict.
func pairs(v value) (value, bool) {
	if v.kind != list || len(v.items) == 0 {
		return v, v.kind == list
	}
	d := value{kind: dict, at: v.at, items: make([]value, 0, 2*len(v.items))}
	for _, item := range v.items {
		if item.kind != list || len(item.items) != 2 || item.items[0].kind != text {
			return v, false
		}
		d.items = append(d.items, item.items...)
	}
	return d, true
}

func digit(c byte) bool { return c >= '0' && c <= '9' }
