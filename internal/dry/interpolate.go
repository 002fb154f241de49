package dry

import (
	"errors"
	"math"
	"reflect"
	"slices"

	"github.com/ashlar-mem/ashlar/internal/plan/eager"
)

// sample is the recording of one value.
type sample struct {
	value int64
	rec   *Recording
}

// errOther says that two recordings are not of one course.
var errOther = errors.New("the script does other things with other values")

// curve goes through two or three samples, and is seen at a value: a straight
// line, or a parabola, as attention has it over the length of a sequence.
type curve struct {
	weights []float64 // of the samples
	rounded bool      // some number on it was none
}

func newCurve(of []sample, at int64) *curve {
	c := &curve{weights: make([]float64, len(of))}
	for i, x := range of { // Lagrange's form
		c.weights[i] = 1
		for j, y := range of {
			if i != j {
				c.weights[i] *= float64(at-y.value) / float64(x.value-y.value)
			}
		}
	}
	return c
}

// number returns where the curve through some numbers is.
func (c *curve) number(of []int64) (int64, error) {
	var n float64
	same := true
	for i, x := range of {
		n += c.weights[i] * float64(x)
		same = same && x == of[0]
	}
	if same {
		return of[0], nil
	}
	whole := math.Round(n)
	if whole < 0 || whole > maxBytes {
		return 0, errOther
	}
	const noise = 1e-3 // of the sums above
	c.rounded = c.rounded || math.Abs(n-whole) > noise
	return int64(whole), nil
}

// numbers returns where the curve through some lists is.
func (c *curve) numbers(of [][]int64) ([]int64, error) {
	for _, x := range of {
		if len(x) != len(of[0]) {
			return nil, errOther
		}
	}
	if of[0] == nil {
		return nil, nil
	}
	out := make([]int64, len(of[0]))
	for k := range out {
		var err error
		if out[k], err = c.number(pick(of, func(x []int64) int64 { return x[k] })); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// pick returns a part of each.
func pick[T, P any](of []T, part func(T) P) []P {
	out := make([]P, len(of))
	for i, x := range of {
		out[i] = part(x)
	}
	return out
}

// value is the same for arguments. What is no whole number must be equal.
func (c *curve) value(of []any) (any, error) {
	switch a := of[0].(type) {
	case float64:
		if whole, ok := wholeNumbers(of); ok {
			n, err := c.number(whole)
			return float64(n), err
		}
		return a, allNumbers(of)
	case []any:
		for _, x := range of {
			if list, ok := x.([]any); !ok || len(list) != len(a) {
				return nil, errOther
			}
		}
		out := make([]any, len(a))
		for k := range a {
			var err error
			if out[k], err = c.value(pick(of, func(x any) any { return x.([]any)[k] })); err != nil {
				return nil, err
			}
		}
		return out, nil
	}
	for _, x := range of {
		if !reflect.DeepEqual(x, of[0]) {
			return nil, errOther
		}
	}
	return of[0], nil
}

// wholeNumbers returns arguments that are all whole numbers. Negative ones are
// counted from an end, and must be equal.
func wholeNumbers(of []any) ([]int64, bool) {
	out := make([]int64, len(of))
	for i, x := range of {
		f, ok := x.(float64)
		if out[i] = int64(f); !ok || f != float64(out[i]) || f < 0 && x != of[0] {
			return nil, false
		}
	}
	return out, true
}

// allNumbers returns nil if arguments are numbers. No size depends on one that is
// not whole, such as the factor of a mean.
func allNumbers(of []any) error {
	for _, x := range of {
		if _, ok := x.(float64); !ok {
			return errOther
		}
	}
	return nil
}

func (c *curve) metas(of [][]eager.Meta) ([]eager.Meta, error) {
	for _, x := range of {
		if len(x) != len(of[0]) {
			return nil, errOther
		}
	}
	out := make([]eager.Meta, len(of[0]))
	for k := range out {
		at := pick(of, func(x []eager.Meta) eager.Meta { return x[k] })
		for _, x := range at {
			if x.DType != at[0].DType || x.Known != at[0].Known {
				return nil, errOther
			}
		}
		out[k] = at[0]
		var err error
		if out[k].Shape, err = c.numbers(pick(at, func(x eager.Meta) []int64 { return x.Shape })); err != nil {
			return nil, err
		}
		if out[k].Stride, err = c.numbers(pick(at, func(x eager.Meta) []int64 { return x.Stride })); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func (c *curve) kind(of []*kind) (kind, error) {
	out := kind{defined: true, op: of[0].op}
	for _, x := range of {
		if x.op != out.op || len(x.args) != len(of[0].args) || len(x.kwargs) != len(of[0].kwargs) {
			return out, errOther
		}
	}
	var err error
	if out.in, err = c.metas(pick(of, func(x *kind) []eager.Meta { return x.in })); err != nil {
		return out, err
	}
	if out.out, err = c.metas(pick(of, func(x *kind) []eager.Meta { return x.out })); err != nil {
		return out, err
	}
	args, err := c.value(pick(of, func(x *kind) any { return x.args }))
	if err != nil {
		return out, err
	}
	out.args, out.kwargs = args.([]any), map[string]any{}
	for name := range of[0].kwargs {
		for _, x := range of {
			if _, ok := x.kwargs[name]; !ok {
				return out, errOther
			}
		}
		if out.kwargs[name], err = c.value(pick(of, func(x *kind) any { return x.kwargs[name] })); err != nil {
			return out, err
		}
	}
	return out, nil
}

// interpolate makes the recording that a value between or beyond those of samples
// would give, if all sizes lie on lines or parabolas through them. exact is false
// if some do not: they were rounded.
func interpolate(of []sample, at int64) (rec *Recording, exact bool, err error) {
	c := newCurve(of, at)
	rec, err = c.recording(pick(of, func(s sample) *Recording { return s.rec }))
	return rec, !c.rounded, err
}

func (c *curve) recording(of []*Recording) (*Recording, error) {
	x := of[0]
	for _, y := range of {
		if len(x.events) != len(y.events) || len(x.storages) != len(y.storages) || !slices.Equal(x.ids, y.ids) {
			return nil, errOther
		}
	}
	out := *x
	out.kinds, out.storages, out.events = nil, make([]storage, len(x.storages)), make([]event, len(x.events))
	for i, s := range x.storages {
		for _, y := range of {
			if y.storages[i].cuda != s.cuda {
				return nil, errOther
			}
		}
		n, err := c.number(pick(of, func(r *Recording) int64 { return r.storages[i].bytes }))
		if err != nil {
			return nil, err
		}
		out.storages[i] = storage{n, s.cuda}
	}
	kinds := map[[3]int32]int32{}
	for i, e := range x.events {
		var key [3]int32
		for j, y := range of {
			f := y.events[i]
			key[j] = f.a
			if f.what == called { // kinds and stacks have numbers of their own
				f.a, f.b = e.a, e.b
			}
			if f != e {
				return nil, errOther
			}
		}
		if e.what == called {
			k, ok := kinds[key]
			if !ok {
				made, err := c.kind(pick(of, func(r *Recording) *kind { return &r.kinds[r.events[i].a] }))
				if err != nil {
					return nil, err
				}
				k = int32(len(out.kinds))
				kinds[key] = k
				out.kinds = append(out.kinds, made)
			}
			e.a = k
		}
		out.events[i] = e
	}
	return &out, nil
}
