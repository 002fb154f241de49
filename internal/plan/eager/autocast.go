package eager

import "github.com/ashlar-mem/ashlar/internal/plan/ledger"

// autocast is torch.autocast: matrix products, convolutions and attention run
// in the lower type; powers, norms, softmax and losses run in fp32; all else
// takes its inputs as they are. It ends with the forward pass: derivatives run
// in the types that it left.
type autocast struct {
	on    bool
	to    DType
	cache map[*Tensor]*Tensor // weight -> its cast, until the region is left
	casts []*Tensor           // those of the cache in the order they were made
}

// Autocast runs fn under torch.autocast.
func (m *Machine) Autocast(to DType, fn func()) {
	outer := m.cast
	m.cast = autocast{on: true, to: to}
	fn()
	m.clearCast()
	m.cast = outer
}

// AutocastOff runs fn with autocast disabled. The casts of weights stay: they
// are dropped when the outermost region is left.
func (m *Machine) AutocastOff(fn func()) {
	on := m.cast.on
	m.cast.on = false
	fn()
	m.cast.on = on
}

func (m *Machine) clearCast() {
	for _, c := range m.cast.casts {
		c.release()
	}
	m.cast.cache, m.cast.casts = nil, nil
}

// Lower is a tensor as an op takes it that autocast runs in the lower type. The
// caller holds it. Casts of weights that train are made once, those of frozen
// weights and of activations each time.
func (m *Machine) Lower(t *Tensor) *Tensor {
	if t == nil {
		return nil
	}
	if !m.cast.on || !t.dtype.IsFloat() || t.dtype == m.cast.to || t.dtype == Float64 {
		return t.Keep()
	}
	if t.dtype != Float32 || t.sink == nil || !t.needs || t.view {
		return m.To(t, m.cast.to)
	}
	if c := m.cast.cache[t]; c != nil {
		return c.Keep()
	}
	kind := m.Kind(ledger.Cast)
	c := m.To(t, m.cast.to)
	m.Kind(kind)
	if m.cast.cache == nil {
		m.cast.cache = map[*Tensor]*Tensor{}
	}
	m.cast.cache[t] = c.retain()
	m.cast.casts = append(m.cast.casts, c)
	return c
}

// LowerAttention is what scaled_dot_product_attention takes of its arguments.
// The mask may be nil. C++ evaluates the casts from the last argument on.
func (m *Machine) LowerAttention(q, k, v, mask *Tensor) (*Tensor, *Tensor, *Tensor, *Tensor) {
	mask = m.Lower(mask)
	v = m.Lower(v)
	k = m.Lower(k)
	q = m.Lower(q)
	return q, k, v, mask
}

// Upper is a tensor as an op takes it that autocast runs in fp32. The caller
// holds it.
func (m *Machine) Upper(t *Tensor) *Tensor {
	if t == nil {
		return nil
	}
	if !m.cast.on || !t.dtype.IsFloat() || t.dtype >= Float32 {
		return t.Keep()
	}
	return m.To(t, Float32)
}

// upperResult is the type of the result of sums and the like, which under autocast
// compute in fp32 instead of casting their input.
func (m *Machine) upperResult(x *Tensor) DType {
	if m.cast.on && x.dtype.IsFloat() && x.dtype < Float32 {
		return Float32
	}
	return x.dtype
}
