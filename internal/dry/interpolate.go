package dry

import (
	"errors"
	"fmt"
	"math"
	"reflect"

	"github.com/ashlar-mem/ashlar/internal/plan/eager"
)

// sample is the recording of one value.
type sample struct {
	value int64
	rec   *Recording
}

// errOther says that two recordings are not of one course.
var errOther = errors.New("the script does other things with other values")

// line is a straight line through two samples, seen at a value.
type line struct {
	a, b, at int64
	rounded  bool // some number on it was none
}

// number returns where the line through two numbers is.
func (l *line) number(x, y int64) (int64, error) {
	if x == y {
		return x, nil
	}
	rise, run, to := float64(y-x), float64(l.b-l.a), float64(l.at-l.a)
	n := float64(x) + rise*to/run
	whole := math.Round(n)
	if whole < 0 || whole > maxBytes {
		return 0, errOther
	}
	l.rounded = l.rounded || n != whole
	return int64(whole), nil
}

func (l *line) numbers(x, y []int64) ([]int64, error) {
	if len(x) != len(y) {
		return nil, errOther
	}
	if x == nil {
		return nil, nil
	}
	out := make([]int64, len(x))
	for i := range x {
		var err error
		if out[i], err = l.number(x[i], y[i]); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// value is the same for arguments. What is no whole number must be equal.
func (l *line) value(x, y any) (any, error) {
	switch a := x.(type) {
	case float64:
		if b, ok := y.(float64); ok && a != b && a == float64(int64(a)) && b == float64(int64(b)) {
			if a < 0 || b < 0 {
				return nil, errOther
			}
			n, err := l.number(int64(a), int64(b))
			return float64(n), err
		}
	case []any:
		b, ok := y.([]any)
		if !ok || len(a) != len(b) {
			return nil, errOther
		}
		out := make([]any, len(a))
		for i := range a {
			var err error
			if out[i], err = l.value(a[i], b[i]); err != nil {
				return nil, err
			}
		}
		return out, nil
	}
	if !reflect.DeepEqual(x, y) && !bothFractions(x, y) {
		return nil, errOther
	}
	return x, nil
}

// bothFractions reports whether two arguments are numbers of which no size
// depends, such as the factor of a mean.
func bothFractions(x, y any) bool {
	a, ok := x.(float64)
	b, also := y.(float64)
	return ok && also && (a != float64(int64(a)) || b != float64(int64(b)))
}

func (l *line) metas(x, y []eager.Meta) ([]eager.Meta, error) {
	if len(x) != len(y) {
		return nil, errOther
	}
	out := make([]eager.Meta, len(x))
	for i := range x {
		a, b := &x[i], &y[i]
		if a.DType != b.DType || a.Known != b.Known {
			return nil, errOther
		}
		out[i] = *a
		var err error
		if out[i].Shape, err = l.numbers(a.Shape, b.Shape); err != nil {
			return nil, err
		}
		if out[i].Stride, err = l.numbers(a.Stride, b.Stride); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func (l *line) kind(x, y *kind) (kind, error) {
	out := kind{defined: true, op: x.op}
	if x.op != y.op || len(x.args) != len(y.args) || len(x.kwargs) != len(y.kwargs) {
		return out, errOther
	}
	var err error
	if out.in, err = l.metas(x.in, y.in); err != nil {
		return out, err
	}
	if out.out, err = l.metas(x.out, y.out); err != nil {
		return out, err
	}
	if x.args != nil {
		args, err := l.value(x.args, y.args)
		if err != nil {
			return out, err
		}
		out.args = args.([]any)
	}
	if x.kwargs != nil {
		out.kwargs = map[string]any{}
	}
	for name, a := range x.kwargs {
		b, ok := y.kwargs[name]
		if !ok {
			return out, errOther
		}
		if out.kwargs[name], err = l.value(a, b); err != nil {
			return out, err
		}
	}
	return out, nil
}

// interpolate makes the recording that a value between or beyond two others
// would give, if all sizes lie on straight lines. exact is false if some do not:
// they were rounded.
func interpolate(a, b sample, at int64) (rec *Recording, exact bool, err error) {
	l := &line{a: a.value, b: b.value, at: at}
	rec, err = l.recording(a.rec, b.rec)
	return rec, !l.rounded, err
}

func (l *line) recording(x, y *Recording) (*Recording, error) {
	if len(x.events) != len(y.events) || len(x.storages) != len(y.storages) || len(x.ids) != len(y.ids) {
		return nil, fmt.Errorf("%w: %d events with %d, %d with %d", errOther, len(x.events), l.a, len(y.events), l.b)
	}
	out := *x
	out.kinds = nil
	out.storages = make([]storage, len(x.storages))
	for i := range x.storages {
		s, t := x.storages[i], y.storages[i]
		n, err := l.number(s.bytes, t.bytes)
		if err != nil || s.cuda != t.cuda {
			return nil, errOther
		}
		out.storages[i] = storage{n, s.cuda}
	}
	for i := range x.ids {
		if x.ids[i] != y.ids[i] {
			return nil, errOther
		}
	}
	type pair struct{ a, b int32 }
	kinds := map[pair]int32{}
	out.events = make([]event, len(x.events))
	for i := range x.events {
		e, f := x.events[i], &y.events[i]
		if e.what != f.what || e.thread != f.thread || e.stream != f.stream || e.at != f.at {
			return nil, errOther
		}
		if e.what != called {
			if e != *f {
				return nil, errOther
			}
			out.events[i] = e
			continue
		}
		k, ok := kinds[pair{e.a, f.a}]
		if !ok {
			made, err := l.kind(&x.kinds[e.a], &y.kinds[f.a])
			if err != nil {
				return nil, err
			}
			k = int32(len(out.kinds))
			kinds[pair{e.a, f.a}] = k
			out.kinds = append(out.kinds, made)
		}
		e.a = k
		out.events[i] = e
	}
	return &out, nil
}
