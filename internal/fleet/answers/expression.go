package answers

import (
	"cmp"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/ashlar-mem/ashlar/internal/units"
)

// condition reports whether an entry is meant.
type condition func(e *Entry) bool

// parser reads an expression.
type parser struct {
	tokens []token
	nowUS  int64
	depth  int
}

// maxDepth bounds how deep parentheses and nots may be nested.
const maxDepth = 200

// parseCondition reads the expression of --where; an empty one is true of all.
func parseCondition(text string, nowUS int64) (condition, error) {
	all, err := tokens(text)
	if err != nil {
		return nil, err
	}
	if all[0].kind == tokenEnd {
		return func(*Entry) bool { return true }, nil
	}
	p := &parser{tokens: all, nowUS: nowUS}
	c, err := p.or()
	if err != nil {
		return nil, err
	}
	if t := p.peek(); t.kind != tokenEnd {
		return nil, syntax(t.at, "%q is too much; join comparisons with and, or", t.text)
	}
	return c, nil
}

func (p *parser) peek() token { return p.tokens[0] }

func (p *parser) take() token {
	t := p.tokens[0]
	if t.kind != tokenEnd {
		p.tokens = p.tokens[1:]
	}
	return t
}

// word takes a word if it comes next.
func (p *parser) word(w string) bool {
	if t := p.peek(); t.kind == tokenWord && strings.EqualFold(t.text, w) {
		p.take()
		return true
	}
	return false
}

func (p *parser) or() (condition, error) {
	return p.joined(p.and, "or", func(a, b condition) condition { return func(e *Entry) bool { return a(e) || b(e) } })
}

func (p *parser) and() (condition, error) {
	return p.joined(p.not, "and", func(a, b condition) condition { return func(e *Entry) bool { return a(e) && b(e) } })
}

// joined reads conditions with a word between them.
func (p *parser) joined(one func() (condition, error), word string, join func(a, b condition) condition) (condition, error) {
	a, err := one()
	for err == nil && p.word(word) {
		var b condition
		if b, err = one(); err == nil {
			a = join(a, b)
		}
	}
	return a, err
}

func (p *parser) not() (condition, error) {
	if p.depth++; p.depth > maxDepth {
		return nil, syntax(p.peek().at, "the expression is nested too deeply")
	}
	defer func() { p.depth-- }()
	if p.word("not") {
		c, err := p.not()
		return func(e *Entry) bool { return !c(e) }, err
	}
	if t := p.peek(); t.kind != tokenOperator || t.text != "(" {
		return p.comparison()
	}
	open := p.take()
	c, err := p.or()
	if err != nil {
		return nil, err
	}
	if t := p.take(); t.text != ")" || t.kind != tokenOperator {
		return nil, syntax(open.at, "the parenthesis is not closed")
	}
	return c, nil
}

// comparison reads a column and what it is compared with, or a column of bools
// alone.
func (p *parser) comparison() (condition, error) {
	name := p.take()
	if name.kind != tokenWord {
		return nil, syntax(name.at, "a column is missing, as in run =~ \"llama.*\"")
	}
	column, err := findColumn(name.text)
	if err != nil {
		return nil, syntax(name.at, "%v", err)
	}
	op := p.peek()
	if op.kind != tokenOperator || op.text == "(" || op.text == ")" {
		if column.Kind == Bool {
			return func(e *Entry) bool { return column.value(e, p.nowUS).N != 0 }, nil
		}
		return nil, syntax(op.at, "%s is to be compared with something: = != < <= > >=, or =~ !~ for texts", name.text)
	}
	p.take()
	value := p.take()
	if value.kind != tokenWord && value.kind != tokenQuoted {
		return nil, syntax(value.at, "what %s is compared with is missing", name.text)
	}
	if column.Kind == Text {
		return compareText(column, op, value)
	}
	return p.compareNumber(column, op, value)
}

// compareText compares a text, of which one that is not known is empty.
func compareText(c *Column, op, value token) (condition, error) {
	text := func(e *Entry) string { return c.value(e, 0).Text }
	if op.text == "=~" || op.text == "!~" {
		if _, err := regexp.Compile(value.text); err != nil { // what is written is what is named
			return nil, syntax(value.at, "no regular expression: %s", strings.TrimPrefix(err.Error(), "error parsing regexp: "))
		}
		re, err := regexp.Compile("^(?:" + value.text + ")$")
		if err != nil {
			return nil, syntax(value.at, "no regular expression: %v", err)
		}
		known := map[string]bool{} // columns have few different texts
		return func(e *Entry) bool {
			s := text(e)
			match, ok := known[s]
			if !ok {
				match = re.MatchString(s)
				known[s] = match
			}
			return match == (op.text == "=~")
		}, nil
	}
	holds := comparisons[op.text]
	return func(e *Entry) bool { return holds(cmp.Compare(text(e), value.text)) }, nil
}

// compareNumber compares a number. One that is not known is not equal to, below
// or above anything.
func (p *parser) compareNumber(c *Column, op, value token) (condition, error) {
	holds, ok := comparisons[op.text]
	if !ok {
		return nil, syntax(op.at, "%s matches texts, and %s is none", op.text, c.Name)
	}
	n, err := c.parse(value.text)
	if err != nil {
		return nil, syntax(value.at, "%v", err)
	}
	now := p.nowUS
	return func(e *Entry) bool {
		v := c.value(e, now)
		return v.Known && holds(cmp.Compare(v.N, n))
	}, nil
}

var comparisons = map[string]func(order int) bool{
	"=":  func(o int) bool { return o == 0 },
	"==": func(o int) bool { return o == 0 },
	"!=": func(o int) bool { return o != 0 },
	"<":  func(o int) bool { return o < 0 },
	"<=": func(o int) bool { return o <= 0 },
	">":  func(o int) bool { return o > 0 },
	">=": func(o int) bool { return o >= 0 },
}

// parse reads a value of a column of numbers.
func (c *Column) parse(text string) (int64, error) {
	switch c.Kind {
	case Bytes:
		n, err := units.Parse(text)
		if err == nil && int64(n) < 0 {
			return 0, syntaxValue(c, text, "a size below 8 EiB")
		}
		return int64(n), err
	case Duration:
		d, err := ParseDuration(text)
		return d.Microseconds(), err
	case Time:
		return parseTime(c, text)
	case Bool:
		switch strings.ToLower(text) {
		case "true", "yes", "1":
			return 1, nil
		case "false", "no", "0":
			return 0, nil
		}
		return 0, syntaxValue(c, text, "true or false")
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 0, syntaxValue(c, text, "a whole number")
	}
	return n, nil
}

func syntaxValue(c *Column, text, want string) error {
	return &valueError{c.Name, text, want}
}

// valueError is a value that is not what a column has.
type valueError struct{ column, text, want string }

func (e *valueError) Error() string {
	return strconv.Quote(e.text) + " is no value of " + e.column + ": write " + e.want
}

// parseTime reads microseconds since the Unix epoch, a day or a moment.
func parseTime(c *Column, text string) (int64, error) {
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		return n, nil
	}
	for _, layout := range []string{time.DateOnly, time.DateTime, time.RFC3339} {
		if t, err := time.Parse(layout, text); err == nil {
			return t.UnixMicro(), nil
		}
	}
	return 0, syntaxValue(c, text, `2026-11-16, "2026-11-16 12:00:00" in UTC, or microseconds since 1970; age < 7d is easier`)
}

// ParseDuration reads a time such as 90s, 12h, 7d or 2w.
func ParseDuration(text string) (time.Duration, error) {
	for unit, hours := range map[string]float64{"d": 24, "w": 7 * 24} {
		if number, ok := strings.CutSuffix(text, unit); ok {
			if n, err := strconv.ParseFloat(number, 64); err == nil && n >= 0 && n*hours < 1e6 {
				return time.Duration(n * hours * float64(time.Hour)), nil
			}
		}
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		return 0, &valueError{"a duration", text, "30m, 12h, 7d or 2w"}
	}
	return d, nil
}
