package stats

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// recording is a recorded memory_stats() with its memory_summary().
type recording struct {
	name    string
	data    []byte
	Stats   map[string]int64 `json:"memory_stats"`
	Summary string           `json:"memory_summary"`
}

func recordings(t testing.TB) []recording {
	files, err := filepath.Glob(filepath.Join("testdata", "*.side.json"))
	if err != nil || len(files) != 13 {
		t.Fatal(files, err)
	}
	var all []recording
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		s := recording{name: filepath.Base(file), data: data}
		if err := json.Unmarshal(data, &s); err != nil {
			t.Fatal(err)
		}
		all = append(all, s)
	}
	return all
}

func TestKeys(t *testing.T) {
	for _, s := range recordings(t) {
		var recorded []string
		for key := range s.Stats {
			recorded = append(recorded, key)
		}
		slices.Sort(recorded)
		if diff := cmp.Diff(recorded, Keys()); diff != "" {
			t.Fatalf("%s: keys differ (-recorded +known):\n%s", s.name, diff)
		}
	}
}

// pprint writes a dict as Python's pprint does for OrderedDict.
func pprint(stats map[string]int64, first, item, next, last string) string {
	var b strings.Builder
	b.WriteString(first)
	for i, key := range Keys() {
		if i > 0 {
			b.WriteString(next)
		}
		fmt.Fprintf(&b, item, key, stats[key])
	}
	return b.String() + last
}

// nested turns flat keys into dicts of dicts.
func nested(stats map[string]int64) map[string]any {
	out := map[string]any{}
	for key, v := range stats {
		at, parts := out, strings.Split(key, ".")
		for _, p := range parts[:len(parts)-1] {
			if at[p] == nil {
				at[p] = map[string]any{}
			}
			at = at[p].(map[string]any)
		}
		at[parts[len(parts)-1]] = v
	}
	return out
}

func pythonRepr(v any) string {
	j, _ := json.Marshal(v)
	return strings.ReplaceAll(strings.ReplaceAll(strings.ReplaceAll(string(j), `"`, `'`), ":", ": "), ",", ", ")
}

// TestForms: every way of writing down a recorded dump reads back to it.
func TestForms(t *testing.T) {
	for _, s := range recordings(t) {
		flat, _ := json.Marshal(s.Stats)
		indented, _ := json.MarshalIndent(s.Stats, "", "    ")
		deep, _ := json.MarshalIndent(nested(s.Stats), "", "  ")
		old := pprint(s.Stats, "OrderedDict([", "('%s', %d)", ",\n             ", "])")
		recent := pprint(s.Stats, "OrderedDict({", "'%s': %d", ", ", "})")
		for _, tt := range []struct{ name, text, source string }{
			{"file", string(s.data), JSON},
			{"flat", string(flat), JSON},
			{"indented", string(indented), JSON},
			{"nested", string(deep), JSON},
			{"windows", strings.ReplaceAll(string(indented), "\n", "\r\n"), JSON},
			{"old OrderedDict", old, Python},
			{"one line", strings.ReplaceAll(old, "\n             ", " "), Python},
			{"OrderedDict", recent, Python},
			{"with its module", "collections." + recent, Python},
			{"dict", pprint(s.Stats, "{", "'%s': %d", ",\n ", "}"), Python},
			{"nested dict", pythonRepr(nested(s.Stats)), Python},
			{"items", pprint(s.Stats, "[", "('%s', %d)", ", ", "]"), Python},
			{"dict_items", pprint(s.Stats, "dict_items([", "('%s', %d)", ", ", "])"), Python},
			{"trailing comma", pprint(s.Stats, "{", "'%s': %d", ",", ",}"), Python},
			{"in a log", "step 7 [loss=2.3] {lr: 1e-4}\nOOM! {oops\n" + recent + "\nTraceback (most recent call last): {\n", Python},
			{"in a session", ">>> torch.cuda.memory_stats()\n" + old + "\n>>> ", Python},
			{"every line prefixed", "[rank3]: " + strings.ReplaceAll(old, "\n", "\n[rank3]: "), Python},
			{"server's log", "(Worker pid=7) INFO 05-01 14:39:06 [w.py:1] " + strings.ReplaceAll(old, "\n", "\n(Worker pid=7) INFO 05-01 14:39:06 [w.py:1] "), Python},
			{"floats", pprint(s.Stats, "{", `"%s": %d.0`, ", ", "}"), JSON},
			{"logged as metrics", pprint(s.Stats, "{", `"DeviceStatsMonitor.on_train_batch_start/%s": %d`, ", ", "}"), JSON},
			{"quoted", "> " + strings.ReplaceAll(string(indented), "\n", "\n> "), JSON},
			{"inside an object that is none", "Result(a=<object at 0x7f>, stats=" + recent + ")", Python},
		} {
			d, err := Parse([]byte(tt.text))
			if err != nil {
				t.Errorf("%s, %s: %v", s.name, tt.name, err)
				continue
			}
			if diff := cmp.Diff(s.Stats, d.Values); diff != "" {
				t.Errorf("%s, %s (-recorded +read):\n%s", s.name, tt.name, diff)
			}
			if !d.Exact || len(d.Ranges) != 0 || len(d.Missing) != 0 || len(d.Unknown) != 0 || d.Source != tt.source {
				t.Errorf("%s, %s: exact %v, %d ranges, missing %v, unknown %v, source %s", s.name, tt.name, d.Exact, len(d.Ranges), d.Missing, d.Unknown, d.Source)
			}
		}
	}
}

// TestBrokenByTerminal: copied from a terminal that broke the lines anywhere,
// inside keys and numbers too.
func TestBrokenByTerminal(t *testing.T) {
	s := recordings(t)[0]
	text := strings.ReplaceAll(pprint(s.Stats, "OrderedDict([", "('%s', %d)", ", ", "])"), "\n", "")
	for width := 40; width < 140; width += 3 {
		var b strings.Builder
		for i := 0; i < len(text); i += width {
			b.WriteString(text[i:min(len(text), i+width)] + "\n")
		}
		d, err := Parse([]byte(b.String()))
		if err != nil {
			t.Fatalf("width %d: %v", width, err)
		}
		if diff := cmp.Diff(s.Stats, d.Values); diff != "" {
			t.Fatalf("width %d:\n%s", width, diff)
		}
	}
}

// TestSummaries: the recorded tables, against the recorded numbers.
func TestSummaries(t *testing.T) {
	for _, s := range recordings(t) {
		for name, text := range map[string]string{
			"plain": s.Summary, "log": "Memory status:\n" + s.Summary + "\ndone\n", "same line": "Memory summary: " + s.Summary,
			"prefixed": "[rank0]: " + strings.ReplaceAll(s.Summary, "\n", "\n[rank0]: "), "windows": strings.ReplaceAll(s.Summary, "\n", "\r\n"),
			"quoted": "> " + strings.ReplaceAll(s.Summary, "\n", "\n> "), "JSON": pythonString(s.Summary),
			"compose": "worker-1  | " + strings.ReplaceAll(s.Summary, "\n", "\nworker-1  | "),
		} {
			d, err := Parse([]byte(text))
			if err != nil {
				t.Fatalf("%s, %s: %v", s.name, name, err)
			}
			if d.Exact || d.Source != Summary || d.Device != 0 {
				t.Errorf("%s, %s: exact %v, source %s, device %d", s.name, name, d.Exact, d.Source, d.Device)
			}
			want := []string{"max_split_size", "num_device_alloc", "num_device_free", "num_sync_all_streams"}
			if diff := cmp.Diff(want, d.Missing); diff != "" {
				t.Errorf("%s, %s: missing:\n%s", s.name, name, diff)
			}
			compare(t, s, d)
		}
	}
}

// compare checks that the recorded numbers are in the ranges.
func compare(t *testing.T, s recording, d *Dump) {
	t.Helper()
	for key, v := range d.Values {
		r, rounded := d.Ranges[key]
		switch {
		case !rounded && v != s.Stats[key]:
			t.Errorf("%s: %s is %d, read as %d", s.name, key, s.Stats[key], v)
		case rounded && (!r.Contains(uint64(s.Stats[key])) || r.Mid != uint64(v) || r.Exact()):
			t.Errorf("%s: %s is %d, read as %d of %+v", s.name, key, s.Stats[key], v, r)
		}
	}
}

func pythonString(s string) string {
	j, _ := json.Marshal(map[string]string{"memory_summary": s})
	return string(j)
}
