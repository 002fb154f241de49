package timeline

import (
	"math"
	"sort"
)

// Never is later than every event: the end of a lifetime that goes beyond the
// trace.
const Never = math.MaxInt32

// Spans says when blocks ([Lifetimes]) or segments ([Layout].Spaces) existed, by
// column and in the order of their beginning. Each is named by its position.
//
// It exists after the events Born to Gone - 1, and is pending from Freed on.
type Spans struct {
	Born  []int32 // -1 if older than the trace
	Freed []int32 // Never if it was not freed; -1 if before the trace
	Gone  []int32 // Never if it exists at the end
	Size  []uint64

	last []int32 // the latest Gone of each lifeRun spans
}

// lifeRun is how many spans share an entry of last. Most runs have ended before
// any later moment and are skipped as a whole.
const lifeRun = 512

func (l *Spans) add(born, freed, gone int32, size uint64) {
	l.Born = append(l.Born, born)
	l.Freed = append(l.Freed, freed)
	l.Gone = append(l.Gone, gone)
	l.Size = append(l.Size, size)
}

// grow allocates columns for n spans.
func (l *Spans) grow(n int) {
	l.Born, l.Freed, l.Gone = make([]int32, 0, n), make([]int32, 0, n), make([]int32, 0, n)
	l.Size = make([]uint64, 0, n)
}

// index builds last once all spans are added.
func (l *Spans) index() {
	for i := 0; i < len(l.Gone); i += lifeRun {
		last := int32(0)
		for _, gone := range l.Gone[i:min(i+lifeRun, len(l.Gone))] {
			last = max(last, gone)
		}
		l.last = append(l.last, last)
	}
}

// Len returns the number of spans.
func (l *Spans) Len() int { return len(l.Born) }

// Begun returns how many spans begin at or before an event: they come first.
func (l *Spans) Begun(event int) int {
	return sort.Search(len(l.Born), func(i int) bool { return int(l.Born[i]) > event })
}

// Alive appends to dst the spans that exist after an event, in order. Event -1
// is the moment before the first.
func (l *Spans) Alive(dst []int32, event int) []int32 {
	n := l.Begun(event)
	for run := 0; run*lifeRun < n; run++ {
		if int(l.last[run]) <= event {
			continue
		}
		for i := run * lifeRun; i < min((run+1)*lifeRun, n); i++ {
			if int(l.Gone[i]) > event {
				dst = append(dst, int32(i))
			}
		}
	}
	return dst
}

// Pending reports whether something that is there after an event waits for
// another stream.
func (l *Spans) Pending(i, event int) bool { return int(l.Freed[i]) <= event }
