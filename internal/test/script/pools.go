package script

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ashlar-mem/ashlar/alloc"
)

func (r *Runner) pool(words []string) error {
	p, err := r.Allocator.NewMemPool(alloc.MemPoolOptions{
		UseOnOOM: slices.Contains(words, "use_on_oom"),
		NoSplit:  slices.Contains(words, "no_split"),
	})
	r.answer(err)
	if err == nil {
		r.pools[words[0]] = p
		r.made = append(r.made, p)
		r.say("pool %v", p.ID())
	}
	return nil
}

func (r *Runner) begin(words []string) error {
	thread, err := numberOption(words, "thread")
	if err != nil {
		return err
	}
	return r.withPool(words[0], func(p *alloc.MemPool) error { return p.Begin(thread) })
}

func (r *Runner) endPool(words []string) error { return r.withPool(words[0], (*alloc.MemPool).End) }

func (r *Runner) close(words []string) error { return r.withPool(words[0], (*alloc.MemPool).Close) }

func (r *Runner) withPool(name string, f func(*alloc.MemPool) error) error {
	p := r.pools[name]
	if p == nil {
		return fmt.Errorf("%w: no pool %q", ErrCommand, name)
	}
	r.answer(f(p))
	return nil
}

func (r *Runner) capture(words []string) error {
	var streams []uint64
	for _, w := range strings.Split(words[1], ",") {
		s, err := number(w)
		if err != nil {
			return err
		}
		streams = append(streams, s)
	}
	var id alloc.PoolID
	if name, ok := option(words, "pool"); ok {
		var err error
		if id, err = r.poolID(name); err != nil {
			return err
		}
	}
	c, err := r.Allocator.BeginCapture(id, func(s uint64) bool { return slices.Contains(streams, s) })
	r.answer(err)
	if err == nil {
		r.captures[words[0]] = c
		r.made = append(r.made, c)
		r.say("pool %v", c.Pool())
	}
	return nil
}

func (r *Runner) endCapture(words []string) error {
	return r.withCapture(words[0], (*alloc.Capture).End)
}

func (r *Runner) release(words []string) error {
	return r.withCapture(words[0], (*alloc.Capture).Release)
}

func (r *Runner) withCapture(name string, f func(*alloc.Capture) error) error {
	c := r.captures[name]
	if c == nil {
		return fmt.Errorf("%w: no capture %q", ErrCommand, name)
	}
	r.answer(f(c))
	return nil
}

// poolID is the id of a named pool or capture.
func (r *Runner) poolID(name string) (alloc.PoolID, error) {
	switch p, c := r.pools[name], r.captures[name]; {
	case p != nil:
		return p.ID(), nil
	case c != nil:
		return c.Pool(), nil
	}
	return alloc.PoolID{}, fmt.Errorf("%w: no pool %q", ErrCommand, name)
}

func (r *Runner) checkpoint(words []string) error {
	id, err := r.poolID(words[1])
	if err != nil {
		return err
	}
	c, err := r.Allocator.Checkpoint(id)
	r.answer(err)
	if err == nil {
		r.saved[words[0]] = c
	}
	return nil
}

// restore goes back to a checkpoint. Blocks that it frees lose their names;
// those it allocates get the name of the checkpoint and a number.
func (r *Runner) restore(words []string) error {
	c := r.saved[words[0]]
	if c == nil {
		return fmt.Errorf("%w: no checkpoint %q", ErrCommand, words[0])
	}
	delta, err := r.Allocator.RestoreCheckpoint(c)
	r.answer(err)
	if delta == nil {
		return nil
	}
	for name, addr := range r.blocks {
		if slices.Contains(delta.Freed, addr) {
			delete(r.blocks, name)
		}
	}
	for _, addr := range delta.Allocated {
		n := 0
		for r.blocks[fmt.Sprintf("%s%d", words[0], n)] != 0 {
			n++
		}
		r.blocks[fmt.Sprintf("%s%d", words[0], n)] = addr
	}
	return nil
}
