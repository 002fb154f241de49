package explain

import (
	"fmt"

	"github.com/ashlar-mem/ashlar/internal/units"
)

// LimitError says that the limit that was given cannot have been in force: a
// request was served that it forbids, or refused that it allows.
type LimitError struct {
	Limit uint64
	Low   uint64  // the least that is possible
	High  *uint64 // the most; nil if that is not known
	Said  bool    // the message gives it
}

func (e *LimitError) Error() string {
	why := fmt.Sprintf("%s was reserved under it", units.SizeUp(e.Low))
	switch {
	case e.Said:
		return fmt.Sprintf("the limit of %s cannot have been in force: the message says %s", units.Size(e.Limit), units.Size(e.Low+(*e.High-e.Low)/2))
	case e.Limit >= e.Low:
		why = fmt.Sprintf("a request was refused that %s would have allowed", units.SizeUp(*e.High+1))
	}
	possible := "at least " + units.SizeUp(e.Low)
	if e.High != nil {
		possible = fmt.Sprintf("between %s and %s", units.SizeUp(e.Low), units.Size(*e.High))
	}
	return fmt.Sprintf("the limit of %s cannot have been in force: %s; it was %s", units.Size(e.Limit), why, possible)
}

// refutes finds out whether the limit that was given is impossible; said is that
// of the message.
func (a *textEvidence) refutes(said *units.Range) {
	if a.Limit == 0 {
		return
	}
	low, high := uint64(1), (*uint64)(nil)
	if a.reserved != nil {
		low = max(low, a.reserved.Low)
		// The device had room, so it was the limit that refused.
		if a.segment != nil && a.free != nil && surelyFits(*a.segment, *a.free) {
			most := a.reserved.Add(*a.segment).High - 1
			high = &most
		}
	}
	if said != nil {
		low, high = said.Low, &said.High
	}
	if a.Limit < low || high != nil && a.Limit > *high {
		a.impossible = &LimitError{Limit: a.Limit, Low: low, High: high, Said: said != nil}
	}
}
