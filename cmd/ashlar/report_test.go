package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/ashlar-mem/ashlar/internal/present/html"
	"github.com/ashlar-mem/ashlar/internal/test/short"
)

// numbersOf reads the exact numbers of a report by what they are.
func numbersOf(html string) map[string][]float64 {
	out := map[string][]float64{}
	for _, m := range regexp.MustCompile(`<data value="(\d+)" data-field="([^"]+)">`).FindAllStringSubmatch(html, -1) {
		n, _ := strconv.ParseFloat(m[1], 64) // the pattern has digits only
		out[m[2]] = append(out[m[2]], n)
	}
	return out
}

// at finds a value of a document by its dotted path.
func lookup(doc any, path string) any {
	for name := range strings.SplitSeq(path, ".") {
		switch v := doc.(type) {
		case map[string]any:
			doc = v[name]
		case []any:
			i, err := strconv.Atoi(name)
			if err != nil || i >= len(v) {
				return nil
			}
			doc = v[i]
		default:
			return nil
		}
	}
	return doc
}

func commandOutput(t *testing.T, args ...string) []byte {
	t.Helper()
	var out, errs bytes.Buffer
	if code := execute(t.Context(), stdio{in: strings.NewReader(""), out: &out, err: &errs}, args); code != exitOK {
		t.Fatalf("ashlar %v: status %d, %s", args, code, &errs)
	}
	return out.Bytes()
}

func document(t *testing.T, args ...string) any {
	t.Helper()
	var doc any
	if err := json.Unmarshal(commandOutput(t, append(args, "--json")...), &doc); err != nil {
		t.Fatal(err)
	}
	return doc
}

// The numbers of a report are those of explain, whatif and stats.
func TestReportNumbers(t *testing.T) {
	const tight = "../../testdata/snapshots/gpt2_fixed-tight-default.pickle.gz"
	for _, c := range short.Some([]struct {
		name string
		file string
		args []string
	}{
		{"limit given", tight, []string{"--limit", "7609MiB"}},
		{"limit inferred", tight, nil},
		{"healthy", "../../testdata/snapshots/leak_graph-default.pickle.gz", nil},
		{"pools", "../../testdata/snapshots/streams_graphs-tight-default.pickle.gz", []string{"--limit", "273MiB"}},
		{"settings", "../../testdata/variety/expand_tight.pickle.gz", nil},
	}, 2) {
		t.Run(c.name, func(t *testing.T) {
			args := append([]string{c.file}, c.args...)
			html := string(commandOutput(t, append([]string{"report", "-o", "-", "--set", "max_split_size_mb:64"}, args...)...))
			got := numbersOf(html)
			explained := document(t, append([]string{"explain"}, args...)...)
			stats := lookup(document(t, "stats", c.file), "snapshot")
			check := func(field string, want any) {
				t.Helper()
				n, known := want.(float64)
				for _, g := range got[field] {
					if !known || g != n {
						t.Errorf("%s is %.0f in the report, else %v", field, g, want)
					}
				}
				if known && len(got[field]) == 0 {
					t.Errorf("%s is not in the report, else %v", field, want)
				}
			}
			if cause := fmt.Sprintf(`data-cause="%v" data-confidence="%v"`, lookup(explained, "cause"), lookup(explained, "cause_confidence")); !strings.Contains(html, cause) {
				t.Errorf("the report has no %s", cause)
			}
			failed := lookup(explained, "failure") != nil
			for _, field := range []string{"evidence.live_bytes", "evidence.request_bytes", "evidence.largest_free_bytes", "limit.max_bytes"} {
				if failed {
					check(field, lookup(explained, field))
				}
			}
			for _, field := range []string{"reserved.peak_bytes", "reserved.now_bytes", "allocated.peak_bytes", "allocated.now_bytes", "requested.peak_bytes"} {
				check("memory."+field, lookup(stats, "memory."+field))
			}
			if failed {
				check("segments.allocated_bytes", lookup(stats, "oom_events.0.allocated_bytes"))
				check("segments.largest_free_bytes", lookup(stats, "oom_events.0.largest_free_bytes"))
				check("segments.reserved_bytes", lookup(stats, "oom_events.0.reserved_bytes"))
			} else {
				check("segments.allocated_bytes", lookup(stats, "memory.allocated.peak_bytes"))
			}
			for i := range min(12, len(lookup(explained, "holders").([]any))) {
				check(fmt.Sprintf("holders.%d", i), lookup(explained, fmt.Sprintf("holders.%d.bytes", i)))
			}
			for i := range lookup(explained, "categories").([]any) {
				name := lookup(explained, fmt.Sprintf("categories.%d.category", i)).(string)
				check("categories."+name, lookup(explained, fmt.Sprintf("categories.%d.bytes", i)))
			}
			checkReportWhatif(t, html, got, args)
		})
	}
}

// checkReportWhatif asks whatif for the settings of the report's table.
func checkReportWhatif(t *testing.T, html string, got map[string][]float64, args []string) {
	t.Helper()
	_, table, _ := strings.Cut(html, `<table class="wide tried">`)
	table, _, _ = strings.Cut(table, "</table>")
	ask := append([]string{"whatif"}, args...)
	outcomes := regexp.MustCompile(`(?s)<th scope="row">(.*?)</th><td class="(fails|passes)">`).FindAllStringSubmatch(table, -1)
	for _, o := range outcomes[1:] { // the recorded ones come first
		conf := regexp.MustCompile(`<[^>]*>`).ReplaceAllString(o[1], "")
		if conf == "PyTorch&#39;s defaults" {
			conf = ""
		}
		ask = append(ask, "--set", conf)
	}
	doc := document(t, ask...)
	results := lookup(doc, "results").([]any)
	if len(results) != len(outcomes) || len(results) < 7 {
		t.Fatalf("%d settings in the report, %d by whatif", len(outcomes), len(results))
	}
	for i := range results {
		for _, field := range []string{"peak_reserved_bytes", "peak_allocated_bytes"} {
			if want := lookup(results[i], field); got["whatif."+field][i] != want {
				t.Errorf("%v: %s is %.0f, by whatif %v", lookup(results[i], "settings"), field, got["whatif."+field][i], want)
			}
		}
		if fails := outcomes[i][2] == "fails"; fails != lookup(results[i], "fails") {
			t.Errorf("%v: fails %v, by whatif %v", lookup(results[i], "settings"), fails, lookup(results[i], "fails"))
		}
	}
}

// A long run makes no long report.
func TestReportOfLongRun(t *testing.T) {
	short.Skip(t)
	out := filepath.Join(t.TempDir(), "report.html")
	doc := document(t, "report", "../../testdata/snapshots/serve_generate-tight-default.pickle.gz", "-o", out)
	info, err := os.Stat(out)
	if err != nil {
		t.Fatal(err)
	}
	if n := lookup(doc, "report_bytes"); n != float64(info.Size()) || info.Size() > html.MaxBytes/10 {
		t.Errorf("the report of 373,685 events has %d bytes, it says %v", info.Size(), n)
	}
	if lookup(doc, "cause") != "fragmentation" || lookup(doc, "report") != out || lookup(doc, "device") != 0.0 {
		t.Errorf("%v", doc)
	}
}
