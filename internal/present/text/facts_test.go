package text

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/ashlar-mem/ashlar/internal/answer/stats"
	"github.com/ashlar-mem/ashlar/internal/input"
	"github.com/ashlar-mem/ashlar/internal/test/short"
	"github.com/ashlar-mem/ashlar/snapshot"
	"github.com/ashlar-mem/ashlar/trace"
)

func snapshotText(t *testing.T, path string, change func(*snapshot.File), style Style) string {
	t.Helper()
	f, err := snapshot.Open(t.Context(), path, snapshot.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if change != nil {
		change(f)
	}
	s, err := stats.NewSnapshot(t.Context(), f, stats.Options{Device: input.AnyDevice, FileBytes: 123456, Writer: "Python (protocol 4)"})
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	if err := Snapshot(&b, filepath.Base(path), s, style); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// Whatever a file is like, what is said about it fits on 80 columns.
func TestSnapshotFitsOn80Columns(t *testing.T) {
	files, err := filepath.Glob("../../../testdata/variety/*.pickle.gz")
	if err != nil || len(files) < 10 {
		t.Fatalf("%v, %v", files, err)
	}
	files = append(files, "../../../testdata/snapshots/streams_graphs-tight-default.pickle.gz", "../../../testdata/snapshots/moe_train-tight-default.pickle.gz")
	for _, file := range short.Files(t, files, 5) {
		text := snapshotText(t, file, nil, Style{Width: 80})
		for line := range strings.Lines(text) {
			line = strings.TrimSuffix(line, "\n")
			if width(line) > 80 || strings.TrimRight(line, " ") != line {
				t.Errorf("%s: %d wide: %q", file, width(line), line)
			}
		}
		for _, part := range []string{"Memory", "Fragmentation", "Segments", "Who holds it"} {
			if !strings.Contains(text, "\n"+part) {
				t.Errorf("%s: no %q in\n%s", file, part, text)
			}
		}
	}
}

// A file cannot send sequences to the terminal.
func TestTextOfTheFileIsCleaned(t *testing.T) {
	text := snapshotText(t, "../../../testdata/variety/graphs.pickle.gz", func(f *snapshot.File) {
		tr := f.Traces[0]
		evil := tr.Strings.Add("\x1b]0;owned\x07\n")
		stack := tr.Stacks.Add([]trace.FrameID{tr.Stacks.AddFrame(trace.Frame{Name: evil, File: evil, Line: 1})})
		for i := range tr.Segments {
			tr.Segments[i].Type = "\x1b[2J"
			for j := range tr.Segments[i].Blocks {
				tr.Segments[i].Blocks[j].Stack = stack
			}
		}
		at := tr.Events.Time.At(0)
		tr.Annotations = append(tr.Annotations, trace.Annotation{Begin: true, Name: evil, Time: at})
	}, Style{})
	if i := strings.IndexAny(text, "\x1b\x07"); i >= 0 {
		t.Errorf("%q", text[max(0, i-40):min(len(text), i+40)])
	}
	if !strings.Contains(text, "owned") {
		t.Errorf("nothing of the names is left:\n%s", text)
	}
}

func TestStyle(t *testing.T) {
	const file = "../../../testdata/variety/graphs.pickle.gz"
	plain, bold := snapshotText(t, file, nil, Style{}), snapshotText(t, file, nil, Style{Bold: true})
	if strings.Contains(plain, "\x1b") || !strings.Contains(bold, "\n\x1b[1mMemory\x1b[0m ") {
		t.Errorf("plain:\n%s\nbold:\n%s", plain, bold)
	}
	if undressed := strings.NewReplacer("\x1b[1m", "", "\x1b[0m", "").Replace(bold); undressed != plain {
		t.Errorf("the words differ:\n%s", undressed)
	}
}

func TestCut(t *testing.T) {
	for _, tt := range []struct {
		text string
		n    int
		want string
	}{{"abc", 3, "abc"}, {"abcd", 3, "..."}, {"äöüßen", 5, "äö..."}, {"abc", 0, "..."}} {
		if got := cut(tt.text, tt.n); got != tt.want {
			t.Errorf("%q to %d: %q", tt.text, tt.n, got)
		}
	}
}
