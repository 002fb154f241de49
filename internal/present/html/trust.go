package html

import (
	"slices"
	"strings"
)

// grave are the gaps of a file that change what all the rest means. They stand
// first; the others come at the end.
var grave = []string{"truncated", "events", "start", "replay"}

// trust says what the report rests on and what the file lacks.
func (p *page) trust(s *subject, d detail) {
	if s.Facts != nil {
		for _, m := range s.Facts.Missing {
			if slices.Contains(grave, m.What) && len(p.Warnings) < d.notes {
				p.Warnings = append(p.Warnings, d.say("Not in the file: "+m.Text))
			}
			if len(p.Missing) < d.notes {
				p.Missing = append(p.Missing, d.say(m.Text))
			}
		}
	}
	r := s.Explain
	if r == nil {
		return
	}
	if c := r.SelfCheck; c != nil {
		said := d.say(strings.ToUpper(c.Note[:1]) + c.Note[1:] + ".")
		p.Trust = append(p.Trust, said)
		if !c.Complete && c.Identical < c.Events {
			p.Warnings = append(p.Warnings, said)
		}
	}
	p.Notes = d.sayAll(r.Notes, d.notes)
	if s.WhatIf != nil {
		for _, n := range s.WhatIf.Notes {
			if n = d.say(n); !slices.Contains(p.Notes, n) && len(p.Notes) < d.notes {
				p.Notes = append(p.Notes, n)
			}
		}
	}
}
