package run

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/ashlar-mem/ashlar/internal/hostmem/detect"
	"github.com/ashlar-mem/ashlar/internal/hostmem/proc"
)

// verifier remembers what was seen of the mallocs of a run.
type verifier struct {
	next    time.Duration // when to look again
	pid     int           // the process that found is about
	largest uint64        // its memory
	found   *detect.Result
	trimmed bool // it has the library of the variant mapped
	lonely  bool // it was to have a background thread, and has none
	unknown int  // how often it was not known
	err     error
}

// due reports whether to look again, besides at the phases of a service. A
// command may end at any moment: so soon, and then ever more seldom.
func (v *verifier) due(at time.Duration) bool {
	if at < v.next {
		return false
	}
	v.next = max(200*time.Millisecond, 2*at)
	return true
}

// checkMalloc finds the malloc of the largest process, which is the one that
// matters: the first may be a shell or a launcher.
func (m *measuring) checkMalloc() {
	if m.sampler == nil {
		return
	}
	var pid int
	var most, seen uint64
	for _, p := range m.sampler.PIDs() {
		s, err := proc.ReadStat(p)
		if err != nil {
			continue
		}
		if s.RSSBytes >= most {
			pid, most = p, s.RSSBytes
		}
		if p == m.verify.pid {
			seen = s.RSSBytes
		}
	}
	// Among workers of about the same size one is enough.
	if seen >= most-most/10 {
		pid = m.verify.pid
	}
	if pid == 0 || most < m.verify.largest && !m.replaced(pid) || m.known(pid) {
		return
	}
	found, err := detect.Alone(pid)
	if err != nil {
		m.verify.err = err
		return
	}
	trimmed := false
	if m.variant.Trim {
		maps, err := proc.ReadMaps(pid)
		if err != nil || len(maps) == 0 {
			return // it ended between the two
		}
		trimmed = slices.ContainsFunc(maps, func(x proc.Mapping) bool { return sameFile(x.Path, m.variant.Preload) })
	}
	lonely := m.variant.Background() && !detect.BackgroundThread(pid)
	m.verify = verifier{next: m.verify.next, pid: pid, largest: most, found: found, trimmed: trimmed, lonely: lonely, unknown: m.verify.unknown}
	if found.Allocator == detect.Unknown && found.Confidence != detect.Certain {
		m.verify.unknown++
	}
}

// known reports whether the malloc of a process was found to be right and is still
// the same: the process runs the same program.
func (m *measuring) known(pid int) bool {
	f := m.verify.found
	return f != nil && pid == m.verify.pid && f.Confidence == detect.Certain && m.wrong() == "" && !m.replaced(pid)
}

// replaced reports whether the process that was looked at runs another program
// by now, as one begun by env does. How large the first one was says nothing then.
func (m *measuring) replaced(pid int) bool {
	f := m.verify.found
	if f == nil || pid != m.verify.pid {
		return false
	}
	program, _, err := proc.Executable(pid)
	return err != nil || program != f.Executable
}

// verdict enters whether the run used the malloc of its variant. A run whose
// process was gone before it could be inspected is neither wrong nor verified.
func (m *measuring) verdict() {
	v, r := &m.verify, m.run
	r.Found = v.found
	if v.found == nil {
		if v.err != nil && !errors.Is(v.err, proc.ErrNoProcess) {
			m.fail("its malloc cannot be looked up: %v", v.err)
		}
		return
	}
	wrong := m.wrong()
	if v.unknown == 1 && v.found.Allocator == detect.Unknown && r.Exit != nil {
		return // it was seen once, when it began or ended
	}
	if wrong != "" {
		r.NoEffect = m.variant.Preload != ""
		m.fail("%s", wrong)
		return
	}
	r.Verified = true
	r.Lonely = v.lonely && r.processes > 1
}

// wrong says how the malloc differs from the variant; empty if it does not.
func (m *measuring) wrong() string {
	f, v := m.verify.found, m.variant
	name := f.Allocator
	if f.Version != nil {
		name += " " + *f.Version
	}
	switch {
	case f.Allocator == detect.Unknown && f.Confidence != detect.Certain:
		return "its malloc is not known: " + f.How
	case f.Allocator != v.Allocator && v.Preload == "":
		return fmt.Sprintf("the program brings its own malloc, %s in %s", name, f.Object)
	case f.Allocator != v.Allocator, v.Library != "" && !sameFile(f.Object, v.Preload):
		return fmt.Sprintf("the preload of %s had no effect: %s is used (%s)", filepath.Base(v.Preload), name, f.Object)
	case v.Trim && !m.verify.trimmed:
		return fmt.Sprintf("the preload of %s had no effect: it is not in the process", filepath.Base(v.Preload))
	case f.Version != nil && !v.Versions.Hold(*f.Version):
		return fmt.Sprintf("it is not for %s: %s", name, v.Versions.Why)
	}
	for _, i := range f.IgnoredEnv {
		for _, e := range v.Env {
			if i.Name == e.Name {
				return fmt.Sprintf("%s has no effect: %s", i.Name, strings.TrimSuffix(i.Why, "."))
			}
		}
	}
	return ""
}

// sameFile reports whether two names refer to one file.
func sameFile(a, b string) bool {
	if a == b {
		return true
	}
	x, err := os.Stat(a)
	if err != nil {
		return false
	}
	y, err := os.Stat(b)
	return err == nil && os.SameFile(x, y)
}
