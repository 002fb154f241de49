package replay

import "github.com/ashlar-mem/ashlar/settings/pytorch"

// PyTorch is the release that wrote a file, and the one whose rules were followed,
// as documents have them.
type PyTorch struct {
	First *string `json:"first"` // that may have written it; null if nothing is known
	Last  *string `json:"last"`
	Rules string  `json:"rules"`

	writer pytorch.Range
}

// NewPyTorch describes a file that was written by one of several versions, and read
// by the rules of one.
func NewPyTorch(writer pytorch.Range, rules pytorch.Version) PyTorch {
	if rules == 0 {
		rules = pytorch.Default
	}
	p := PyTorch{Rules: rules.String(), writer: writer}
	if writer.Known() {
		first, last := writer.First.String(), writer.Last.String()
		p.First, p.Last = &first, &last
	}
	return p
}

// String names the writer, and the rules where they do not follow from it.
func (p PyTorch) String() string {
	said := "PyTorch " + p.writer.String()
	if !p.writer.Known() {
		return "an unknown PyTorch, by the rules of " + p.Rules
	}
	if _, exact := p.writer.Exact(); !exact && !p.writer.Has(pytorch.Default) {
		said += ", by the rules of " + p.Rules
	}
	return said
}
