package eager

// Function is a part of a program that can be run again. It borrows its
// arguments and returns tensors that the caller holds.
type Function func(args []*Tensor) *Tensor

// frame is one call of torch.utils.checkpoint without reentrance. The nodes
// made in it keep a place in the frame instead of a tensor. The first one that
// needs its tensor has the function run again, which fills all places.
type frame struct {
	machine *Machine
	fn      Function
	args    []*Tensor
	refs    int32 // places that nodes still have
	count   int
	again   bool // the function has run again
	live    []bool
	tensors []*Tensor

	cast  autocast
	cache *opCache

	// of the second run
	inner *rerun
}

// rerun is what packs tensors during the second run.
type rerun struct {
	f    *frame
	next int
}

// stop leaves the second run: all places are filled.
type stop struct{ f *frame }

// Checkpoint runs fn so that its saved tensors are not kept but computed again
// in the backward pass.
func (m *Machine) Checkpoint(fn Function, args ...*Tensor) *Tensor {
	return m.checkpoint(fn, nil, args)
}

func (m *Machine) checkpoint(fn Function, cache *opCache, args []*Tensor) *Tensor {
	if m.noGrad {
		return fn(args)
	}
	f := &frame{machine: m, fn: fn, cast: autocast{on: m.cast.on, to: m.cast.to}, cache: cache}
	for _, a := range args {
		if a != nil {
			a.retain()
			if a.store.id != noEntry {
				(&Node{machine: m}).mark(a)
			}
		}
		f.args = append(f.args, a)
	}
	outer, cached := m.frame, m.cached
	m.frame, m.cached = f, cache
	out := fn(args)
	m.frame, m.cached = outer, cached
	if f.refs == 0 {
		f.drop()
	}
	return out
}

// pack gives a tensor a place instead of keeping it.
func (f *frame) pack(t *Tensor) saved {
	if f.inner != nil {
		return f.inner.pack(t)
	}
	f.refs++
	f.live = append(f.live, true)
	f.count++
	return saved{frame: f, index: f.count - 1}
}

func (r *rerun) pack(t *Tensor) saved {
	f := r.f
	i := r.next
	r.next++
	if i < f.count && f.live[i] {
		f.tensors[i] = f.machine.alias(t)
	}
	if r.next >= f.count {
		panic(stop{f})
	}
	return saved{tensor: f.machine.alias(t)}
}

// unpack returns what is in a place; the caller takes it over.
func (f *frame) unpack(i int) *Tensor {
	if !f.again {
		f.again = true
		f.rerun()
	}
	t := f.tensors[i]
	f.tensors[i] = nil
	return t
}

// rerun runs the function again, until the last place is filled.
func (f *frame) rerun() {
	m := f.machine
	f.tensors = make([]*Tensor, f.count)
	outerFrame, outerCast, outerGrad, outerCache, module := m.frame, m.cast, m.noGrad, m.cached, m.module
	inner := &frame{machine: m}
	inner.inner = &rerun{f: f}
	s := &scope{outer: m.scope}
	m.frame, m.cast, m.noGrad, m.cached, m.scope = inner, f.cast, false, f.cache, s
	if f.cache != nil {
		f.cache.replay = true
	}
	func() {
		defer func() {
			if r := recover(); r != nil {
				if st, ok := r.(stop); !ok || st.f != f {
					panic(r)
				}
			}
		}()
		if out := f.fn(f.args); out != nil {
			out.Drop()
		}
	}()
	m.clearCast()
	s.unwind()
	m.frame, m.cast, m.noGrad, m.cached, m.scope, m.module = outerFrame, outerCast, outerGrad, outerCache, s.outer, module
}

// unref gives a place up.
func (f *frame) unref(i int) {
	f.live[i] = false
	if f.tensors != nil && f.tensors[i] != nil {
		f.tensors[i].release()
		f.tensors[i] = nil
	}
	f.refs--
	if f.refs == 0 {
		f.drop()
	}
}

// drop gives up the arguments: those by name, then the first one.
func (f *frame) drop() {
	for i := range f.args {
		if a := f.args[(i+1)%len(f.args)]; a != nil {
			a.release()
		}
	}
	f.args = nil
	if f.cache != nil {
		f.cache.drop()
	}
}
