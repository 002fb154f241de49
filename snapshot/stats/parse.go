package stats

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/ashlar-mem/ashlar/snapshot/message"
)

// maxInput is the longest text read. A dump has 5 KB.
const maxInput = 64 << 20

// Parse reads the one dump in data. Data with several is an error that names
// them; [ParseAll] reads those.
func Parse(data []byte) (*Dump, error) {
	all, err := ParseAll(data)
	switch {
	case err != nil:
		return nil, err
	case len(all) > 1:
		var names []string
		for _, d := range all[:min(len(all), 8)] {
			names = append(names, d.name())
		}
		return nil, fmt.Errorf("%d memory_stats() dumps where one was expected (%s); choose one", len(all), strings.Join(names, "; "))
	}
	return all[0], nil
}

// name distinguishes a dump from the others in a text.
func (d *Dump) name() string {
	s := "line " + strconv.Itoa(d.Line)
	if d.Label != "" {
		s += " " + strconv.Quote(d.Label)
	}
	if d.Device >= 0 {
		s += " device " + strconv.Itoa(d.Device)
	}
	return s
}

// ParseAll finds every dump in data, in order. The error is [ErrNotFound] if
// there is none, and a [*SyntaxError] for the first dump that cannot be read;
// those that can be are then returned with it.
func ParseAll(data []byte) ([]*Dump, error) {
	if len(data) > maxInput {
		return nil, fmt.Errorf("memory_stats() dump of %d bytes: more than %d are not read", len(data), maxInput)
	}
	raw := string(data)
	dumps, failed := scan(raw)
	if (len(dumps) == 0 || failed != nil) && mayHold(raw) {
		// Perhaps a log with something in front of every line.
		if d, f := scan(message.Plain(raw)); len(d) > len(dumps) || len(d) == len(dumps) && f == nil || failed == nil {
			dumps, failed = d, f
		}
	}
	var all []*Dump
	line, counted := 1, 0
	for _, d := range dumps {
		line += strings.Count(raw[counted:d.at], "\n")
		counted = d.at
		d.Line = line
		all = append(all, d.Dump)
	}
	switch {
	case failed != nil:
		return all, syntaxError(raw, failed)
	case len(all) == 0:
		return nil, ErrNotFound
	}
	return all, nil
}

// mayHold reports cheaply whether text may contain a dump, whatever prefixes its
// lines have.
func mayHold(text string) bool {
	return hasMark(text) || hasTable(text)
}

func hasMark(text string) bool {
	return slices.ContainsFunc(marks, func(m string) bool { return strings.Contains(text, m) })
}

func syntaxError(text string, f *failure) *SyntaxError {
	before := text[:min(f.at, len(text))]
	start := strings.LastIndexByte(before, '\n') + 1
	return &SyntaxError{1 + strings.Count(before, "\n"), 1 + utf8.RuneCountInString(before[start:]), f.problem}
}

// scan finds the dumps of all kinds in text, in order.
func scan(text string) ([]placed, *failure) {
	dumps, failed := scanLiterals(text)
	tables, broken := scanSummaries(text)
	dumps = append(dumps, tables...)
	slices.SortStableFunc(dumps, func(a, b placed) int { return a.at - b.at })
	if failed == nil || broken != nil && broken.at < failed.at {
		failed = broken
	}
	return dumps, failed
}

// marks are words; every dict of a dump has at least one of them.
var marks = []string{
	"allocated_bytes", "reserved_bytes", "active_bytes", "requested_bytes", "inactive_split", "oversize_", "num_alloc_retries", "num_ooms", ".all.", "_pool.",
}

// scanLiterals finds dumps in the dicts and lists of text.
func scanLiterals(text string) (dumps []placed, failed *failure) {
	if !hasMark(text) {
		return nil, nil
	}
	from := 0 // where the dict of failed begins
	for at := 0; at < len(text); {
		i := strings.IndexAny(text[at:], "{[O")
		if i < 0 {
			break
		}
		at += i
		if !mayBegin(text[at:]) {
			at++
			continue
		}
		p := &literals{src: text, at: at}
		v, err := p.read()
		if err != nil {
			if p.stats && failed == nil {
				failed, from = err, at
			}
			at++
			continue
		}
		c := &collector{source: JSON}
		if p.python {
			c.source = Python
		}
		c.walk(v, nil, -1)
		if c.err != nil && failed == nil {
			failed, from = c.err, p.at
		}
		labelDumps(text, at, c.dumps)
		if failed != nil && len(c.dumps) > 0 && from < at && at < failed.at {
			failed = nil // it was only the dict around this one
		}
		dumps = append(dumps, c.dumps...)
		at = p.at
	}
	return dumps, failed
}

// mayBegin reports cheaply whether text, which begins with a bracket or an O, may
// begin with a dump.
func mayBegin(text string) bool {
	if text[0] == 'O' {
		return strings.HasPrefix(text, "OrderedDict")
	}
	rest := strings.TrimLeft(text[1:min(len(text), 256)], " \t\r\n")
	return rest != "" && strings.IndexByte(`"'{[(O0123456789`, rest[0]) >= 0
}

// labelDumps labels the dumps of a literal with the words before it on its line,
// if there are any and the literal has no name for them itself.
func labelDumps(text string, at int, dumps []placed) {
	const longest = 80
	start := max(at-longest, strings.LastIndexByte(text[max(0, at-longest):at], '\n')+1+max(0, at-longest))
	words := strings.TrimSpace(strings.ToValidUTF8(text[start:at], ""))
	if words == "" {
		return
	}
	for _, d := range dumps {
		if d.Label == "" {
			d.Label = words
		}
		if m := deviceWords.FindStringSubmatch(words); m != nil && d.Device < 0 && len(dumps) == 1 {
			d.Device, _ = strconv.Atoi(m[1])
		}
	}
}
