package hf

import "github.com/ashlar-mem/ashlar/internal/plan/eager"

// ropeFrequencies computes the frequencies that a rotary module keeps, by its
// rope_type. All of this is small, but it shifts what is allocated after it.
func ropeFrequencies(m *eager.Machine, kind string, half int64) *eager.Tensor {
	if kind == "default" {
		return inverse(m, powers(m, m.Empty("arange", eager.Float32, half)))
	}
	whole := m.Empty("arange", eager.Int64, half)
	p := powers(m, replace(whole, m.To(whole, eager.Float32)))
	switch kind {
	case "yarn":
		return yarnFrequencies(m, p)
	case "llama3":
		return llama3Frequencies(m, inverse(m, p))
	}
	return inverse(m, p)
}

// powers is base ** (x / dim). It takes x over.
func powers(m *eager.Machine, x *eager.Tensor) *eager.Tensor {
	d := replace(x, m.Unary("div", x))
	p := m.Unary("pow", d)
	m.Scratch(8, "scalar_tensor")
	d.Drop()
	return p
}

// inverse is c / x. It takes x over.
func inverse(m *eager.Machine, x *eager.Tensor) *eager.Tensor {
	y := overNumber(m, x)
	x.Drop()
	return y
}

// overNumber is c / x, which Python computes as reciprocal and product.
func overNumber(m *eager.Machine, x *eager.Tensor) *eager.Tensor {
	i := m.Unary("reciprocal", x)
	return replace(i, m.Unary("mul", i))
}

// yarnFrequencies is _compute_yarn_parameters from pos_freqs on.
func yarnFrequencies(m *eager.Machine, positions *eager.Tensor) *eager.Tensor {
	far := overNumber(m, positions)
	near := inverse(m, m.Unary("mul", positions))
	ramp := m.Unary("arange", positions)
	for _, op := range []string{"sub", "div", "clamp", "rsub"} {
		ramp = replace(ramp, m.Unary(op, ramp))
	}
	rest := m.Unary("rsub", ramp)
	a := replace(rest, m.Binary("mul", near, rest))
	b := m.Binary("mul", far, ramp)
	y := m.Binary("add", a, b)
	eager.Drop(a, b, positions, far, near, ramp)
	return y
}

// llama3Frequencies is _compute_llama3_parameters from wavelen on. It takes the
// frequencies over.
func llama3Frequencies(m *eager.Machine, freq *eager.Tensor) *eager.Tensor {
	wave := overNumber(m, freq)
	long := m.Compare("gt", wave)
	slow := m.Unary("div", freq)
	mixed := m.Unary("where", freq)
	eager.Drop(long, slow)
	smooth := overNumber(m, wave)
	smooth = replace(smooth, m.Unary("sub", smooth))
	smooth = replace(smooth, m.Unary("div", smooth))
	part := m.Unary("rsub", smooth)
	part = replace(part, m.Binary("mul", part, mixed))
	part = replace(part, m.Unary("div", part))
	other := m.Binary("mul", smooth, mixed)
	smoothed := m.Binary("add", part, other)
	eager.Drop(part, other)
	beyond := func(op string) *eager.Tensor {
		c := m.Compare(op, wave)
		return replace(c, m.Unary("bitwise_not", c))
	}
	lower, upper := beyond("lt"), beyond("gt")
	medium := m.Binary("mul", lower, upper)
	eager.Drop(lower, upper)
	y := m.Unary("where", mixed)
	eager.Drop(mixed, freq, wave, smooth, smoothed, medium)
	return y
}
