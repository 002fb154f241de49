package settings

import (
	"fmt"
	"strings"
)

// parser walks the tokens of one text and changes s on its way.
type parser struct {
	settings Settings
	tokens   []string
	running  bool     // a change at run time, not the environment
	more     []option // keys beside PyTorch's
	skips    bool     // what is not known, and goes on
	skipped  []string
}

// field is one key of the text and the place of its value.
type field struct {
	*option
	name string // key or alias, as written
	at   int    // token number of the value
}

func (p *parser) parse() error {
	// What every parse resets, spec 11.2.
	p.settings.MaxSplitSize = None
	p.settings.RoundupPower2Divisions = [16]uint64{}
	p.settings.GarbageCollectionThreshold = 0
	p.settings.MaxNonSplitRounding = p.settings.LargeSegmentSize

	if err := p.parseLargeSegmentSize(); err != nil {
		return err
	}
	for i := 0; i < len(p.tokens); {
		o := p.lookup(p.tokens[i])
		if o == nil && p.skips {
			i = p.skip(i)
			continue
		}
		if o == nil {
			return p.unknownKey(i)
		}
		f := field{o, p.tokens[i], i + 2} // any token may stand between
		if f.at >= len(p.tokens) {
			return p.missing(f, len(p.tokens))
		}
		if o.key != largeSegmentSize {
			if err := o.set(p, f); err != nil {
				return err
			}
		}
		i = p.valueEnd(f.at) + 1 // any token may stand between
	}
	return nil
}

// parseLargeSegmentSize is the first pass over the text: other keys are checked
// against this one wherever it stands (spec 11.2).
func (p *parser) parseLargeSegmentSize() error {
	for i := 0; i < len(p.tokens); i = p.valueEnd(i+2) + 1 {
		if p.tokens[i] != largeSegmentSize {
			continue
		}
		f := field{lookup(largeSegmentSize), p.tokens[i], i + 2}
		if f.at >= len(p.tokens) {
			return p.missing(f, len(p.tokens))
		}
		if err := f.set(p, f); err != nil {
			return err
		}
		p.settings.MaxNonSplitRounding = p.settings.LargeSegmentSize
	}
	return nil
}

// valueEnd returns the token number after the value that begins at at. A list
// ends at the first ] where an entry could begin or end.
func (p *parser) valueEnd(at int) int {
	if at < len(p.tokens) && p.tokens[at] == "[" {
		for at++; at < len(p.tokens) && p.tokens[at] != "]"; at++ {
			at = p.entryEnd(at)
		}
	}
	return at + 1
}

// entryEnd returns the number of the last token of the list entry that begins
// at at: that of its value, or of the separator behind it.
func (p *parser) entryEnd(at int) int {
	value := at + 2
	if value+1 < len(p.tokens) && p.tokens[value+1] != "]" {
		return value + 1
	}
	return value
}

func (p *parser) readBool(f field) (bool, error) {
	switch tok := p.tokens[f.at]; tok {
	case "True":
		return true, nil
	case "False":
		return false, nil
	default:
		return false, p.refuse(f, fmt.Sprintf("Expected 'True' or 'False' at index %d in ConfigTokenizer but got '%s'", f.at, tok))
	}
}

func (p *parser) readUint(f field) (uint64, error) {
	v, err := stoull(p.tokens[f.at])
	return v, p.numberError(f, err, "stoull")
}

func (p *parser) readFloat(f field) (float64, error) {
	v, err := stod(p.tokens[f.at])
	return v, p.numberError(f, err, "stod")
}

// numberError turns what reading a number said into an error of its key.
func (p *parser) numberError(f field, err error, function string) error {
	if err == nil {
		return nil
	}
	e := p.refuse(f, function)
	e.fault = fmt.Sprintf("%q is %v", e.Value, err)
	if err == errRange {
		e.Kind = IndexError
	}
	return e
}

// refuse is the error for a value outside of what is allowed.
func (p *parser) refuse(f field, pytorch string) *Error {
	return &Error{Key: f.name, Value: p.tokens[f.at], Allowed: f.allowed(p.settings), Pos: f.at, Kind: ValueError, PyTorch: pytorch}
}

// missing is the error for a text that ends before token pos.
func (p *parser) missing(f field, pos int) *Error {
	return &Error{
		Key: f.name, Allowed: f.allowed(p.settings), Pos: pos, Kind: RuntimeError,
		PyTorch: "Index out of bounds in ConfigTokenizer",
		fault:   "the text ends where a value should stand",
	}
}

// tokenize cuts a text at , : [ and ], which are tokens themselves, and removes
// all white space (spec 11.2).
func tokenize(conf string) []string {
	var tokens []string
	var word strings.Builder
	flush := func() {
		if word.Len() > 0 {
			tokens = append(tokens, word.String())
			word.Reset()
		}
	}
	for i := 0; i < len(conf); i++ {
		switch c := conf[i]; c {
		case ',', ':', '[', ']':
			flush()
			tokens = append(tokens, string(rune(c)))
		case ' ', '\t', '\n', '\v', '\f', '\r':
		default:
			word.WriteByte(c)
		}
	}
	flush()
	return tokens
}
