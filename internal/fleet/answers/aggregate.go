package answers

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// aggregates are the functions over the values of a group that are known, of
// which there is at least one.
var aggregates = map[string]func(values []Value) Value{
	"min": func(values []Value) Value { return slices.MinFunc(values, ascending) },
	"max": func(values []Value) Value { return slices.MaxFunc(values, ascending) },
	"sum": func(values []Value) Value { return Value{Known: true, N: total(values)} },
	"avg": func(values []Value) Value { return Value{Known: true, N: total(values) / int64(len(values))} },
	"median": func(values []Value) Value {
		sorted := slices.SortedFunc(slices.Values(values), ascending)
		return sorted[(len(sorted)-1)/2]
	},
	"distinct": func(values []Value) Value {
		seen := map[Value]bool{}
		for _, v := range values {
			seen[v] = true
		}
		return Value{Known: true, N: int64(len(seen))}
	},
}

func ascending(a, b Value) int { return compareValues(a, b, false) }

func total(values []Value) (sum int64) {
	for _, v := range values {
		sum += v.N
	}
	return sum
}

// aggregate returns the column that is a function of another over a group.
func aggregate(name, function, of string) (shown, error) {
	compute := aggregates[function]
	if compute == nil {
		return shown{}, fmt.Errorf("there is no function %q; there are %s", function, strings.Join(slices.Sorted(maps.Keys(aggregates)), ", "))
	}
	c, err := findColumn(of)
	if err != nil {
		return shown{}, err
	}
	s := shown{Column: Column{Name: name, Kind: c.Kind}, of: c}
	switch function {
	case "distinct":
		s.Kind = Count
	case "sum", "avg":
		if c.Kind == Text || c.Kind == Time {
			return shown{}, fmt.Errorf("%s is a %s, of which there is no %s", of, c.Kind, function)
		}
		if c.Kind == Bool {
			s.Kind = Count
		}
	}
	s.sum = func(values []Value) Value {
		values = slices.DeleteFunc(values, func(v Value) bool { return !v.Known })
		if len(values) == 0 {
			return Value{Known: function == "sum" || function == "distinct"}
		}
		return compute(values)
	}
	return s, nil
}
