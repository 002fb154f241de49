package hf

import (
	"slices"

	"github.com/ashlar-mem/ashlar/internal/plan/eager"
	"github.com/ashlar-mem/ashlar/internal/plan/ledger"
	"github.com/ashlar-mem/ashlar/internal/plan/model"
)

// cache keeps the keys and values of every layer: a DynamicCache, which grows
// by joining them anew, or a StaticCache of a fixed length.
type cache struct {
	layers []cached
	// cross is that of an encoder-decoder's attention to the states of the
	// encoder, nil otherwise. Its layers are filled once.
	cross *cache
}

// cached is the cache of one layer: dynamic or static, with or without a
// window.
type cached struct {
	keys, values *eager.Tensor // nil at first
	seen, window int64
	linear       bool            // it has states alone
	length       int64           // of a static layer, 0 of a dynamic one
	states       []*eager.Tensor // of linear attention, as the family keeps them
}

// newCache makes the cache of a model; length is 0 for a dynamic one.
func newCache(c *model.Model, length int64) *cache {
	k := &cache{layers: make([]cached, c.Layers)}
	for i := range k.layers {
		l := &k.layers[i]
		l.window = int64(c.Window(i))
		l.linear = c.LayerTypes[i] == model.LinearAttention
		l.length = length
		if length > 0 && l.window > 0 {
			l.length = min(length, l.window)
		}
	}
	return k
}

// drop gives the cache up, the last layer first.
func (c *cache) drop() {
	for _, l := range slices.Backward(c.layers) {
		eager.Drop(l.keys, l.values)
		eager.Drop(l.states...)
	}
	if c.cross != nil {
		c.cross.drop()
	}
}

// update joins new keys and values, which it borrows, to those of a layer. The
// caller holds the results.
func (c *cache) update(r *run, layer int, k, v *eager.Tensor) (keys, values *eager.Tensor) {
	l := &c.layers[layer]
	kind := ledger.Temporary
	if !r.trains {
		kind = ledger.Cache
	}
	before := r.machine.Kind(kind)
	defer r.machine.Kind(before)
	switch {
	case l.length > 0 && l.window > 0:
		return l.slide(r, k, v)
	case l.length > 0:
		return l.fill(r, k, v)
	}
	return l.grow(r, k, v)
}

// grow is DynamicLayer.update, and DynamicSlidingWindowLayer's.
func (l *cached) grow(r *run, k, v *eager.Tensor) (keys, values *eager.Tensor) {
	if l.window == 0 {
		l.seen += k.Size(2)
		l.keys = replace(l.keys, join(r, l.keys, k))
		l.values = replace(l.values, join(r, l.values, v))
		return l.keys.Keep(), l.values.Keep()
	}
	if l.keys == nil {
		l.states = append(l.states, r.machine.Empty("to", eager.Int64)) // the window as a tensor
	}
	l.seen += k.Size(2)
	keys, values = join(r, l.keys, k), join(r, l.values, v)
	eager.Drop(l.keys, l.values)
	l.keys, l.values = l.last(r, keys), l.last(r, values)
	return keys, values
}

// join is torch.cat of what is there and what comes.
func join(r *run, old, x *eager.Tensor) *eager.Tensor {
	if old == nil {
		return r.machine.Cat(2, x)
	}
	return r.machine.Cat(2, old, x)
}

// last is the part of a layer's states that a window leaves: a view.
func (l *cached) last(r *run, x *eager.Tensor) *eager.Tensor {
	return r.machine.Slice(x, 2, min(x.Size(2), max(l.window-1, 1)))
}

// initialize is StaticLayer.lazy_initialization.
func (l *cached) initialize(r *run, k, v *eager.Tensor) {
	if l.keys != nil {
		return
	}
	zeros := func(x *eager.Tensor) *eager.Tensor {
		return r.machine.Empty("zeros", x.DType(), x.Size(0), x.Size(1), l.length, x.Size(3))
	}
	l.keys, l.values = zeros(k), zeros(v)
	r.machine.Empty("to", eager.Int64) // the number of tokens as a tensor
}

// fill is StaticLayer.update: new states are copied into their place.
func (l *cached) fill(r *run, k, v *eager.Tensor) (keys, values *eager.Tensor) {
	l.initialize(r, k, v)
	l.place(r, k.Size(2))
	l.seen += k.Size(2)
	return l.keys.Keep(), l.values.Keep()
}

// place computes where new states go.
func (l *cached) place(r *run, rows int64) {
	a := r.machine.Empty("arange", eager.Int64, rows)
	p := r.machine.Unary("add", a)
	eager.Drop(a, p)
}

// slide is StaticSlidingWindowLayer.update.
func (l *cached) slide(r *run, k, v *eager.Tensor) (keys, values *eager.Tensor) {
	m := r.machine
	l.initialize(r, k, v)
	rows, had := k.Size(2), l.seen
	l.seen += rows
	switch {
	case had >= l.length && rows == 1:
		nk, nv := m.Unary("roll", l.keys), m.Unary("roll", l.values)
		at := m.Empty("to", eager.Int64, 1)
		eager.Drop(nk, nv, at)
	case had >= l.length || had > 0 && had+rows > l.length:
		kept := min(had, l.length-1)
		part := func(old, x *eager.Tensor) *eager.Tensor {
			s := m.Slice(old, 2, kept)
			y := m.Cat(2, s, x)
			s.Drop()
			return y
		}
		return part(l.keys, k), part(l.values, v)
	case rows > l.length:
		return k.Keep(), v.Keep()
	default:
		l.place(r, rows)
	}
	return l.keys.Keep(), l.values.Keep()
}

// past is what a mask needs to know for a layer's type: of the first layer with
// or without a window that has keys.
func (c *cache) past(sliding bool, rows int64) *past {
	l := &c.layers[0]
	for i := range c.layers {
		if (c.layers[i].window > 0) == sliding && !c.layers[i].linear {
			l = &c.layers[i]
			break
		}
	}
	p := &past{seen: l.seen, keys: l.seen + rows, compileable: l.length > 0}
	switch {
	case l.length > 0 && l.window > 0:
		p.offset = max(l.seen-l.length+1, 0)
		switch {
		case l.seen >= l.length:
			p.keys = l.length + rows - 1
		case l.seen+rows <= l.length:
			p.keys = l.length
		}
	case l.length > 0:
		p.keys = l.length
	case l.window > 0:
		p.offset = max(l.seen-l.window+1, 0)
		if l.seen >= l.window {
			p.keys = l.window - 1 + rows
		}
	}
	return p
}
