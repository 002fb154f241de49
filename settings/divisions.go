package settings

import "math/bits"

// divisions is roundup_power2_divisions: one number for the whole table, or a
// list of interval:divisions (spec 11.4).
var divisions = option{
	key:     "roundup_power2_divisions",
	allowed: constant("a power of two, or a list such as [256:1,512:2,>:4]"),
	set: func(p *parser, f field) error {
		if p.tokens[f.at] == "[" {
			return p.parseDivisionList(f)
		}
		n, err := p.readUint(f)
		if err != nil {
			return err
		}
		if !isPowerOf2(n) { // unlike in the list, 0 is refused
			return p.refuse(f, "For roundups, the divisions has to be power of 2 ")
		}
		fill(p.settings.RoundupPower2Divisions[:], n)
		return nil
	},
	format: func(s Settings) string { return formatDivisions(s.RoundupPower2Divisions) },
}

// parseDivisionList reads the entries after the [ at f.at, left to right. It
// changes only the entries of the table that are named.
func (p *parser) parseDivisionList(f field) error {
	table := p.settings.RoundupPower2Divisions[:]
	first, last := true, 0 // last: entry of the last numeric key
	i := f.at + 1
	for ; i+2 < len(p.tokens) && p.tokens[i] != "]"; i = p.entryEnd(i) + 1 {
		n, err := p.readDivisions(fieldAt(f, i+2))
		if err != nil {
			return err
		}
		if p.tokens[i] == ">" {
			fill(table[last+1:], n)
			continue
		}
		if last, err = p.readInterval(fieldAt(f, i)); err != nil {
			return err
		}
		if first {
			fill(table[:last], n)
			first = false
		}
		table[last] = n
	}
	if i >= len(p.tokens) || p.tokens[i] != "]" {
		e := p.missing(f, len(p.tokens))
		e.fault = "the list has no closing ]"
		return e
	}
	return nil
}

// readDivisions reads the number behind the colon of a list entry.
func (p *parser) readDivisions(f field) (uint64, error) {
	n, err := p.readUint(f)
	if err == nil && n != 0 && !isPowerOf2(n) {
		e := p.refuse(f, "For roundups, the divisions has to be power of 2 or 0 to disable roundup ")
		e.Allowed = "a power of two or 0 as the divisions of an interval"
		return 0, e
	}
	return n, err
}

// readInterval reads a numeric key and returns its entry in the table.
func (p *parser) readInterval(f field) (int, error) {
	start, err := p.readUint(f)
	if err != nil {
		return 0, err
	}
	if !isPowerOf2(start) {
		e := p.refuse(f, "For roundups, the intervals have to be power of 2 ")
		e.Allowed = "a power of two (MiB) or > as the start of an interval"
		return 0, e
	}
	return min(bits.TrailingZeros64(start), len(p.settings.RoundupPower2Divisions)-1), nil
}

// fieldAt returns the same field with its fault at another token.
func fieldAt(f field, i int) field {
	f.at = i
	return f
}

func fill(entries []uint64, n uint64) {
	for i := range entries {
		entries[i] = n
	}
}
