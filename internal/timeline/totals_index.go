package timeline

import (
	"github.com/ashlar-mem/ashlar/alloc"
)

// Level has the totals at one moment. They are sums of block sizes if the
// [Lifetimes] are exact, otherwise of requested sizes.
type Level struct {
	Reserved  uint64
	Allocated uint64
	Active    uint64 // Allocated and pending
	Requested uint64 // in active blocks
}

// Pending returns the bytes that are freed but still in use on another stream.
func (l *Level) Pending() uint64 { return l.Active - l.Allocated }

// TotalsIndex returns the totals after any event without a walk from the first.
type TotalsIndex struct {
	lifetimes *Lifetimes
	// One entry per totalsRun events: the level before them, and the highest of
	// each total within them.
	before, highest []Level
	pending         []uint64 // highest
	end             Level
}

// totalsRun is the number of events between stored levels: an index a hundredth
// of the size of one level per event, and a short walk for each lookup.
const totalsRun = 64

// NewTotalsIndex sums the lifetimes of a timeline.
func NewTotalsIndex(l *Timeline, lives *Lifetimes) *TotalsIndex {
	n := lives.Events()
	c := &TotalsIndex{lifetimes: lives}
	level := Level{Reserved: l.before.Reserved}
	for i := range lives.Older {
		level.add(lives, i)
		if lives.Freed[i] < 0 {
			level.Allocated -= lives.Size[i]
		}
	}
	for i := 0; i < n; i += totalsRun {
		high, pending := Level{}, uint64(0)
		c.before = append(c.before, level)
		for k := i; k < min(i+totalsRun, n); k++ {
			c.apply(&level, k)
			high.raise(&level)
			pending = max(pending, level.Pending())
		}
		c.highest, c.pending = append(c.highest, high), append(c.pending, pending)
	}
	c.end = level
	return c
}

func (l *Level) add(lives *Lifetimes, i int) {
	l.Allocated += lives.Size[i]
	l.Active += lives.Size[i]
	l.Requested += lives.Requested(i)
}

func (l *Level) raise(o *Level) {
	l.Reserved, l.Allocated = max(l.Reserved, o.Reserved), max(l.Allocated, o.Allocated)
	l.Active, l.Requested = max(l.Active, o.Active), max(l.Requested, o.Requested)
}

// remove subtracts a block that is gone after an event.
func (l *Level) remove(lives *Lifetimes, i, event int) {
	if int(lives.Freed[i]) == event {
		l.Allocated -= lives.Size[i]
	}
	l.Active -= lives.Size[i]
	l.Requested -= lives.Requested(i)
}

// apply updates a level by one event.
func (c *TotalsIndex) apply(level *Level, event int) {
	events := &c.lifetimes.Trace.Events
	switch events.Action.At(event) {
	case alloc.ActionAlloc:
		if old, ok := c.lifetimes.replaced[int32(event)]; ok {
			level.remove(c.lifetimes, int(old), event)
		}
		level.add(c.lifetimes, c.lifetimes.BlockOf(event))
	case alloc.ActionFreeRequested:
		if i := c.lifetimes.BlockOf(event); i >= 0 && int(c.lifetimes.Freed[i]) == event {
			level.Allocated -= c.lifetimes.Size[i]
		}
	case alloc.ActionFreeCompleted:
		if i := c.lifetimes.BlockOf(event); i >= 0 {
			level.remove(c.lifetimes, i, event)
		}
	case alloc.ActionSegmentAlloc, alloc.ActionSegmentMap:
		level.Reserved += events.Size.At(event)
	case alloc.ActionSegmentFree, alloc.ActionSegmentUnmap:
		level.Reserved = less(level.Reserved, events.Size.At(event))
	}
}

// At returns the totals after an event; -1 is before the first.
func (c *TotalsIndex) At(event int) Level {
	n := c.lifetimes.Events()
	if event >= n-1 {
		return c.end
	}
	run := (event + 1) / totalsRun
	level := c.before[run]
	for i := run * totalsRun; i <= event; i++ {
		c.apply(&level, i)
	}
	return level
}

// Step updates the totals before an event to those after it.
func (c *TotalsIndex) Step(level *Level, event int) { c.apply(level, event) }

// Highest returns the highest of each total, and of pending bytes, from just
// before the event first to just after the event last.
func (c *TotalsIndex) Highest(first, last int) (high Level, pending uint64) {
	level := c.At(first - 1)
	high, pending = level, level.Pending()
	last = min(last, c.lifetimes.Events()-1)
	for i := first; i <= last; {
		if i%totalsRun == 0 && i+totalsRun <= last+1 {
			run := i / totalsRun
			high.raise(&c.highest[run])
			pending = max(pending, c.pending[run])
			if i += totalsRun; i <= last {
				level = c.before[run+1]
			}
			continue
		}
		c.apply(&level, i)
		high.raise(&level)
		pending = max(pending, level.Pending())
		i++
	}
	return high, pending
}
