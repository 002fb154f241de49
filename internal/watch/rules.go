package watch

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ashlar-mem/ashlar/internal/spelling"
	"github.com/ashlar-mem/ashlar/internal/units"
)

// DefaultRules are the alarms of those who write none.
const DefaultRules = `headroom: headroom/device_total < 0.05 clear 0.1 for 10s -> log, snapshot
growth: slope_per_step(allocated) > 1MiB clear 512KiB for 200 steps -> log
retries: rate(num_alloc_retries) > 0 -> log, snapshot
oom: rate(num_ooms) > 0 -> log, snapshot
silence: silent() > 60s clear 10s -> log
`

// Rule is an alarm: when it is raised, when it is cleared, what is done then.
type Rule struct {
	Name    string
	text    string
	value   expr
	above   bool // raised when the value is above the bound, not below
	bound   float64
	clear   float64
	holds   time.Duration // how long it must hold
	steps   int64         // for how many steps it must hold
	perRun  bool
	actions []action
	silent  bool // the value changes while nothing comes
}

// action is what is done when an alarm is raised.
type action struct {
	what    string // log, snapshot, empty_cache or run
	command string // of run
}

func (a action) String() string {
	if a.what == "run" {
		return runPrefix + a.command
	}
	return a.what
}

// runPrefix begins the text of an action that is a command.
const runPrefix = "run "

// SyntaxError says where a file of alarms is wrong.
type SyntaxError struct {
	Line, Column int // from 1
	Why          string
}

func (e *SyntaxError) Error() string {
	return fmt.Sprintf("line %d, column %d: %s", e.Line, e.Column, e.Why)
}

// ParseRules reads alarms, one per line; # begins a comment. The error is a
// *[SyntaxError].
func ParseRules(text string) (rules []*Rule, err error) {
	for i, line := range strings.Split(text, "\n") {
		if trimmed := strings.TrimSpace(line); trimmed == "" || trimmed[0] == '#' {
			continue
		}
		r, err := parseRule(i+1, strings.TrimRight(line, " \t\r"))
		if err != nil {
			return nil, err
		}
		if slices.ContainsFunc(rules, func(o *Rule) bool { return o.Name == r.Name }) {
			return nil, &SyntaxError{i + 1, 1, fmt.Sprintf("there are two alarms %q: choose another name", r.Name)}
		}
		rules = append(rules, r)
	}
	return rules, nil
}

// parser reads one line.
type parser struct {
	line, at int
	depth    int // of parentheses
	text     string
	silent   bool
}

// wrong ends parsing; parseRule recovers it.
func (p *parser) wrong(at int, format string, args ...any) {
	panic(&SyntaxError{p.line, at + 1, fmt.Sprintf(format, args...)})
}

func parseRule(line int, text string) (r *Rule, err error) {
	p := &parser{line: line, text: text}
	defer func() {
		if e := recover(); e != nil {
			wrong, ok := e.(*SyntaxError)
			if !ok {
				panic(e)
			}
			err = wrong
		}
	}()
	r = &Rule{text: strings.TrimSpace(text)}
	r.Name = p.word("the name of the alarm")
	p.expect(":", "after the name")
	r.value = p.sum()
	switch {
	case p.take(">"):
		r.above = true
	case p.take("<"):
	default:
		p.wrong(p.at, "> or < is missing after the expression%s", p.found())
	}
	r.bound = p.number()
	p.options(r)
	p.expect("->", "before the actions")
	for {
		r.actions = append(r.actions, p.action())
		if !p.take(",") {
			break
		}
	}
	if p.space(); p.at < len(p.text) {
		p.wrong(p.at, "a comma is missing between two actions%s", p.found())
	}
	r.silent = p.silent
	return r, nil
}

// options reads clear, for and per, in any order, each once.
func (p *parser) options(r *Rule) {
	cleared := false
	seen := map[string]bool{}
	for {
		p.space()
		at := p.at
		if strings.HasPrefix(p.text[at:], "->") || at == len(p.text) {
			break
		}
		name := p.word("clear, for, per or ->")
		if seen[name] {
			p.wrong(at, "%s is given twice", name)
		}
		seen[name] = true
		switch name {
		case "clear":
			p.space()
			at := p.at
			r.clear, cleared = p.number(), true
			if r.above && r.clear > r.bound || !r.above && r.clear < r.bound {
				p.wrong(at, "an alarm that is raised at %v cannot be cleared at %v: choose a value on the other side", r.bound, r.clear)
			}
		case "for":
			p.duration(r)
		case "per":
			p.space()
			at := p.at
			switch of := p.word("rank or run"); of {
			case "rank":
			case "run":
				r.perRun = true
			default:
				p.wrong(at, "per %s is unknown: write per rank or per run", of)
			}
		default:
			p.wrong(at, "%q is unknown: write clear, for, per or ->%s", name, spelling.DidYouMean(name, []string{"clear", "for", "per"}))
		}
	}
	if !cleared { // without a distance an alarm would flicker
		r.clear = r.bound - math.Abs(r.bound)/10
		if !r.above {
			r.clear = r.bound + math.Abs(r.bound)/10
		}
	}
}

func (p *parser) duration(r *Rule) {
	p.space()
	at := p.at
	text := p.span(func(c byte) bool { return isWord(c) || c == '.' })
	if n, err := strconv.ParseInt(text, 10, 64); err == nil && n > 0 {
		if word := p.word("steps"); word == "steps" || word == "step" {
			r.steps = n
			return
		}
		p.wrong(at, "a time has a unit: write 30s, 5m, 1h or 30 steps")
	}
	d, err := time.ParseDuration(text)
	if err != nil || d <= 0 {
		p.wrong(at, "%q is no time: write 30s, 5m, 1h or 30 steps", text)
	}
	r.holds = d
}

func (p *parser) action() action {
	p.space()
	at := p.at
	switch what := p.word("an action: log, snapshot, empty_cache or run"); what {
	case "log", "snapshot", "empty_cache":
		return action{what: what}
	case "run":
		command := strings.TrimSpace(p.text[p.at:])
		if command == "" {
			p.wrong(p.at, "run needs a command")
		}
		p.at = len(p.text) // it may have commas
		return action{what, command}
	default:
		known := []string{"log", "snapshot", "empty_cache", "run"}
		p.wrong(at, "%q is no action: write log, snapshot, empty_cache or run%s", what, spelling.DidYouMean(what, known))
	}
	return action{}
}

// number reads a value with or without a unit: 0.3, 30%, 2GiB, 60s.
func (p *parser) number() float64 {
	p.space()
	at := p.at
	p.take("-")
	p.span(func(c byte) bool { return isWord(c) || c == '.' || c == '%' })
	text := p.text[at:p.at]
	if text == "" {
		p.wrong(at, "a value is missing%s", p.found())
	}
	if v, err := strconv.ParseFloat(strings.TrimSuffix(text, "%"), 64); err == nil && !math.IsNaN(v) && !math.IsInf(v, 0) {
		if strings.HasSuffix(text, "%") {
			v /= 100
		}
		return v
	}
	if d, err := time.ParseDuration(text); err == nil {
		return d.Seconds()
	}
	n, err := units.Parse(text)
	if err != nil {
		p.wrong(at, "%q is no value: write a number such as 0.3, 30%%, 2GiB or 60s", text)
	}
	return float64(n)
}

func (p *parser) space() { p.span(func(c byte) bool { return c == ' ' || c == '\t' }) }

func (p *parser) span(of func(byte) bool) string {
	from := p.at
	for p.at < len(p.text) && of(p.text[p.at]) {
		p.at++
	}
	return p.text[from:p.at]
}

func isWord(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_'
}

func (p *parser) word(what string) string {
	p.space()
	at := p.at
	word := p.span(func(c byte) bool { return isWord(c) || c == '-' && at == 0 })
	if word == "" {
		p.wrong(at, "%s is missing%s", what, p.found())
	}
	return word
}

func (p *parser) take(token string) bool {
	p.space()
	if !strings.HasPrefix(p.text[p.at:], token) {
		return false
	}
	p.at += len(token)
	return true
}

func (p *parser) expect(token, where string) {
	if !p.take(token) {
		p.wrong(p.at, "%s is missing %s%s", token, where, p.found())
	}
}

// found says what is there instead.
func (p *parser) found() string {
	if p.at >= len(p.text) {
		return ": the line ends here"
	}
	return fmt.Sprintf(": found %.20q", p.text[p.at:])
}
