package plan

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/ashlar-mem/ashlar/internal/parallel"
	"github.com/ashlar-mem/ashlar/internal/plan/problem"
)

// Axis is an option and the values that a sweep gives it.
type Axis struct {
	Name   string   `json:"name"`
	Values []string `json:"values"`
}

// maxCells bounds a sweep.
const maxCells = 1000

// ParseAxis reads "batch=1,2,4".
func ParseAxis(text string) (Axis, error) {
	name, values, ok := strings.Cut(text, "=")
	a := Axis{Name: strings.TrimPrefix(name, "--")}
	if !ok || values == "" {
		return a, fmt.Errorf("%q: write an option and its values, such as batch=1,2,4", text)
	}
	var probe Options
	for v := range strings.SplitSeq(values, ",") {
		v = strings.TrimSpace(v)
		if err := probe.Set(a.Name, v); err != nil {
			return a, fmt.Errorf("%s: %w", a.Name, err)
		}
		if slices.Contains(a.Values, v) {
			return a, fmt.Errorf("%s: %q is given twice", a.Name, v)
		}
		a.Values = append(a.Values, v)
	}
	return a, nil
}

// Cell is one plan of a sweep.
type Cell struct {
	Values        []string `json:"values"` // one for each axis
	Fits          *bool    `json:"fits"`
	PeakAllocated uint64   `json:"peak_allocated_bytes"`
	PeakReserved  uint64   `json:"peak_reserved_bytes"`
	PeakDevice    uint64   `json:"peak_device_bytes"`
	// Limited is the run within Capacity; nil without one or if it does not fit.
	Limited      *Limited `json:"limited"`
	BindingPhase string   `json:"binding_phase"`
	Error        string   `json:"error,omitempty"` // why it cannot be planned
}

// Sweep plans every combination of the axes' values; those of the last axis
// change fastest.
func Sweep(ctx context.Context, q Question, axes []Axis) ([]Cell, error) {
	if err := q.prepare(); err != nil {
		return nil, err
	}
	n := 1
	for i, a := range axes {
		n *= len(a.Values)
		if n > maxCells {
			return nil, problem.New("{sweep}: more than %d plans are asked for: give fewer values", maxCells)
		}
		if slices.ContainsFunc(axes[:i], func(b Axis) bool { return b.Name == a.Name }) {
			return nil, problem.New("{sweep} %s is given twice: write its values with commas", a.Name)
		}
	}
	cells := make([]Cell, n)
	options := make([]Options, n)
	for i := range cells {
		options[i] = q.Options
		rest := i
		for k := len(axes) - 1; k >= 0; k-- {
			a := &axes[k]
			v := a.Values[rest%len(a.Values)]
			rest /= len(a.Values)
			cells[i].Values = append([]string{v}, cells[i].Values...)
			if err := options[i].Set(a.Name, v); err != nil {
				return nil, problem.New("{sweep} %s: %w", a.Name, err)
			}
		}
	}
	// What is wrong with all of them is wrong with the question.
	bad := 0
	for i := range options {
		if _, _, err := options[i].Job(q.Model); err != nil {
			cells[i].Error = problem.Flags(err)
			if bad++; bad == n {
				return nil, err
			}
		}
	}
	err := parallel.Each(ctx, parallel.AllCores, n, func(i int) error {
		if cells[i].Error != "" {
			return nil
		}
		return q.cell(ctx, options[i], &cells[i])
	})
	return cells, err
}

func (q *Question) cell(ctx context.Context, o Options, c *Cell) error {
	p, _, err := q.plan(ctx, o, 0)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	var wrong *OtherModelError
	if errors.As(err, &wrong) {
		return err // whatever the values
	}
	if err != nil {
		c.Error = problem.Flags(err)
		return nil
	}
	c.PeakAllocated, c.PeakReserved = p.allocated, p.reserved
	c.PeakDevice = p.reserved + p.outside()
	c.BindingPhase = p.binding().Name
	if q.Capacity.given() {
		if c.Limited, err = p.within(ctx); err != nil {
			return err
		}
		ok := c.Limited != nil
		c.Fits = &ok
	}
	return nil
}
