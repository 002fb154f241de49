package hf_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ashlar-mem/ashlar/internal/plan/hf"
	"github.com/ashlar-mem/ashlar/internal/test/plancompare"
	"github.com/ashlar-mem/ashlar/internal/test/short"
)

var update = flag.Bool("update", false, "raise the levels in testdata/plan/levels.txt to what holds now")

// Every recorded run is planned and compared with its recording. levels.txt
// says how well each agrees: what was reached once is kept. A recording that is
// not in it has no plan yet.
func TestRecorded(t *testing.T) {
	names, err := plancompare.Names()
	if err != nil {
		t.Fatal(err)
	}
	levels := readLevels(t)
	for _, name := range short.Some(names, 8) {
		f, err := figures(name)
		if errors.Is(err, errPanic) {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if err != nil {
			if want, ok := levels[name]; ok {
				t.Errorf("%s: %v; it was %s", name, err, want)
			}
			continue
		}
		got := f.Level()
		want, ok := levels[name]
		switch {
		case ok && !got.Reaches(want):
			t.Errorf("%s: %s, and it was %s: %d rows differ, peaks %+v, measured %+v, births of step 3 covered %.2f %%; "+
				"go -C tools run ./plandiff %s shows where", name, got, want, f.Differing, f.Planned, f.Measured, 100*f.LargeScored.Share(), name)
		case got != want && got != plancompare.Far:
			levels[name] = got
		}
	}
	if *update {
		writeLevels(t, names, levels)
	}
}

var errPanic = errors.New("panic")

// figures plans a run and compares it. A panic is this run's error, so that the
// others are still compared.
func figures(name string) (f plancompare.Figures, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%w: %v", errPanic, p)
		}
	}()
	run, err := plancompare.Open(name)
	if err != nil {
		return f, err
	}
	j, err := run.Job()
	if err != nil {
		return f, err
	}
	r, err := hf.Run(context.Background(), j)
	if err != nil {
		return f, err
	}
	if n := r.Count(); n != run.Params {
		return f, fmt.Errorf("%d parameters, transformers has %d", n, run.Params)
	}
	return plancompare.Compare(r.Ledger, run).Figures()
}

func levelsFile(t *testing.T) string {
	t.Helper()
	dir, err := plancompare.Folder()
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(dir, "levels.txt")
}

func readLevels(t *testing.T) map[string]plancompare.Level {
	t.Helper()
	data, err := os.ReadFile(levelsFile(t))
	if err != nil {
		t.Fatal(err)
	}
	levels := map[string]plancompare.Level{}
	in := bufio.NewScanner(bytes.NewReader(data))
	for in.Scan() {
		if strings.HasPrefix(in.Text(), "#") {
			continue
		}
		name, level, _ := strings.Cut(in.Text(), " ")
		levels[name] = plancompare.Level(level)
		if !levels[name].Reaches(plancompare.Near) {
			t.Fatalf("levels.txt: %q is no level", in.Text())
		}
	}
	return levels
}

func writeLevels(t *testing.T, names []string, levels map[string]plancompare.Level) {
	t.Helper()
	var b strings.Builder
	b.WriteString("# How well the plan of each recorded run agrees with the recording: every event the same,\n" +
		"# all peaks exact, or near them. go test ./plan/hf -run Recorded -update raises levels, never lowers them.\n")
	for _, n := range names {
		if l, ok := levels[n]; ok {
			fmt.Fprintf(&b, "%s %s\n", n, l)
		}
	}
	if err := os.WriteFile(levelsFile(t), []byte(b.String()), 0o644); err != nil {
		t.Fatal(err)
	}
}
