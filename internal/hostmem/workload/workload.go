package workload

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/ashlar-mem/ashlar/internal/hostmem/run"
	"github.com/ashlar-mem/ashlar/internal/hostmem/variant"
)

//go:embed source
var sources embed.FS

// Workload is one of the programs.
type Workload struct {
	Name string
	What string // what it does, for a heading
	file string // of sources
	mode string // its argument
	idle bool   // it is measured idle, and not the moment it is done
}

var table = []Workload{
	{Name: "lesson", file: "lesson.py", mode: "work", What: "batches of buffers of 100 B to 100 KB, a fifth of them held for a while; measured while it works"},
	{Name: "lesson-idle", file: "lesson.py", mode: "idle", idle: true, What: "the same, but then everything is freed; measured when it is idle"},
	{Name: "burst", file: "burst.py", idle: true, What: "a burst of 260 MB, of which 15 MB stay; measured when it is idle"},
	{Name: "threads", file: "threads.py", idle: true, What: "16 threads with batches of 12 MB; measured when they are done"},
	{Name: "forked", file: "forked.py", idle: true, What: "4 forked workers with a burst of 76 MB each; measured when they are idle"},
	{Name: "growth", file: "growth.py", What: "a cache of 32 MiB whose entries become larger and larger; measured while it works"},
	{Name: "throughput", file: "mallocs.c", mode: "throughput", What: "6 million allocations and frees by one thread, 16,384 live; measured when it is done"},
	{Name: "contention", file: "mallocs.c", mode: "contention", What: "6 million allocations and frees by 4 threads, 16,384 live in each; measured when they are done"},
	{Name: "producer", file: "mallocs.c", mode: "producer", What: "6 million allocations by 2 threads, freed by 2 others; measured when all are freed"},
}

// Names lists the workloads.
func Names() []string {
	names := make([]string, len(table))
	for i, w := range table {
		names[i] = w.Name
	}
	return names
}

// Choose finds workloads by name; no names are all of them.
func Choose(names []string) ([]Workload, error) {
	if len(names) == 0 {
		return slices.Clone(table), nil
	}
	var chosen []Workload
	for _, name := range names {
		i := slices.IndexFunc(table, func(w Workload) bool { return w.Name == name })
		if i < 0 {
			return nil, fmt.Errorf("no workload is called %q: there are %s", name, strings.Join(Names(), ", "))
		}
		chosen = append(chosen, table[i])
	}
	return chosen, nil
}

// Bench is where workloads are made ready to run.
type Bench struct {
	Scratch string        // a folder of its own
	Python  string        // the interpreter
	Settle  time.Duration // how long idle ones are measured

	python string // the file that the interpreter is
	helper string // the compiled C program
}

// Spec makes a workload ready. The error says what is not there.
func (b *Bench) Spec(ctx context.Context, w Workload) (run.Spec, error) {
	s := run.Spec{Environ: os.Environ(), Ready: &run.Ready{Text: "ready"}, Done: "done", Gate: true}
	if w.idle {
		s.Settle = b.Settle
	}
	source, err := sources.ReadFile("source/" + w.file)
	if err != nil {
		return s, err
	}
	if filepath.Ext(w.file) == ".c" {
		if err := b.build(ctx, string(source)); err != nil {
			return s, err
		}
		s.Command = []string{b.helper, w.mode}
		return s, nil
	}
	if err := b.findPython(ctx); err != nil {
		return s, err
	}
	file := filepath.Join(b.Scratch, w.file)
	if err := os.WriteFile(file, source, 0o600); err != nil {
		return s, err
	}
	// Nothing but the standard library: what a site adds would be measured too.
	s.Command = []string{b.python, "-I", "-S", file}
	if w.mode != "" {
		s.Command = append(s.Command, w.mode)
	}
	return s, nil
}

func (b *Bench) build(ctx context.Context, source string) error {
	if b.helper != "" {
		return nil
	}
	if variant.Compiler() == "" {
		return errors.New("there is no C compiler (cc)")
	}
	helper, err := variant.Build(ctx, b.Scratch, "mallocs", source)
	b.helper = helper
	return err
}

// findPython finds the interpreter itself: the first python3 of a machine may be
// a script that starts it.
func (b *Bench) findPython(ctx context.Context) error {
	if b.python != "" {
		return nil
	}
	out, err := exec.CommandContext(ctx, b.Python, "-I", "-S", "-c", "import sys; print(sys.executable)").Output()
	if err != nil {
		return fmt.Errorf("%s cannot be run: %w", b.Python, err)
	}
	if b.python = strings.TrimSpace(string(out)); b.python == "" {
		return fmt.Errorf("%s does not know its own file", b.Python)
	}
	return nil
}
