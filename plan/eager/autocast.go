package eager

import "github.com/ashlar-mem/ashlar/plan/ledger"

// autocast is torch.autocast: matrix products run in the lower type.
type autocast struct {
	on    bool
	to    DType
	cache map[*Tensor]*Tensor // weight -> its cast, until the region is left
}

// Autocast runs fn under torch.autocast.
func (m *Machine) Autocast(to DType, fn func()) {
	outer := m.cast
	m.cast = autocast{on: true, to: to}
	fn()
	m.clearCast()
	m.cast = outer
}

// AutocastOff runs fn with autocast disabled.
func (m *Machine) AutocastOff(fn func()) {
	on := m.cast.on
	m.cast.on = false
	fn()
	m.cast.on = on
}

func (m *Machine) clearCast() {
	for _, c := range m.cast.order() {
		c.release()
	}
	m.cast.cache = nil
}

// order lists the casts in the order they were made.
func (a *autocast) order() []*Tensor {
	out := make([]*Tensor, 0, len(a.cache))
	for _, c := range a.cache {
		out = append(out, c)
	}
	for i := range out {
		for j := i; j > 0 && out[j].store.id < out[j-1].store.id; j-- {
			out[j], out[j-1] = out[j-1], out[j]
		}
	}
	return out
}

// Lower is a tensor as a matrix product takes it under autocast. The caller
// holds it.
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
	return c
}

// Upper is a tensor as an op takes it that autocast runs in fp32. The caller
// holds it.
func (m *Machine) Upper(t *Tensor) *Tensor {
	if !m.cast.on || !t.dtype.IsFloat() || t.dtype >= Float32 {
		return t.Keep()
	}
	return m.To(t, Float32)
}
