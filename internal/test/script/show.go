package script

import (
	"fmt"
	"strings"

	"github.com/ashlar-mem/ashlar/alloc"
)

func (r *Runner) stats(names []string) error {
	m := r.Allocator.Stats().Map()
	for _, name := range names {
		key := name
		if _, ok := m[key+".all.current"]; ok {
			key += ".all"
		}
		if _, ok := m[key+".current"]; ok {
			r.say("%s [%d,%d,%d,%d]", name, m[key+".current"], m[key+".peak"], m[key+".allocated"], m[key+".freed"])
		} else if v, ok := m[key]; ok {
			r.say("%s %d", name, v)
		} else {
			return fmt.Errorf("%w: no statistic %q", ErrCommand, name)
		}
	}
	return nil
}

// listBlocks prints each segment with its blocks: sizes, what was requested,
// and the requested size that a free block still shows from its last use.
func (r *Runner) listBlocks([]string) error {
	for _, s := range r.Allocator.Segments() {
		extra := ""
		if s.Pool != (alloc.PoolID{}) {
			extra += " pool " + s.Pool.String()
		}
		if s.Stream != 0 {
			extra += fmt.Sprintf(" stream %d", s.Stream)
		}
		r.say("%s %s %d%s", r.where(s.Address), s.Type(), s.TotalSize, extra)
		for _, b := range s.Blocks {
			state := strings.TrimPrefix(b.State.String(), "active_")
			r.say("  %d %s, requested %d", b.Size, state, b.RequestedSize)
		}
	}
	return nil
}

func (r *Runner) lastMessage([]string) error {
	r.say("%s", r.message)
	return nil
}
