package handle

import (
	"cmp"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"
	"sync"

	"github.com/ashlar-mem/ashlar/internal/units"
)

// Leak is memory that has holders.
type Leak struct {
	Addr, Size, Stream uint64
	Holders            int
	Stacks             []Stack // of the holders, oldest first; nil without Options.Debug
}

// Stack is the call that made a holder, as program counters.
type Stack []uintptr

// String returns the stack, a line for each function, the innermost first.
func (s Stack) String() string {
	var text strings.Builder
	frames := runtime.CallersFrames(s)
	for {
		f, more := frames.Next()
		if f.Function != "" {
			fmt.Fprintf(&text, "%s %s:%d\n", f.Function, f.File, f.Line)
		}
		if !more {
			return text.String()
		}
	}
}

// Leaks returns what is not released, the largest first. While other goroutines
// retain and release, it is a picture of some moment for each entry.
func (t *Table) Leaks() []Leak {
	t.mu.Lock()
	defer t.mu.Unlock()
	var leaks []Leak
	for _, s := range t.slots {
		if n := holders(s.state.Load()); n > 0 {
			l := Leak{Addr: s.addr, Size: s.size.Load(), Stream: s.stream, Holders: int(n)}
			if t.debug != nil {
				l.Stacks = t.debug.stacks(s)
			}
			leaks = append(leaks, l)
		}
	}
	slices.SortFunc(leaks, func(x, y Leak) int {
		return cmp.Or(cmp.Compare(y.Size, x.Size), cmp.Compare(x.Addr, y.Addr))
	})
	return leaks
}

// LeakError says what a table still holds.
type LeakError struct{ Leaks []Leak }

func (e *LeakError) Error() string {
	var bytes uint64
	for _, l := range e.Leaks {
		bytes += l.Size
	}
	var text strings.Builder
	fmt.Fprintf(&text, "handle: %s with %s not released", units.Plural(len(e.Leaks), "buffer"), units.Plural(bytes, "byte"))
	for i, l := range e.Leaks {
		if i == maxListed {
			fmt.Fprintf(&text, "\n  and %d more", len(e.Leaks)-i)
			break
		}
		fmt.Fprintf(&text, "\n  %s at %#x, %s", units.Plural(l.Size, "byte"), l.Addr, units.Plural(l.Holders, "holder"))
		for _, s := range l.Stacks {
			text.WriteString("\n    held by " + strings.ReplaceAll(strings.TrimSpace(s.String()), "\n", "\n            "))
		}
	}
	if e.Leaks[0].Stacks == nil {
		text.WriteString("\n  Options.Debug names the holders")
	}
	return text.String()
}

// maxListed is how many leaks an error lists.
const maxListed = 10

// Check returns a [*LeakError] if anything is not released: at the end of a test, or of a program.
func (t *Table) Check() error {
	if l := t.Leaks(); len(l) > 0 {
		return &LeakError{l}
	}
	return nil
}

// debug keeps the holders of all slots.
type debug struct {
	mu   sync.Mutex
	last uint32
}

// add remembers the stack of a new holder, from the caller of this package on.
func (d *debug) add(s *slot) uint32 {
	var pcs [32]uintptr
	n := runtime.Callers(3, pcs[:])
	d.mu.Lock()
	defer d.mu.Unlock()
	if s.held == nil {
		s.held = map[uint32]Stack{}
	}
	for d.last++; d.last == 0 || s.held[d.last] != nil; d.last++ { // after 2^32 holders
	}
	s.held[d.last] = slices.Clone(pcs[:n])
	return d.last
}

// remove forgets a holder, and reports whether it was one.
func (d *debug) remove(s *slot, holder uint32) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	_, found := s.held[holder]
	delete(s.held, holder)
	return found
}

func (d *debug) stacks(s *slot) []Stack {
	d.mu.Lock()
	defer d.mu.Unlock()
	stacks := make([]Stack, 0, len(s.held))
	for _, holder := range slices.Sorted(maps.Keys(s.held)) {
		stacks = append(stacks, s.held[holder])
	}
	return stacks
}
