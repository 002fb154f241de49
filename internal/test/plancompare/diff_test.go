package plancompare

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/ashlar-mem/ashlar/internal/plan/ledger"
)

// script makes a ledger: "=name step" begins a phase, "+a 100" is a birth, "-a"
// a death.
func script(t *testing.T, text string) *ledger.Ledger {
	t.Helper()
	l := ledger.New()
	ids := map[string]int32{}
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line == "" {
			continue
		}
		var name string
		var n int
		fmt.Sscan(line[1:], &name, &n)
		switch line[0] {
		case '=':
			l.Begin(name, n)
		case '+':
			ids[name] = l.Alloc(ledger.Tensor{Bytes: int64(n), Op: l.Name(name)})
		case '-':
			l.Free(ids[name])
		}
	}
	return l
}

func TestCompare(t *testing.T) {
	const recording = `
		=build 0
		+w 1000
		=forward 1
		+x 10
		+y 20
		-x
		+z 30
		=backward 1
		+g 1000
		-z
		-y
	`
	tests := []struct {
		name, planned, want string
	}{
		{"the same", recording, "build:= forward0:==== backward0:==="},
		{
			"the loss is a part of the forward pass",
			"=build 0\n+w 1000\n=forward 1\n+x 10\n+y 20\n=loss 1\n-x\n+z 30\n=backward 1\n+g 1000\n-z\n-y",
			"build:= forward0:==== backward0:===",
		},
		{
			"a birth and its death are missing",
			"=build 0\n+w 1000\n=forward 1\n+y 20\n+z 30\n=backward 1\n+g 1000\n-z\n-y",
			"build:= forward0:-=-= backward0:===",
		},
		{
			"a tensor too many",
			"=build 0\n+w 1000\n=forward 1\n+x 10\n+y 20\n+t 7\n-x\n-t\n+z 30\n=backward 1\n+g 1000\n-z\n-y",
			"build:= forward0:==+=+= backward0:===",
		},
		{
			"a death comes later",
			"=build 0\n+w 1000\n=forward 1\n+x 10\n+y 20\n+z 30\n=backward 1\n+g 1000\n-z\n-y\n-x",
			"build:= forward0:==<= backward0:===>",
		},
		{
			"two deaths change places",
			"=build 0\n+w 1000\n=forward 1\n+x 10\n+y 20\n-x\n+z 30\n=backward 1\n+g 1000\n-y\n-z",
			"build:= forward0:==== backward0:=<=>",
		},
		{
			"a death is left out",
			"=build 0\n+w 1000\n=forward 1\n+x 10\n+y 20\n-x\n+z 30\n=backward 1\n+g 1000\n-z",
			"build:= forward0:==== backward0:==<",
		},
		{
			"a phase is missing, another is too many",
			"=build 0\n+w 1000\n=forward 1\n+x 10\n+y 20\n-x\n+z 30\n=optimizer 1\n+m 5\n",
			"build:= forward0:==== optimizer0:+ backward0:-<<",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			run := &Run{Ledger: script(t, recording)}
			d := Compare(script(t, tt.planned), run)
			var got []string
			for _, p := range d.Phases {
				marks := p.Label + ":"
				for _, r := range p.Rows {
					marks += string(rune(r.Mark))
				}
				got = append(got, marks)
			}
			if s := strings.Join(got, " "); s != tt.want {
				t.Errorf("got  %s\nwant %s", s, tt.want)
			}
			everyEventOnce(t, d)
		})
	}
}

// everyEventOnce checks that the rows hold each event of both sides, in order.
func everyEventOnce(t *testing.T, d *Diff) {
	t.Helper()
	var planned, recorded []int32
	for _, p := range d.Phases {
		for _, r := range p.Rows {
			if r.Planned >= 0 {
				planned = append(planned, r.Planned)
			}
			if r.Recorded >= 0 {
				recorded = append(recorded, r.Recorded)
			}
		}
	}
	if len(planned) != len(d.Planned.Events) || len(recorded) != len(d.Run.Ledger.Events) ||
		!slices.IsSorted(planned) || !slices.IsSorted(recorded) {
		t.Errorf("events are lost or out of order: %v, %v", planned, recorded)
	}
}

// Gradients that are accumulated repeat the phases of a step.
func TestCompareAccumulated(t *testing.T) {
	const twice = "=forward 1\n+x 10\n=backward 1\n-x\n=forward 1\n+y 10\n=backward 1\n-y"
	d := Compare(script(t, twice), &Run{Ledger: script(t, twice)})
	if len(d.Phases) != 4 || d.Match[1] != 1 {
		t.Errorf("%d phases, second tensor matched with %d", len(d.Phases), d.Match[1])
	}
}

func TestCovered(t *testing.T) {
	rec := script(t, "+a 100\n+b 5\n+c 300\n-c\n+d 200")
	planned := script(t, "+a 100\n+c 300\n+e 400")
	tests := []struct {
		least int64
		want  Cover
		share float64
	}{
		{0, Cover{3, 4, 2, 800, 605, 400}, 0.5},
		{150, Cover{2, 2, 1, 700, 500, 300}, 300.0 / 700},
		{1000, Cover{}, 1},
	}
	for _, tt := range tests {
		got := Covered(planned, rec, 0, 0, tt.least)
		if got != tt.want || got.Share() != tt.share {
			t.Errorf("from %d bytes on: %+v, %g; want %+v, %g", tt.least, got, got.Share(), tt.want, tt.share)
		}
	}
}

func TestPeak(t *testing.T) {
	l := script(t, "+a 100\n+b 50\n-b\n+c 20\n-a\n+d 10")
	tests := []struct{ first, last, bytes, event int }{
		{0, 6, 150, 1},
		{2, 6, 150, 1}, // what is there at the beginning counts
		{3, 6, 120, 3},
		{5, 6, 30, 5},
	}
	for _, tt := range tests {
		if bytes, event := Peak(l, tt.first, tt.last); bytes != int64(tt.bytes) || event != tt.event {
			t.Errorf("%d to %d: %d at %d, want %d at %d", tt.first, tt.last, bytes, event, tt.bytes, tt.event)
		}
	}
}
