package playground

import (
	"strings"
	"testing"

	"github.com/ashlar-mem/ashlar/internal/units"
)

// said plays lines and returns the sentences of the last step as one text.
func said(t *testing.T, text string) (string, *Moment) {
	t.Helper()
	a := play(t, split(text), End)
	return strings.Join(told(&a.Moment), "\n"), &a.Moment
}

// What a step says under circumstances that no lesson has.
func TestSaid(t *testing.T) {
	for _, tt := range []struct {
		name, lines string
		want        []string
		not         string
	}{
		{
			"the fraction is read once", "device total=512MiB\nset per_process_memory_fraction:0.1,max_split_size_mb:20",
			[]string{"from here on max_split_size_mb:20.", "per_process_memory_fraction is read once, when CUDA is set up: here it has no effect."},
			"fraction:0.1",
		},
		{
			"the fraction of the start stays", "device total=512MiB conf=per_process_memory_fraction:0.5\nset per_process_memory_fraction:0.5",
			[]string{"from here on per_process_memory_fraction:0.5."},
			"no effect",
		},
		{
			"another than that of the start", "device total=512MiB conf=per_process_memory_fraction:0.5\nset per_process_memory_fraction:0.1",
			[]string{"from here on per_process_memory_fraction:0.5.", "has no effect"},
			"fraction:0.1",
		},
		{
			"a limit in its place", "device total=512MiB conf=per_process_memory_fraction:0.5\nlimit 100MiB\nset max_split_size_mb:20",
			[]string{"from here on max_split_size_mb:20."},
			"fraction",
		},
		{"no limit", "device total=512MiB limit=10MiB\nlimit none", []string{"Limit: from here on there is none"}, ""},
		{
			"all that is mapped is freed", "device total=512MiB conf=expandable_segments:True\nalloc a 60MiB\nfree a",
			[]string{"Merge: none: no memory beside it is mapped, so it is no hole"},
			"hole of",
		},
		{
			"the end of what is mapped", "device total=512MiB conf=expandable_segments:True\nalloc a 20MiB\nalloc b 20MiB\nfree b",
			[]string{"The 20.00 MiB are the end of what is mapped, so the segment can grow behind them."},
			"hole",
		},
		{
			"between blocks in use", "device total=512MiB conf=expandable_segments:True\nalloc a 20MiB\nalloc b 20MiB\nalloc c 20MiB\nfree b",
			[]string{"so a hole of 20.00 MiB is left"},
			"grow",
		},
		{
			"several granules", "device total=512MiB conf=expandable_segments:True\nalloc a 6MiB\nalloc b 54MiB\nalloc c 20MiB\nfree b\nempty",
			[]string{"of the free 54.00 MiB at A+6.00 MiB only whole granules of 20.00 MiB can go. 2 of them lie inside: they are unmapped, and 40.00 MiB go back to the driver."},
			"",
		},
		{
			"granules that CUDA cannot map", "device total=512MiB conf=expandable_segments:True,large_segment_size_mb:33\nalloc a 20MiB",
			[]string{"large_segment_size_mb:33 with expandable segments: CUDA maps memory in multiples of 2 MiB"},
			"invalid argument",
		},
		{"nothing is reserved", "device total=512MiB limit=10MiB\nalloc a 20MiB", []string{"nothing is reserved yet"}, "in use"},
		{"all is in use", "device total=512MiB limit=30MiB\nalloc a 20MiB\nalloc b 20MiB", []string{"all that is reserved is in use"}, "nothing is reserved"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			text, m := said(t, tt.lines)
			for _, want := range tt.want {
				if !strings.Contains(text, want) {
					t.Errorf("%q is not in\n%s", want, text)
				}
			}
			if tt.not != "" && strings.Contains(text, tt.not) {
				t.Errorf("%q is in\n%s", tt.not, text)
			}
			if all := strings.Join(m.Events, "\n"); tt.not != "" && strings.Contains(all, tt.not) {
				t.Errorf("%q is in\n%s", tt.not, all)
			}
			if tt.not != "" && strings.Contains(m.Settings, tt.not) {
				t.Errorf("the settings in force are %s", m.Settings)
			}
			if strings.HasSuffix(tt.lines, "limit none") && m.LimitBytes != nil {
				t.Errorf("the limit is %d", *m.LimitBytes)
			}
		})
	}
}

// After empty_cache the sentence about what stays has the number of the tile.
func TestStrandedIsTold(t *testing.T) {
	checked := 0
	for _, e := range Experiments() {
		steps := play(t, e.Lines, End).Steps
		for i, s := range steps {
			if s.Text != "empty" {
				continue
			}
			m := &play(t, e.Lines, i+1).Moment
			text := strings.Join(told(m), "\n")
			if want := "Stranded: "; (m.StrandedBytes > 0) != strings.Contains(text, want) || !strings.Contains(text, units.Size(m.StrandedBytes)) && m.StrandedBytes > 0 {
				t.Errorf("%s, step %d: %s are stranded, but\n%s", e.Name, i+1, units.Size(m.StrandedBytes), text)
			}
			checked++
		}
	}
	if checked < 4 {
		t.Errorf("only %d steps were looked at", checked)
	}
}
