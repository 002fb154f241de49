package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/ashlar-mem/ashlar/internal/test/plancompare"
	"github.com/ashlar-mem/ashlar/internal/units"
)

// Tables are printed in Markdown, as they stand in docs/measured/plan.md.

var peakColumns = []string{"case", "run", "allocated", "planned", "error", "reserved", "planned", "error"}

func (b *bench) title(s string) { fmt.Fprintf(b.out, "%s\n\n", s) }

// table prints rows with columns of one width.
func (b *bench) table(columns []string, rows [][]string) {
	width := make([]int, len(columns))
	for _, row := range append([][]string{columns}, rows...) {
		for i, cell := range row {
			width[i] = max(width[i], len(cell))
		}
	}
	line := func(cells []string, pad string) {
		for i, cell := range cells {
			fmt.Fprintf(b.out, "|%s%s%s%s", pad, cell, strings.Repeat(" ", width[i]-len(cell)), pad)
		}
		fmt.Fprintln(b.out, "|")
	}
	line(columns, " ")
	rule := make([]string, len(columns))
	for i := range rule {
		rule[i] = strings.Repeat("-", width[i])
	}
	line(rule, "-")
	for _, row := range rows {
		line(row, " ")
	}
	fmt.Fprintln(b.out)
}

// pair is three cells: what was measured, what was planned, and the error, which
// is noted.
func pair(errs *[]float64, planned, measured uint64) []string {
	e := plancompare.Off(int64(planned), int64(measured))
	*errs = append(*errs, math.Abs(e))
	d := int64(planned - measured)
	said := fmt.Sprintf("%+.2f %%", 100*e)
	switch {
	case d == 0:
		said = "0"
	case d > -1024 && d < 1024:
		said = units.Delta(d)
	}
	return []string{units.Size(measured), units.Size(planned), said}
}

// describe says in a few words what was run, in those of the script that
// measured it.
func describe(spec any, params int64) (string, error) {
	text, err := json.Marshal(spec)
	if err != nil {
		return "", err
	}
	var all map[string]any
	if err := json.Unmarshal(text, &all); err != nil {
		return "", err
	}
	family := "?"
	if m, ok := all["m"].(map[string]any); ok {
		family = fmt.Sprint(m["fam"])
	}
	said := []string{fmt.Sprintf("%s %.2fB", family, float64(params)/1e9)}
	// b and s first, then the rest by name.
	keys := slices.Sorted(maps.Keys(all))
	keys = slices.DeleteFunc(keys, func(k string) bool { return slices.Contains([]string{"m", "b", "s", "alone", "limits", "record"}, k) })
	for _, k := range append([]string{"b", "s"}, keys...) {
		switch v := all[k]; v {
		case nil:
		case true:
			said = append(said, k)
		default:
			said = append(said, fmt.Sprintf("%s=%v", k, v))
		}
	}
	return strings.Join(said, " "), nil
}
