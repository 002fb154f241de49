package text

import "strings"

// grid is a table whose columns are as wide as what is in them.
type grid struct {
	left int // so many columns, from the first on, are aligned to the left
	head [][]string
	rows [][]string
	// Where the page is too narrow, the columns of drop are left out, one after
	// the other, and then the column cut is shortened in its middle.
	drop []int
	cut  int
}

// lines returns the table as lines, indented by two columns, that are no wider
// than the page.
func (g *grid) lines(columns int) []string {
	const gap = 2
	all := append(append([][]string{}, g.head...), g.rows...)
	wide := make([]int, len(all[0]))
	for _, row := range all {
		for i, cell := range row {
			wide[i] = max(wide[i], width(cell))
		}
	}
	sum := 0
	for _, w := range wide {
		sum += gap + w
	}
	left := map[int]bool{}
	for _, c := range g.drop {
		if sum <= columns {
			break
		}
		left[c] = true
		sum -= gap + wide[c]
	}
	if over := sum - columns; over > 0 {
		wide[g.cut] = max(wide[g.cut]-over, 8)
	}
	var out []string
	for _, row := range all {
		var line strings.Builder
		for i, cell := range row {
			if left[i] {
				continue
			}
			cell = middle(cell, wide[i])
			blanks := strings.Repeat(" ", wide[i]-width(cell))
			line.WriteString(strings.Repeat(" ", gap))
			if i < g.left {
				line.WriteString(cell + blanks)
			} else {
				line.WriteString(blanks + cell)
			}
		}
		out = append(out, strings.TrimRight(line.String(), " "))
	}
	return out
}
