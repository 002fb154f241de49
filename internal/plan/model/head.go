package model

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/ashlar-mem/ashlar/internal/plan/problem"
)

// Heads lists the names that [WithHead] takes.
func Heads() []string {
	return []string{string(HeadCausal), string(HeadMasked), string(HeadSeq2Seq), string(HeadImage), string(HeadNone)}
}

// architecture is the first class name of architectures, "" if there is none.
func (f *fields) architecture() string {
	raw, _, st := f.find("architectures")
	if st != given {
		return ""
	}
	var names []string
	if err := json.Unmarshal(raw, &names); err != nil {
		f.fail("%sarchitectures is %s; it must be a list of class names or null", f.at, show(raw))
		return ""
	}
	if len(names) == 0 {
		return ""
	}
	return names[0]
}

// setHead settles the head: what the caller asks for, else what architectures
// says, else the family's usual one.
func (m *Model) setHead(fam *family, arch, asked string) error {
	switch {
	case asked != "":
		head := Head(strings.ToLower(asked))
		if head != HeadNone && head != fam.head {
			return fmt.Errorf("head %q: %s has %s or none", asked, m.ModelType, fam.head)
		}
		m.Head = head
	case arch == "":
		m.Head = fam.head
		m.Assumed = append(m.Assumed, Assumption{
			Field: "architectures", Value: fam.class,
			Why: "the file names none; the usual head of " + m.ModelType,
		})
	default:
		head, ok := fam.headOf(arch)
		if !ok {
			return problem.New("architectures names %q, a head that is not modelled for %s: give {head} %s to plan the model with that head instead",
				arch, m.ModelType, fam.head)
		}
		m.Head = head
	}
	m.Class = fam.class
	if m.Head == HeadNone {
		m.Class = fam.base
	}
	return nil
}

// UsualHead is the head of the model's family.
func (m *Model) UsualHead() Head {
	fam, _ := familyOf(m.ModelType)
	return fam.head
}

// headOf is the head of a class of the family.
func (fam *family) headOf(class string) (Head, bool) {
	switch class {
	case fam.class:
		return fam.head, true
	case fam.base:
		return HeadNone, true
	}
	for _, other := range fam.also {
		if class == other {
			return fam.head, true
		}
	}
	return "", false
}
