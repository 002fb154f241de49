package settings

import (
	"fmt"
	"strings"
)

// Kind is the Python exception that PyTorch raises for an error.
type Kind string

// The kinds of spec 11.2. A RuntimeError is one of PyTorch's internal asserts.
const (
	ValueError   Kind = "ValueError"
	IndexError   Kind = "IndexError"
	RuntimeError Kind = "RuntimeError"
)

// Error is one thing wrong in a text of settings.
type Error struct {
	Key     string // the key as it was written
	Value   string // the offending token; empty if it is missing or the key is the fault
	Allowed string // what may stand there
	Hint    string // what was probably meant; often empty
	Pos     int    // number of the offending token, counted from 0
	Kind    Kind   // the exception in Python
	PyTorch string // the text of that exception, without what internal asserts add around it

	fault string // what is wrong with Value, in words
}

// Error names the key, what is wrong with it and what is allowed, in one line.
func (e *Error) Error() string {
	var b strings.Builder
	fault := e.fault
	if fault == "" {
		fault = fmt.Sprintf("%q is not allowed", e.Value)
	}
	fmt.Fprintf(&b, "allocator setting %q: %s", e.Key, fault)
	if e.Hint != "" {
		fmt.Fprintf(&b, " (%s)", e.Hint)
	}
	fmt.Fprintf(&b, "; allowed: %s", e.Allowed)
	return b.String()
}

// unknownKey is the error for the token at pos, which no option bears.
func (p *parser) unknownKey(pos int) *Error {
	key := p.tokens[pos]
	place := "CUDA" // who complains first, spec 11.2
	if p.running {
		place = "Accelerator"
	}
	names := make([]string, 0, len(options))
	for _, o := range options {
		names = append(names, o.key)
	}
	for _, o := range p.more {
		names = append(names, o.key)
	}
	return &Error{
		Key: key, Allowed: strings.Join(names, ", "), Hint: hint(key), Pos: pos, Kind: ValueError,
		PyTorch: fmt.Sprintf("Unrecognized key '%s' in %s allocator config.", key, place),
		fault:   "unknown key in PyTorch 2.11",
	}
}

// hint guesses what an unknown key was meant to be.
func hint(key string) string {
	if v := laterKeys[key]; v != 0 {
		return fmt.Sprintf("it exists only from PyTorch %v on", v)
	}
	best := ""
	for _, o := range options {
		for _, name := range o.names() {
			switch {
			case hasFoldedPrefix(key, name) && len(key) > len(name):
				if value := strings.TrimLeft(key[len(name):], "="); value != "" {
					return fmt.Sprintf("write %s:%s", name, value)
				}
				return "write " + name + ":VALUE"
			case len(key) > 3 && hasFoldedPrefix(name, key) && (best == "" || len(name) < len(best)):
				best = name
			}
		}
	}
	if best != "" {
		return "did you mean " + best + "?"
	}
	return ""
}
