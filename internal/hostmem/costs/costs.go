package costs

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ashlar-mem/ashlar/internal/hostmem/variant"
)

//go:embed source/costs.c
var source string

// Document is what ashlar host costs --json prints.
type Document struct {
	Mallocs []Malloc          `json:"mallocs"`
	Missing []variant.Missing `json:"missing"`
}

// Malloc is what one malloc costs.
type Malloc struct {
	Variant string  `json:"variant"`
	Error   *string `json:"error"` // why it could not be measured
	// Classes are the sizes that requests are rounded up to.
	Classes []Class `json:"classes"`
	Sizes   []Size  `json:"sizes"`
	Times   []Time  `json:"times"`
	// IdleThread is what malloc keeps for a thread that has allocated and freed
	// 1,000 blocks of 16 B to 8 KB and is idle.
	IdleThread *uint64 `json:"idle_thread_bytes"`
}

// Class says what requests from From bytes on can use, up to the next class.
type Class struct {
	From   uint64 `json:"from_bytes"`
	Usable uint64 `json:"usable_bytes"`
}

// Size says what a request really takes.
type Size struct {
	Size uint64  `json:"size_bytes"`
	Each float64 `json:"each_bytes"` // resident memory for one of many
}

// Time is how long a malloc and a free take.
type Time struct {
	Size    uint64  `json:"size_bytes"`
	Threads int     `json:"threads"` // at once
	NS      float64 `json:"ns"`      // a pair, in each of them
}

// Options say what is measured.
type Options struct {
	Threads []int         // the numbers of threads to time
	Each    time.Duration // for each size and number of threads
}

// Measure measures each malloc that is ready, one after the other. The error says
// why nothing can be measured, or is the context's.
func Measure(ctx context.Context, scratch string, ready []variant.Ready, o Options, progress func(done int)) (*Document, error) {
	program, err := variant.Build(ctx, scratch, "costs", source)
	if err != nil {
		return nil, fmt.Errorf("this needs %w", err)
	}
	d := &Document{Mallocs: []Malloc{}, Missing: []variant.Missing{}}
	args := []string{strconv.FormatInt(o.Each.Milliseconds(), 10)}
	for _, n := range o.Threads {
		args = append(args, strconv.Itoa(n))
	}
	for i := range ready {
		if progress != nil {
			progress(i)
		}
		m, err := measure(ctx, program, args, &ready[i])
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if err != nil {
			said := err.Error()
			m = &Malloc{Variant: ready[i].Name, Error: &said, Classes: []Class{}, Sizes: []Size{}, Times: []Time{}}
		}
		d.Mallocs = append(d.Mallocs, *m)
	}
	return d, nil
}

func measure(ctx context.Context, program string, args []string, v *variant.Ready) (*Malloc, error) {
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Env, _ = v.Environ(os.Environ())
	var said bytes.Buffer
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		first, _, _ := strings.Cut(strings.TrimSpace(said.String()), "\n")
		return nil, fmt.Errorf("the program ended with %w: %s", err, first)
	}
	m := &Malloc{Variant: v.Name, Classes: []Class{}, Sizes: []Size{}, Times: []Time{}}
	for line := range strings.Lines(string(out)) {
		if err := m.read(strings.Fields(line)); err != nil {
			return nil, fmt.Errorf("%q: %w", strings.TrimSpace(line), err)
		}
	}
	return m, nil
}

var errLine = errors.New("a line that the program should not print")

// read reads a line of the program.
func (m *Malloc) read(words []string) error {
	var n []float64
	for _, w := range words[min(1, len(words)):] {
		x, err := strconv.ParseFloat(w, 64)
		if err != nil || x < 0 {
			return errLine
		}
		n = append(n, x)
	}
	switch {
	case len(n) == 2 && words[0] == "class":
		m.Classes = append(m.Classes, Class{uint64(n[0]), uint64(n[1])})
	case len(n) == 2 && words[0] == "bytes":
		m.Sizes = append(m.Sizes, Size{uint64(n[0]), n[1]})
	case len(n) == 3 && words[0] == "time":
		m.Times = append(m.Times, Time{uint64(n[0]), int(n[1]), n[2]})
	case len(n) == 1 && words[0] == "thread":
		idle := uint64(n[0])
		m.IdleThread = &idle
	default:
		return errLine
	}
	return nil
}

// Usable returns what a request can use; false above the largest that was tried.
func (m *Malloc) Usable(size uint64) (uint64, bool) {
	i, found := slices.BinarySearchFunc(m.Classes, size, func(c Class, size uint64) int {
		switch {
		case c.From < size:
			return -1
		case c.From > size:
			return 1
		}
		return 0
	})
	if !found {
		i--
	}
	if i < 0 || m.Classes[i].Usable < size {
		return 0, false
	}
	return m.Classes[i].Usable, true
}

// NS returns the time of a pair.
func (m *Malloc) NS(size uint64, threads int) (float64, bool) {
	for _, t := range m.Times {
		if t.Size == size && t.Threads == threads {
			return t.NS, true
		}
	}
	return 0, false
}
