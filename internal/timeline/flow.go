package timeline

import "github.com/ashlar-mem/ashlar/trace"

// Amount is some blocks and their bytes.
type Amount struct {
	Bytes  uint64 `json:"bytes"`
	Blocks int    `json:"blocks"`
}

func (a *Amount) add(bytes uint64) {
	a.Bytes += bytes
	a.Blocks++
}

// Flow is what became of some blocks between two moments. Before, Peak and End
// are active then; Kept, Passing and Released are what made the difference:
// End is Before and Kept without Released.
type Flow struct {
	Before Amount `json:"before"`
	Peak   Amount `json:"peak"` // when the active memory of all blocks is highest
	End    Amount `json:"end"`

	Kept     Amount `json:"kept"`     // allocated in between and active at the end
	Leaked   Amount `json:"leaked"`   // of Kept, what no later event frees
	Passing  Amount `json:"passing"`  // allocated and freed in between
	Released Amount `json:"released"` // active before and freed in between
}

// Delta is the change of active bytes.
func (f *Flow) Delta() int64 { return int64(f.End.Bytes - f.Before.Bytes) }

// Add adds another flow.
func (f *Flow) Add(o *Flow) {
	for _, p := range [...][2]*Amount{
		{&f.Before, &o.Before},
		{&f.Peak, &o.Peak},
		{&f.End, &o.End},
		{&f.Kept, &o.Kept},
		{&f.Leaked, &o.Leaked},
		{&f.Passing, &o.Passing},
		{&f.Released, &o.Released},
	} {
		p[0].Bytes += p[1].Bytes
		p[0].Blocks += p[1].Blocks
	}
}

// Between is the piece of a trace from the moment after one event to the moment
// after a later one; -1 is the moment before the first event.
type Between struct {
	After, Until int
	// Peak is the first moment of the piece at which most memory is active.
	Peak int

	lives *Lifetimes
}

// NewBetween finds the peak of a piece.
func NewBetween(lives *Lifetimes, totals *TotalsIndex, after, until int) *Between {
	return &Between{After: after, Until: until, Peak: totals.highestActive(after, until), lives: lives}
}

// Each calls f with all blocks that are active at some moment of the piece, in
// the order of their allocation.
func (b *Between) Each(f func(block int)) {
	for _, i := range b.lives.Alive(nil, b.After) {
		f(int(i))
	}
	for i := b.lives.Begun(b.After); i < b.lives.Begun(b.Until); i++ {
		f(i)
	}
}

// Count adds one of the blocks to a flow.
func (b *Between) Count(f *Flow, block int) {
	size, born, gone := b.lives.Size[block], int(b.lives.Born[block]), int(b.lives.Gone[block])
	before, end := born <= b.After, gone > b.Until
	if before {
		f.Before.add(size)
	}
	if born <= b.Peak && gone > b.Peak {
		f.Peak.add(size)
	}
	if end {
		f.End.add(size)
	}
	switch {
	case before && !end:
		f.Released.add(size)
	case !before && end:
		f.Kept.add(size)
		if b.lives.Freed[block] == Never {
			f.Leaked.add(size)
		}
	case !before:
		f.Passing.add(size)
	}
}

// Stack returns the stack under which a block is counted: nobody knows more
// about an empty one than about none.
func (b *Between) Stack(block int) trace.StackID {
	if id := b.lives.Stack(block); id != trace.EmptyStack {
		return id
	}
	return trace.NoStack
}

// highestActive returns the first of the moments from after one event to after
// another at which most memory is active.
func (c *TotalsIndex) highestActive(first, last int) int {
	level := c.At(first)
	most, at := level.Active, first
	for i := first + 1; i <= last; {
		run := i / totalsRun
		if i%totalsRun == 0 && i+totalsRun <= last+1 && c.highest[run].Active <= most {
			if i += totalsRun; i <= last {
				level = c.before[run+1]
			}
			continue
		}
		c.apply(&level, i)
		if level.Active > most {
			most, at = level.Active, i
		}
		i++
	}
	return at
}
