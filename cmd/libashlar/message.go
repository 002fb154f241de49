package main

import (
	"errors"
	"os"
	"strconv"
	"strings"

	"github.com/ashlar-mem/ashlar/alloc"
	"github.com/ashlar-mem/ashlar/alloc/tenant"
)

// outOfMemory is the text of a failed request: PyTorch's numbers and what
// follows from the state of the allocator. The first time it also writes the
// snapshot that oom_snapshot asks for.
func (d *device) outOfMemory(e *alloc.OutOfMemoryError) string {
	text := e.Numbers() + d.situation(e)
	if !e.TooLarge {
		text += " Ashlar: " + d.alloc.Diagnose(e)
	}
	if path := d.oomSnapshot(); path != "" {
		if err := d.lib.writeSnapshot(path, -1); err != nil {
			return text + " No snapshot was written: " + err.Error() + "."
		}
		return text + " A snapshot was written to " + path + "."
	}
	return text
}

// situation says which tenant ran out and who has the memory; nothing if there is
// one alone.
func (d *device) situation(e *alloc.OutOfMemoryError) string {
	var oom *tenant.OutOfMemoryError
	if e.TooLarge || len(d.group.Usage().Tenants) == 1 || !errors.As(d.tenant.Describe(e), &oom) {
		return ""
	}
	return " " + oom.Situation()
}

// oomSnapshot is where to write a snapshot, once for each path.
func (d *device) oomSnapshot() string {
	l := d.lib
	l.mu.Lock()
	defer l.mu.Unlock()
	path := l.cfg.own.oomSnapshot
	if path == "" {
		return ""
	}
	path = strings.NewReplacer("%p", strconv.Itoa(os.Getpid()), "%d", strconv.Itoa(d.number)).Replace(path)
	if l.written[path] {
		return ""
	}
	l.written[path] = true
	return path
}
