package hf

import (
	"github.com/ashlar-mem/ashlar/plan/config"
	"github.com/ashlar-mem/ashlar/plan/eager"
)

// cache is a DynamicCache: keys and values of every layer, which grow by being
// joined anew.
type cache struct{ layers []cached }

// cached is a DynamicLayer, or with a window a DynamicSlidingWindowLayer.
type cached struct {
	keys, values *eager.Tensor // nil at first
	seen, window int64
}

func newCache(c *config.Model) *cache {
	k := &cache{layers: make([]cached, c.Layers)}
	for i := range k.layers {
		k.layers[i].window = int64(c.Window(i))
	}
	return k
}

func (c *cache) drop() {
	for i := range c.layers {
		eager.Drop(c.layers[i].keys, c.layers[i].values)
	}
}

// update joins new keys and values, which it borrows, to those of a layer. The
// caller holds the results.
func (c *cache) update(r *run, layer int, k, v *eager.Tensor) (keys, values *eager.Tensor) {
	l := &c.layers[layer]
	if l.keys == nil && l.window > 0 {
		r.m.Empty("to", eager.Int64) // the window as a tensor
	}
	l.seen += k.Size(2)
	keys = join(r, l.keys, k)
	values = join(r, l.values, v)
	eager.Drop(l.keys, l.values)
	l.keys, l.values = l.last(r, keys), l.last(r, values)
	return keys, values
}

// join is torch.cat of what is there and what comes.
func join(r *run, old, x *eager.Tensor) *eager.Tensor {
	if old == nil {
		return r.m.Cat(2, x)
	}
	return r.m.Cat(2, old, x)
}

// last is the part of a layer's states that a window leaves: a view.
func (l *cached) last(r *run, x *eager.Tensor) *eager.Tensor {
	if l.window == 0 {
		return x.Keep()
	}
	return r.m.Slice(x, 2, min(x.Size(2), max(l.window-1, 1)))
}

// past is what a mask needs to know for a layer's type: of the first layer with
// or without a window.
func (c *cache) past(sliding bool, rows int64) *past {
	l := &c.layers[0]
	for i := range c.layers {
		if (c.layers[i].window > 0) == sliding {
			l = &c.layers[i]
			break
		}
	}
	p := &past{seen: l.seen, keys: l.seen + rows}
	if l.window > 0 {
		p.offset = max(l.seen-l.window+1, 0)
		if l.seen >= l.window {
			p.keys = l.window - 1 + rows
		}
	}
	return p
}
