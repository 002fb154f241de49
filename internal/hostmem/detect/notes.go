package detect

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/ashlar-mem/ashlar/internal/hostmem/proc"
)

// notes says what else a reader should know.
func (t *target) notes(r *Result, used *object, tasks []int) []string {
	var notes []string
	if r.Allocator == Go {
		notes = append(notes, t.goNote())
	}
	if used != nil && used.deleted && !strings.HasPrefix(used.path, "/memfd:") { // those never had a file
		notes = append(notes, "the file of "+used.path+" was removed or replaced; the process still has the old one")
	}
	if next := t.behind(used); next != nil {
		name, _, _ := identify(next)
		notes = append(notes, fmt.Sprintf("if %s only passes calls on, it is to %s in %s", used.name(), name, next.path))
	}
	for _, o := range r.Others {
		if o.How == ownNames || o.How == ownTexts {
			notes = append(notes, fmt.Sprintf("%s may take memory from %s by calling it by names of its own, as the global allocator of a Rust program does: that does not go through malloc", filepath.Base(o.Object), o.Allocator))
		}
	}
	if r.Allocator == Jemalloc {
		notes = append(notes, t.jemallocNotes(r, used, tasks)...)
	}
	if note := t.pythonNote(); note != "" {
		notes = append(notes, note)
	}
	return notes
}

// goNote says what a preload would do to a Go program.
func (t *target) goNote() string {
	if t.static() {
		return "Go runtime: LD_PRELOAD has no effect"
	}
	f, _ := t.dynamic()
	if f.Allocator == Unknown {
		return "Go runtime: LD_PRELOAD has no effect on Go code"
	}
	return fmt.Sprintf("Go runtime: LD_PRELOAD has no effect on Go code; C code in the program uses %s in %s", f.Allocator, f.Object)
}

// NoBackgroundThread says of a process that was to have the background thread of
// jemalloc what it means that it has none.
const NoBackgroundThread = "no background thread: jemalloc stops it in forked processes, which give memory back only while they allocate"

func (t *target) jemallocNotes(r *Result, used *object, tasks []int) []string {
	var notes []string
	link, env := t.jemallocLink(), ""
	for _, name := range confNames(used) {
		env += t.variable(name) // there is one
	}
	switch {
	case backgroundThread(t.pid, tasks):
		notes = append(notes, "jemalloc's background thread is running: it gives unused memory back while the program is idle")
	case confBackground(r.Version, link, env):
		notes = append(notes, "although its options ask for one, it has "+NoBackgroundThread)
	}
	if link != "" {
		notes = append(notes, "jemalloc also reads /etc/malloc.conf: "+link)
	}
	return notes
}

func backgroundThread(pid int, tasks []int) bool {
	return slices.ContainsFunc(tasks, func(tid int) bool { return proc.ThreadName(pid, tid) == "jemalloc_bg_thd" })
}

// BackgroundThread reports whether jemalloc has a thread in the process that gives
// memory back while the program is idle.
func BackgroundThread(pid int) bool {
	tasks, err := proc.Threads(pid)
	return err == nil && backgroundThread(pid, tasks)
}

// jemallocLink is where the link /etc/malloc.conf leads: jemalloc takes that
// name for options.
func (t *target) jemallocLink() string {
	text, err := proc.ReadLink(t.pid, "/etc/malloc.conf")
	if err != nil {
		return ""
	}
	return text
}

// pythonNote says what of a Python program does not go through malloc.
func (t *target) pythonNote() string {
	if !slices.ContainsFunc(t.objects, isPython) {
		return ""
	}
	if v := t.variable("PYTHONMALLOC"); strings.HasPrefix(v, "malloc") {
		return "PYTHONMALLOC=" + v + ": Python takes small objects from malloc too"
	}
	return "Python takes objects of up to 512 bytes from an allocator of its own, which gets its memory by mmap; malloc has the rest"
}
