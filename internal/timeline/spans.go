package timeline

import (
	"math"
	"sort"
)

// Never is later than every event: the end of a life that the trace does not
// show.
const Never = math.MaxInt32

// Lifetimes are when things were there, by column and in the order of their
// beginning: blocks ([Lives]) or segments ([Layout].Spaces). A thing is named by
// its position.
//
// It is there after the events from Born to Gone - 1, and pending from Freed on.
type Spans struct {
	Born  []int32 // -1 if older than the trace
	Freed []int32 // Never if it was not; -1 if before the trace
	Gone  []int32 // Never if it is there at the end
	Size  []uint64

	last []int32 // the latest Gone of each lifeRun things
}

// lifeRun is how many things share an entry of the index of the latest end: most
// runs are over at any later moment and are skipped as a whole.
const lifeRun = 512

func (l *Spans) add(born, freed, gone int32, size uint64) {
	l.Born = append(l.Born, born)
	l.Freed = append(l.Freed, freed)
	l.Gone = append(l.Gone, gone)
	l.Size = append(l.Size, size)
}

// grow makes room for n things.
func (l *Spans) grow(n int) {
	l.Born, l.Freed, l.Gone = make([]int32, 0, n), make([]int32, 0, n), make([]int32, 0, n)
	l.Size = make([]uint64, 0, n)
}

// index is made when all things are there.
func (l *Spans) index() {
	for i := 0; i < len(l.Gone); i += lifeRun {
		last := int32(0)
		for _, gone := range l.Gone[i:min(i+lifeRun, len(l.Gone))] {
			last = max(last, gone)
		}
		l.last = append(l.last, last)
	}
}

// Len is the number of things.
func (l *Spans) Len() int { return len(l.Born) }

// Begun is how many begin with an event or before it: they are the first ones.
func (l *Spans) Begun(event int) int {
	return sort.Search(len(l.Born), func(i int) bool { return int(l.Born[i]) > event })
}

// Alive appends those that are there after an event, in order. Event -1 is the
// moment before the first one.
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
