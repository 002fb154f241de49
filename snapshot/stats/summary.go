package stats

import (
	"regexp"
	"strconv"
	"strings"

	"github.com/ashlar-mem/ashlar/internal/units"
)

// rows are the names of memory_summary()'s rows and what they show (spec 9.4).
// Other devices say NPU or XPU where this says GPU.
var rows = map[string]struct {
	family string
	bytes  bool
}{
	"Allocated memory":      {"allocated_bytes", true},
	"Active memory":         {"active_bytes", true},
	"Requested memory":      {"requested_bytes", true},
	"GPU reserved memory":   {"reserved_bytes", true},
	"Non-releasable memory": {"inactive_split_bytes", true},
	"Allocations":           {"allocation", false},
	"Active allocs":         {"active", false},
	"GPU reserved segments": {"segment", false},
	"Non-releasable allocs": {"inactive_split", false},
	"Oversize allocations":  {"oversize_allocations", false},
	"Oversize GPU segments": {"oversize_segments", false},
}

const firstRow = "Allocated memory"

var (
	title    = regexp.MustCompile(`memory summary, device ID (\d{1,5})`)
	ooms     = regexp.MustCompile(`[A-Z]+ OOMs: *(\d{1,18})`)
	retries  = regexp.MustCompile(`[a-z]+Malloc retries: *(\d{1,18})`)
	cell     = regexp.MustCompile(`^(-?\d{1,18})(?: ?(B|[KMGTP]i?B|[KM]))?$`)
	otherGPU = regexp.MustCompile(`\b(?:NPU|XPU|MUSA|MLU)\b`)
)

// columns are what the four columns of the table show.
var columns = []string{"current", "peak", "allocated", "freed"}

// table is a summary being read.
type table struct {
	placed
	family string // of the last row that names one
	bytes  bool
	idle   int // lines since the last row
}

// hasTable reports cheaply whether text may contain a table.
func hasTable(text string) bool {
	return strings.Contains(text, firstRow) || strings.Contains(text, "memory summary, device ID")
}

// scanSummaries finds the tables of memory_summary() in text. One whose title
// was cut off begins with its first row.
func scanSummaries(text string) (dumps []placed, failed *failure) {
	if !hasTable(text) {
		return nil, nil
	}
	var t *table
	finish := func() {
		if t != nil && len(t.Values) > 0 {
			t.finish()
			dumps = append(dumps, t.placed)
		}
		t = nil
	}
	for at := 0; at < len(text); {
		end := len(text)
		if i := strings.IndexByte(text[at:], '\n'); i >= 0 {
			end = at + i
		}
		line := text[at:end]
		switch m := title.FindStringSubmatch(line); {
		case m != nil && len(line) < 1000:
			finish()
			t = &table{placed: placed{newDump(Summary), at}}
			t.Device, _ = strconv.Atoi(m[1])
			t.Label = strings.Trim(line[:strings.IndexAny(line+"|", "|")], " \t:")
		case strings.Count(line, "|") >= 5:
			name, values := split(line)
			if name == firstRow && (t == nil || t.family != "") {
				finish()
				t = &table{placed: placed{newDump(Summary), at}}
			}
			if t == nil {
				break
			}
			if f := t.row(name, values, text, at); f != nil {
				t = nil // the rest of the table is skipped
				if failed == nil {
					failed = f
				}
			}
		case t != nil && strings.Contains(line, "|"):
			t.counters(line)
		}
		const most = 12
		if t != nil {
			if t.idle++; t.idle > most {
				finish()
			}
		}
		at = end + 1
	}
	finish()
	return dumps, failed
}

// split returns the name of a row and its four values.
func split(line string) (name string, values []string) {
	cells := strings.Split(line[strings.IndexByte(line, '|')+1:], "|")
	for len(cells) > 1 && strings.TrimSpace(cells[0]) == "" {
		cells = cells[1:] // docker compose puts a bar before each line
	}
	name = strings.Join(strings.Fields(cells[0]), " ")
	return otherGPU.ReplaceAllString(name, "GPU"), cells[1:min(5, len(cells))]
}

// row takes a row of the table.
func (t *table) row(name string, values []string, text string, at int) *failure {
	pool := "all."
	switch r, ok := rows[name]; {
	case ok:
		t.family, t.bytes = r.family, r.bytes
		if strings.HasPrefix(name, "Oversize") {
			pool = ""
		}
	case name == "from large pool" && t.family != "":
		pool = "large_pool."
	case name == "from small pool" && t.family != "":
		pool = "small_pool."
	default:
		return nil
	}
	t.idle = 0
	for i, v := range values {
		place := at + strings.Index(text[at:], v)
		r, exact, problem := count(strings.TrimSpace(v), t.bytes)
		if problem != "" {
			return &failure{place, strconv.Quote(strings.TrimSpace(v)) + " in the row " + strconv.Quote(name) + " " + problem}
		}
		key := t.family + "." + pool + columns[i]
		t.Values[key] = r.mid
		delete(t.Ranges, key)
		if !exact {
			t.Ranges[key] = units.Range{Low: uint64(r.low), Mid: uint64(r.mid), High: uint64(r.high)}
		}
	}
	return nil
}

type bounds struct{ low, mid, high int64 }

// count reads a cell. The table divides and drops the rest (spec 9.4).
func count(s string, bytes bool) (b bounds, exact bool, problem string) {
	m := cell.FindStringSubmatch(s)
	if m == nil {
		return b, false, "is not a number and a unit"
	}
	n, _ := strconv.ParseInt(m[1], 10, 64)
	unit, isBytes := m[2], strings.HasSuffix(m[2], "B")
	if unit == "" || unit == "B" {
		return bounds{n, n, n}, true, ""
	}
	step, factor := int64(1), int64(1000)
	if isBytes {
		factor = 1024
	}
	for range strings.IndexByte("KMGTP", unit[0]) + 1 {
		step *= factor
	}
	switch {
	case isBytes != bytes:
		return b, false, "has the unit of another row"
	case n < 0:
		return b, false, "is negative and rounded"
	case n > (1<<62)/step:
		return b, false, "is too large"
	}
	low := n * step
	return bounds{low, low + step/2, low + step - 1}, false, ""
}

// counters takes the line under the title.
func (t *table) counters(line string) {
	if m := ooms.FindStringSubmatch(line); m != nil {
		t.Values["num_ooms"], _ = strconv.ParseInt(m[1], 10, 64)
	}
	if m := retries.FindStringSubmatch(line); m != nil {
		t.Values["num_alloc_retries"], _ = strconv.ParseInt(m[1], 10, 64)
	}
}
