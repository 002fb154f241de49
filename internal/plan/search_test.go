package plan

import (
	"strconv"
	"strings"
	"testing"
)

func TestFindLargest(t *testing.T) {
	for _, of := range []string{"batch", "seq"} {
		q := question(t, "batch", "2", "seq", "512")
		q.NoLevers = true
		q.Capacity.Limit = 3 << 30
		l, err := FindLargest(t.Context(), q, of)
		if err != nil {
			t.Fatal(err)
		}
		if l.Next != l.Value+1 || l.Value < 2 || l.Plans > 40 || l.Why == "" || l.PeakReserved == 0 {
			t.Errorf("%+v", l)
		}
		for _, tt := range []struct {
			v    int64
			fits bool
		}{{l.Value, true}, {l.Next, false}} {
			q.Options = q.Options.with(of, strconv.FormatInt(tt.v, 10))
			if a := ask(t, q); *a.Fits != tt.fits {
				t.Errorf("--%s %d: fits is %v", of, tt.v, *a.Fits)
			}
		}
	}
}

func TestFindLargestNothingFits(t *testing.T) {
	q := question(t, "seq", "512")
	q.Capacity.Limit = 64 << 20
	l, err := FindLargest(t.Context(), q, "batch")
	if err != nil || l.Value != 0 || l.Next != 1 || !strings.Contains(l.Why, "memory in forward 1") {
		t.Errorf("%+v %v", l, err)
	}
}

func TestFindLargestRefuses(t *testing.T) {
	q := question(t, "seq", "512")
	for _, tt := range []struct{ of, limit, want string }{
		{"batch", "", "give gpu or limit"},
		{"layers", "1", "write batch or seq"},
		{"seq", "1", "batch is missing"},
	} {
		q.Capacity.Limit = uint64(len(tt.limit)) << 30
		if _, err := FindLargest(t.Context(), q, tt.of); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%+v: %v", tt, err)
		}
	}
}

func TestSweep(t *testing.T) {
	q := question(t, "seq", "512")
	q.Capacity.Limit = 1 << 30
	axes := []Axis{{"recompute", []string{"none", "full"}}, {"batch", []string{"1", "4", "16"}}}
	cells, err := Sweep(t.Context(), q, axes)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"none 1", "none 4", "none 16", "full 1", "full 4", "full 16"}
	for i, c := range cells {
		if got := strings.Join(c.Values, " "); got != want[i] || c.Error != "" || c.Fits == nil {
			t.Errorf("%d: %+v", i, c)
		}
		single := q
		single.NoLevers = true
		single.Options = options(t, "seq", "512", "recompute", c.Values[0], "batch", c.Values[1])
		if a := ask(t, single); a.PeakReserved != c.PeakReserved || a.PeakAllocated != c.PeakAllocated || a.PeakDevice != c.PeakDevice || *a.Fits != *c.Fits || a.BindingPhase != c.BindingPhase {
			t.Errorf("%+v is not %+v", c, a)
		}
	}
	if !*cells[0].Fits || *cells[2].Fits {
		t.Errorf("%+v", cells)
	}
	// One that cannot be planned is named; if none can, that is an error.
	cells, err = Sweep(t.Context(), q, []Axis{{"batch", []string{"1"}}, {"shard", []string{"tp:2", "tp:3"}}})
	if err != nil || cells[0].Error != "" || !strings.Contains(cells[1].Error, "8 heads cannot be divided among 3 ranks") {
		t.Errorf("%+v %v", cells, err)
	}
	if _, err = Sweep(t.Context(), q, axes[:1]); err == nil || !strings.Contains(err.Error(), "batch is missing") {
		t.Error(err)
	}
}

func TestParseAxis(t *testing.T) {
	a, err := ParseAxis("batch=1, 2,4")
	if err != nil || a.Name != "batch" || strings.Join(a.Values, " ") != "1 2 4" {
		t.Errorf("%+v %v", a, err)
	}
	if a, err := ParseAxis("autocast=true,false"); err != nil || len(a.Values) != 2 {
		t.Errorf("%+v %v", a, err)
	}
	for text, want := range map[string]string{
		"batch": "write an option and its values", "batch=": "write an option and its values", "batch=x": "whole number", "batch=1,1": "given twice",
		"colour=1": "no option", "recompute=some": "write none, full",
	} {
		if _, err := ParseAxis(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestFindRecompute(t *testing.T) {
	q := question(t, "batch", "4", "seq", "1000")
	q.NoLevers = true
	peak := func(how string) uint64 {
		c := q
		c.Options = c.Options.with("recompute", how)
		return ask(t, c).SmallestLimit
	}
	none, full := peak("none"), peak("full")
	find := func(limit uint64) *BestRecompute {
		c := q
		c.Capacity.Limit = limit
		b, err := FindRecompute(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	if b := find(none); len(b.Best.Layers) != 0 || !b.Best.Fits || b.Best.Extra != 0 {
		t.Errorf("where nothing need be recomputed: %+v", b.Best)
	}
	if b := find(full - 4<<20); b.Best.Fits {
		t.Errorf("where nothing fits: %+v", b.Best)
	}
	last := 9
	for i := range 4 {
		limit := full + (none-full)*uint64(i)/4
		b := find(limit)
		best := &b.Best
		if !best.Fits || len(best.Layers) == 0 || best.PeakAllocated > limit {
			t.Fatalf("within %d: %+v", limit, best)
		}
		for _, o := range b.Others {
			if o.Fits && o.Extra < best.Extra && o.Name != "selective" {
				t.Errorf("%s repeats less: %+v than %+v", o.Name, o, best)
			}
		}
		if len(best.Layers) > last {
			t.Errorf("more room, more layers: %d after %d", len(best.Layers), last)
		}
		last = len(best.Layers)
		// One layer less does not fit.
		if n := len(best.Layers) - 1; n > 0 {
			c := q
			c.Capacity.Limit = limit
			c.Options = c.Options.with("recompute", "groups:"+groupsText(append(slicesOf(1, n), -(8-n))))
			a, b := ask(t, c), c
			b.Options = c.Options.with("recompute", "groups:"+groupsText(append([]int{-(8 - n)}, slicesOf(1, n)...)))
			if *a.Fits || *ask(t, b).Fits {
				t.Errorf("within %d already %d layers do, not %d", limit, n, n+1)
			}
		}
		// What is proposed can be asked for.
		c := q
		c.Capacity.Limit = limit
		c.Options = best.Apply(c.Options)
		if a := ask(t, c); !*a.Fits || a.PeakReserved != best.PeakReserved {
			t.Errorf("%s: %+v", best.Flags, a)
		}
	}
}

func slicesOf(v, n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = v
	}
	return out
}

func TestGroups(t *testing.T) {
	for _, tt := range []struct {
		text   string
		groups []int
		again  string
		layers []int
	}{
		{"-20,12*1", append([]int{-20}, slicesOf(1, 12)...), "-20,12*1", []int{20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31}},
		{"2,2,-1", []int{2, 2, -1}, "2*2,-1", []int{0, 1, 2, 3}},
		{"3", []int{3}, "3", []int{0, 1, 2}},
	} {
		got, err := parseGroups(tt.text)
		if err != nil || !equal(got, tt.groups) || groupsText(got) != tt.again || !equal(recomputed(got), tt.layers) {
			t.Errorf("%q: %v %v %q %v", tt.text, got, err, groupsText(got), recomputed(got))
		}
	}
	for _, text := range []string{"", "0", "a", "1,", "2*", "-1*3", "99999999", "1*0", "65000*65000"} {
		if got, err := parseGroups(text); err == nil {
			t.Errorf("%q is read as %v", text, got)
		}
	}
}

func equal(a, b []int) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}
