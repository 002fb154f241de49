package hf

import "github.com/ashlar-mem/ashlar/internal/plan/eager"

// activate is an activation function by its name in transformers. Some are one
// op; others are written out in Python, and each of their steps is a tensor.
func activate(r *run, name string, x *eager.Tensor) *eager.Tensor {
	m := r.machine
	switch name {
	case "linear":
		return x.Keep()
	case "relu", "sigmoid", "tanh":
		return m.ByResult(name, x)
	case "gelu_new", "gelu_python_tanh", "gelu_accurate":
		return geluOfTanh(r, x)
	case "gelu_fast":
		return geluFast(r, x)
	case "gelu_python":
		half := m.Scale(x)
		d := m.DivScalar(x)
		return halfOf(r, half, replace(d, m.Erf(d)))
	case "quick_gelu":
		s := m.Scale(x)
		s = replace(s, m.ByResult("sigmoid", s))
		return replace(s, m.Mul(x, s))
	case "gelu_10":
		y := m.Activation("gelu", x)
		return replace(y, m.Clamp(y))
	case "relu2":
		y := m.ByResult("relu", x)
		return replace(y, m.Pow(y))
	case "laplace":
		y := m.AddScalar(x)
		y = replace(y, m.DivScalar(y))
		y = replace(y, m.Erf(y))
		y = replace(y, m.AddScalar(y))
		return replace(y, m.Scale(y))
	case "sqrtsoftplus":
		y := m.Softplus(x)
		return replace(y, m.Sqrt(y))
	}
	return m.Activation(name, x)
}

// geluOfTanh is 0.5 * x * (1 + tanh(c * (x + d * x³))).
func geluOfTanh(r *run, x *eager.Tensor) *eager.Tensor {
	m := r.machine
	half := m.Scale(x)
	t := m.Pow(x)
	t = replace(t, m.Scale(t))
	t = replace(t, m.Add(x, t))
	t = replace(t, m.Scale(t))
	return halfOf(r, half, replace(t, m.ByResult("tanh", t)))
}

// geluFast is 0.5 * x * (1 + tanh(x * c * (1 + d * x * x))).
func geluFast(r *run, x *eager.Tensor) *eager.Tensor {
	m := r.machine
	half := m.Scale(x)
	scaled := m.Scale(x)
	t := m.Scale(x)
	t = replace(t, m.Mul(t, x))
	t = replace(t, m.AddScalar(t))
	t = replace(t, m.Mul(scaled, t))
	scaled.Drop()
	return halfOf(r, half, replace(t, m.ByResult("tanh", t)))
}

// halfOf is half * (1 + t). It takes both over.
func halfOf(r *run, half, t *eager.Tensor) *eager.Tensor {
	t = replace(t, r.machine.AddScalar(t))
	y := r.machine.Mul(half, t)
	eager.Drop(half, t)
	return y
}
