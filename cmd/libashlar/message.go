package main

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/ashlar-mem/ashlar/alloc"
	"github.com/ashlar-mem/ashlar/alloc/tenant"
	"github.com/ashlar-mem/ashlar/internal/units"
	"github.com/ashlar-mem/ashlar/settings"
)

// outOfMemory is the text of a failed request: PyTorch's numbers and what
// follows from the state of the allocator. The first time it also writes the
// snapshot that oom_snapshot asks for.
func (d *device) outOfMemory(e *alloc.OutOfMemoryError) string {
	text := e.Numbers() + d.situation(e)
	if why := d.pages(e); why != "" {
		text += " Ashlar: " + why
	} else if !e.TooLarge {
		text += " Ashlar: " + d.alloc.Diagnose(e)
	}
	text += d.notServed(e)
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

// pages says that a region's pages are what does not fit; nothing if smaller ones do not either.
func (d *device) pages(e *alloc.OutOfMemoryError) string {
	name, ok := strings.CutPrefix(d.tenant.Name(), regionPrefix)
	now, smaller := d.alloc.Settings(), settings.Default()
	if !ok || d.space == nil || e.TooLarge || now.LargeSegmentSize <= smaller.LargeSegmentSize {
		return ""
	}
	page := now.LargeSegmentSize
	now.LargeSegmentSize = smaller.LargeSegmentSize
	u := d.group.Usage()
	room := min(d.space.Free(), u.Limit-min(u.Limit, u.Reserved+u.Idle))
	if d.alloc.MappedWith(e, now) > e.Reserved+room {
		return ""
	}
	return fmt.Sprintf("pages of region %s are of %s. With ASHLAR_CONF=region_page:%dMiB they are smaller, and the request would fit.",
		name, units.Size(page), smaller.LargeSegmentSize>>20)
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
