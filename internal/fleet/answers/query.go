package answers

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// QueryOptions are the flags of ashlar fleet query.
type QueryOptions struct {
	Where   string `json:"where,omitempty"`    // an expression; empty is all files
	GroupBy string `json:"group_by,omitempty"` // columns, separated by commas
	// Show are columns, separated by commas, or [AllColumns]; of groups also count and the functions
	// min, max, sum, avg, median and distinct of a column.
	Show  string `json:"show,omitempty"`
	Sort  string `json:"sort,omitempty"`  // as Show; -NAME is descending
	Limit int    `json:"limit,omitempty"` // rows; 0 is all
	NowUS int64  `json:"now_us"`          // what ages are counted from
}

// QueryDocument is what ashlar fleet query --json prints: rows are objects with a
// field for each column.
type QueryDocument struct {
	Columns []Column `json:"columns"`
	Matched int      `json:"matched"` // files
	// Total is the number of rows without the limit.
	Total int  `json:"total"`
	Rows  Rows `json:"rows"`
	// Notes say what the table does not have.
	Notes []string `json:"notes"`
}

// Query is a question that was read.
type Query struct {
	where condition
	group []*Column
	show  []shown // what is only sorted by comes last
	shown int     // how many of them are in the answer
	sort  []sortKey
	limit int
	nowUS int64
}

// shown is a column of the answer.
type shown struct {
	Column
	of  *Column // nil for count
	sum func(values []Value) Value
}

// sortKey is a column of the answer to sort by.
type sortKey struct {
	column     int
	descending bool
}

// AllColumns shows every column of files, without tags.
const AllColumns = "all"

const (
	// UsualShow are the columns of files that nobody chose.
	UsualShow  = "run,attempt,rank,commit,cause,peak_allocated_bytes,peak_reserved_bytes,file"
	usualGroup = "count,sum(failed),max(peak_allocated_bytes),max(peak_reserved_bytes)"
)

// NewQuery reads a question. An error names the flag and what is wrong with it.
func NewQuery(o QueryOptions) (*Query, error) {
	q := &Query{limit: o.Limit, nowUS: o.NowUS}
	var err error
	if q.where, err = parseCondition(o.Where, o.NowUS); err != nil {
		return nil, fmt.Errorf("--where: %w", err)
	}
	if o.Limit < 0 {
		return nil, errors.New("--limit is negative: leave it out for all rows")
	}
	for i, name := range listed(o.GroupBy) {
		c, err := findColumn(name)
		if err != nil {
			return nil, fmt.Errorf("--group-by: name %d: %w", i+1, err)
		}
		q.group = append(q.group, c)
	}
	if err := q.setShow(o.Show); err != nil {
		return nil, fmt.Errorf("--show: %w", err)
	}
	if err := q.setSort(o.Sort); err != nil {
		return nil, fmt.Errorf("--sort: %w", err)
	}
	return q, nil
}

// listed splits a list of names.
func listed(text string) []string {
	var out []string
	for name := range strings.SplitSeq(text, ",") {
		if name = strings.TrimSpace(name); name != "" {
			out = append(out, name)
		}
	}
	return out
}

func (q *Query) setShow(text string) error {
	names := listed(text)
	switch {
	case text == AllColumns && len(q.group) == 0:
		names = columnNames()
	case len(names) == 0 && len(q.group) == 0:
		names = listed(UsualShow)
	case len(names) == 0:
		for _, g := range q.group {
			names = append(names, g.Name)
		}
		names = append(names, listed(usualGroup)...)
	}
	for i, name := range names {
		s, err := q.column(name)
		if err != nil {
			return fmt.Errorf("name %d: %w", i+1, err)
		}
		if slices.ContainsFunc(q.show, func(o shown) bool { return o.Name == s.Name }) {
			return fmt.Errorf("name %d: %s is there twice: leave one out", i+1, s.Name)
		}
		q.show = append(q.show, s)
	}
	q.shown = len(q.show)
	return nil
}

var functionCall = regexp.MustCompile(`^([a-z]+)\((.*)\)$`)

// column reads a column of the answer: one of the table or, of groups, one that
// they were made by or a function of another.
func (q *Query) column(name string) (shown, error) {
	if len(q.group) == 0 {
		if name == "count" || functionCall.MatchString(name) {
			return shown{}, fmt.Errorf("%s needs --group-by", name)
		}
		c, err := findColumn(name)
		if err != nil {
			return shown{}, err
		}
		return shown{Column: *c, of: c}, nil
	}
	if name == "count" {
		return shown{Column: Column{Name: name, Kind: Count}}, nil
	}
	if call := functionCall.FindStringSubmatch(name); call != nil {
		return aggregate(name, call[1], strings.TrimSpace(call[2]))
	}
	if i := slices.IndexFunc(q.group, func(c *Column) bool { return c.Name == name }); i >= 0 {
		return shown{Column: *q.group[i], of: q.group[i], sum: func(values []Value) Value { return values[0] }}, nil
	}
	if _, err := findColumn(name); err != nil {
		return shown{}, err
	}
	return shown{}, fmt.Errorf("%s is not one of --group-by, so a group has several: write max(%s), min, avg, median, sum or distinct", name, name)
}

func (q *Query) setSort(text string) error {
	for i, name := range listed(text) {
		bare, descending := strings.CutPrefix(name, "-")
		at := slices.IndexFunc(q.show, func(s shown) bool { return s.Name == bare })
		if at < 0 {
			s, err := q.column(bare)
			if err != nil {
				return fmt.Errorf("name %d: %w", i+1, err)
			}
			at, q.show = len(q.show), append(q.show, s)
		}
		q.sort = append(q.sort, sortKey{at, descending})
	}
	return nil
}

// Run answers the question. Rows that the sort leaves equal are in the order of
// the files, or of the values that groups have in common.
func (q *Query) Run(entries []Entry) *QueryDocument {
	matched := ordered(entries, func(e *Entry) bool { return q.where(e) })
	out := &QueryDocument{Matched: len(matched), Columns: make([]Column, q.shown), Notes: []string{}}
	for i, s := range q.show[:q.shown] {
		out.Columns[i] = s.Column
	}
	rows := q.rows(matched)
	slices.SortStableFunc(rows, func(a, b []Value) int {
		for _, k := range q.sort {
			if c := compareValues(a[k.column], b[k.column], k.descending); c != 0 {
				return c
			}
		}
		return 0
	})
	out.Total = len(rows)
	if q.limit > 0 {
		rows = rows[:min(q.limit, len(rows))]
	}
	out.Rows = Rows{columns: out.Columns, all: rows}
	return out
}

// rows returns a row for each file, or for each group of files.
func (q *Query) rows(matched []*Entry) [][]Value {
	if len(q.group) == 0 {
		out := make([][]Value, len(matched))
		cells := make([]Value, len(matched)*len(q.show))
		for i, e := range matched {
			out[i], cells = cells[:len(q.show):len(q.show)], cells[len(q.show):]
			for j := range q.show {
				out[i][j] = q.show[j].of.value(e, q.nowUS)
			}
		}
		return out
	}
	var key []byte
	groups := grouped(matched, func(e *Entry) string {
		key = key[:0]
		for _, c := range q.group {
			v := c.value(e, q.nowUS)
			key = strconv.AppendBool(key, v.Known)
			key = append(append(strconv.AppendInt(key, v.N, 10), v.Text...), 0)
		}
		return string(key)
	})
	slices.SortStableFunc(groups, func(a, b []*Entry) int {
		for _, c := range q.group {
			if o := compareValues(c.value(a[0], q.nowUS), c.value(b[0], q.nowUS), false); o != 0 {
				return o
			}
		}
		return 0
	})
	var out [][]Value
	for _, g := range groups {
		row := make([]Value, len(q.show))
		for j, s := range q.show {
			row[j] = s.overGroup(g, q.nowUS)
		}
		out = append(out, row)
	}
	return out
}

// overGroup returns what a group has in a column of the answer.
func (s *shown) overGroup(g []*Entry, nowUS int64) Value {
	if s.of == nil {
		return Value{Known: true, N: int64(len(g))}
	}
	values := make([]Value, len(g))
	for i, e := range g {
		values[i] = s.of.value(e, nowUS)
	}
	return s.sum(values)
}

// compareValues orders values. What is not known comes last either way.
func compareValues(a, b Value, descending bool) int {
	if a.Known != b.Known {
		if a.Known {
			return -1
		}
		return 1
	}
	c := cmp.Or(cmp.Compare(a.N, b.N), strings.Compare(a.Text, b.Text))
	if descending {
		return -c
	}
	return c
}
