package view

import (
	"math"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/ashlar-mem/ashlar/alloc"
	"github.com/ashlar-mem/ashlar/internal/units"
)

// query reads parameters. The first one that cannot be used is kept as err;
// what is read after that does not matter.
type query struct {
	values url.Values
	err    error
}

func parseQuery(raw string) (*query, error) {
	values, err := url.ParseQuery(raw)
	if err != nil {
		return nil, badRequest("the parameters cannot be read: %v", err)
	}
	return &query{values: values}, nil
}

// bad keeps the first problem.
func (q *query) bad(format string, args ...any) {
	if q.err == nil {
		q.err = badRequest(format, args...)
	}
}

func (q *query) has(name string) bool { return q.values.Get(name) != "" }

// integer reads a whole number; without one it is missing.
func (q *query) integer(name string, missing, least, most int) int {
	text := q.values.Get(name)
	if text == "" {
		return missing
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < least || n > most {
		q.bad("%s is %q: write a whole number from %d to %d", name, text, least, most)
		return missing
	}
	return n
}

// event reads an event of a run; -1 is before the first.
func (q *query) event(name string, missing int, r *pageRun) int {
	text := q.values.Get(name)
	if text == "" {
		return missing
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < -1 || n >= r.events() {
		q.bad("%s is %q: the run has %d events; write a number from -1, before the first, to %d", name, text, r.events(), r.events()-1)
		return missing
	}
	return n
}

// real reads a number.
func (q *query) real(name string, missing float64) float64 {
	text := q.values.Get(name)
	if text == "" {
		return missing
	}
	x, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsNaN(x) || math.IsInf(x, 0) {
		q.bad("%s is %q: write a number", name, text)
		return missing
	}
	return x
}

// size reads a number of bytes.
func (q *query) size(name string, missing uint64) uint64 {
	text := q.values.Get(name)
	if text == "" {
		return missing
	}
	n, err := units.Parse(text)
	if err != nil {
		q.bad("%s is %q: %v", name, text, err)
		return missing
	}
	return n
}

// flag reads 0 or 1, also in words.
func (q *query) flag(name string) bool {
	text := q.choice(name, "0", "1", "false", "true")
	return text == "1" || text == "true"
}

// choice reads one of some words; the first one if there is none.
func (q *query) choice(name string, words ...string) string {
	text := q.values.Get(name)
	if text == "" {
		return words[0]
	}
	if !slices.Contains(words, text) {
		q.bad("%s is %q: write %s", name, text, strings.Join(words, ", "))
		return words[0]
	}
	return text
}

// handle reads an address or the handle of a stream.
func (q *query) handle(name string) *uint64 {
	text := q.values.Get(name)
	if text == "" {
		return nil
	}
	n, err := strconv.ParseUint(text, 0, 64)
	if err != nil {
		q.bad("%s is %q: write a number, decimal or with 0x", name, text)
		return nil
	}
	return &n
}

// pool reads the two numbers of a pool.
func (q *query) pool(name string) *alloc.PoolID {
	text := q.values.Get(name)
	if text == "" {
		return nil
	}
	a, b, ok := strings.Cut(text, ",")
	first, err1 := strconv.ParseUint(a, 10, 64)
	second, err2 := strconv.ParseUint(b, 10, 64)
	if !ok || err1 != nil || err2 != nil {
		q.bad("%s is %q: write its two numbers, such as 0,1", name, text)
		return nil
	}
	return &alloc.PoolID{First: first, Second: second}
}
