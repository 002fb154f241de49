package plan

import (
	"slices"
	"strconv"
	"testing"

	"github.com/ashlar-mem/ashlar/internal/plan/ledger"
	"github.com/ashlar-mem/ashlar/internal/plan/model"
	"github.com/ashlar-mem/ashlar/internal/test/short"
	"github.com/ashlar-mem/ashlar/settings"
)

// In every piece of a timeline the components sum to what is allocated, and at
// the peak they are those of the answer.
func TestTimelineComponents(t *testing.T) {
	short.Skip(t)
	llama, err := model.Open("../../testdata/plan/llama-1b.json")
	if err != nil {
		t.Fatal(err)
	}
	real := func(conf string, pairs ...string) Question {
		return under(t, Question{Model: llama, Options: options(t, pairs...), Settings: settings.Default()}, conf)
	}
	hand := question(t, "batch", "4", "seq", "1000")
	for name, q := range map[string]Question{
		"by hand":    hand,
		"train":      real("", "batch", "2", "seq", "512"),
		"autocast":   real("expandable_segments:True", "batch", "1", "seq", "300", "autocast", "true", "clip", "true"),
		"accumulate": real("roundup_power2_divisions:4", "batch", "1", "seq", "200", "accumulate", "2", "zero-grad", "keep"),
		"generate":   real("", "batch", "3", "seq", "100", "generate", "9"),
		"two ranks":  real("", "batch", "1", "seq", "128", "shard", "fsdp:2"),
	} {
		for _, points := range []int{1, 7, 333, 1_000_000} {
			q.Points, q.NoLevers = points, true
			a := ask(t, q)
			l := a.Timeline
			sums := make([]uint64, len(l.Allocated))
			var order []string
			for _, c := range l.Components {
				if len(c.Bytes) != len(sums) || slices.Max(c.Bytes) == 0 {
					t.Fatalf("%s: %s has %d of %d pieces", name, c.Name, len(c.Bytes), len(sums))
				}
				for i, n := range c.Bytes {
					sums[i] += n
				}
				order = append(order, c.Name)
			}
			if !slices.Equal(sums, l.Allocated) {
				i := 0
				for sums[i] == l.Allocated[i] {
					i++
				}
				t.Errorf("%s in %d pieces: the components of piece %d sum to %d, %d are allocated", name, points, i, sums[i], l.Allocated[i])
			}
			at := slices.Index(l.Allocated, a.PeakAllocated)
			for _, c := range a.Components {
				k := slices.Index(order, c.Name)
				if k < 0 || l.Components[k].Bytes[at] != c.Bytes {
					t.Errorf("%s in %d pieces: %s is %d at the peak, not as in %+v", name, points, c.Name, c.Bytes, order)
				}
			}
		}
	}
}

// Whoever offers the options finds in the catalogue what Set takes.
func TestCatalogueTellsWhatMayBeWritten(t *testing.T) {
	words := 0
	for _, c := range Catalogue() {
		var o Options
		for _, w := range c.Words() {
			words++
			if err := o.Set(c.Name, w); err != nil || o.Get(c.Name) != w {
				t.Errorf("--%s %s: %v", c.Name, w, err)
			}
		}
		for _, w := range c.Numbered() {
			words++
			if err := o.Set(c.Name, w+":2"); err != nil {
				t.Errorf("--%s %s:2: %v", c.Name, w, err)
			}
			if o.Set(c.Name, w) == nil {
				t.Errorf("--%s %s passes without a number", c.Name, w)
			}
		}
		least, most := c.Bounds()
		for n, ok := range map[int64]bool{least: true, most: true, least - 1: false, most + 1: false} {
			if most > 0 && (o.Set(c.Name, strconv.FormatInt(n, 10)) == nil) != ok {
				t.Errorf("--%s %d: taken is %v", c.Name, n, !ok)
			}
		}
		if (len(c.Words())+len(c.Numbered()) > 0) && (most > 0 || o.Set(c.Name, "no such word") == nil) {
			t.Errorf("--%s has words, and takes others", c.Name)
		}
	}
	if words < 40 {
		t.Errorf("%d words in all", words)
	}
	for mode, names := range ofMode {
		for _, n := range names {
			if !slices.ContainsFunc(catalogue, func(c Option) bool { return c.Name == n && c.Mode() == mode }) {
				t.Errorf("%s is no option of mode %s", n, mode)
			}
		}
	}
	for _, k := range ledger.Kinds() {
		if k.String() == rounding {
			t.Errorf("a kind is called %s", rounding)
		}
	}
}
