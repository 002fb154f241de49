package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// contradictory writes a snapshot with a segment whose allocated_size is wrong.
func contradictory(t *testing.T) (file, told string) {
	t.Helper()
	file = filepath.Join(t.TempDir(), "a.json")
	if code := execute(t.Context(), stdio{out: &bytes.Buffer{}, err: &bytes.Buffer{}}, []string{"convert", graphs, file}); code != exitOK {
		t.Fatalf("convert: status %d", code)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	size := regexp.MustCompile(`"allocated_size": ?\d+`).FindIndex(text)
	if size == nil {
		t.Fatal("no allocated_size")
	}
	text = slices.Concat(text[:size[0]], []byte(`"allocated_size": 512512`), text[size[1]:])
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return file, "segments have another allocated_size than their blocks"
}

// contradictionsIn collects what a document has under "contradictions", anywhere.
func contradictionsIn(v any) string {
	var all []string
	switch v := v.(type) {
	case map[string]any:
		for key, x := range v {
			if key == "contradictions" {
				all = append(all, fmt.Sprint(x))
			}
			all = append(all, contradictionsIn(x))
		}
	case []any:
		for _, x := range v {
			all = append(all, contradictionsIn(x))
		}
	}
	return strings.Join(all, "")
}

// Every JSON document that comes from a snapshot says what is wrong with it.
func TestContradictions(t *testing.T) {
	const dry = "../../testdata/dry/mlp.dry"
	file, told := contradictory(t)
	page := filepath.Join(t.TempDir(), "page.html")
	tests := [][]string{
		{"stats", file},
		{"events", file, "--limit", "1"},
		{"explain", file},
		{"explain", file, graphs},
		{"whatif", file, "--set", "expandable_segments:True"},
		{"policies", file, "--policy", "caching"},
		{"tune", file, "--limit", "1GiB"},
		{"tenants", "--limit", "1GiB", "--tenant", "a=" + file, "--against", "none"},
		{"report", file, "-o", page},
		{"report", file, "-o", page, "--interactive"},
		{"check", file, "--max-reserved", "1GiB"},
		{"diff", file, graphs},
		{"diff", graphs, file},
		{"diff", file, "--at", "peak", "--at", "end"},
		{"diff", graphs, file, graphs},
		{"verify", file},
		{"plan", "../../testdata/plan/llama-1b.json", "--batch", "1", "--seq", "64", "--against", file},
		{"dry", dry, "--against", file},
	}
	for _, args := range tests {
		t.Run(strings.Join(args, " "), func(t *testing.T) {
			var stdout, stderr bytes.Buffer
			code := execute(t.Context(), stdio{out: &stdout, err: &stderr}, append(args, "--json"))
			if strings.Contains(stderr.String(), "built without the engine") {
				t.Skip("needs make engine")
			}
			var document any
			if err := json.Unmarshal(stdout.Bytes(), &document); err != nil {
				t.Fatalf("status %d, %v, %s", code, err, &stderr)
			}
			if got := contradictionsIn(document); !strings.Contains(got, told) {
				t.Errorf("status %d, contradictions %q, %s", code, got, &stderr)
			}
		})
	}
	for _, c := range newRoot(stdio{}).Commands() {
		tested := slices.ContainsFunc(tests, func(args []string) bool { return args[0] == c.Name() })
		if c.Flags().Lookup("json") != nil && !tested && !slices.Contains([]string{"gpu", "version", "watch"}, c.Name()) {
			t.Errorf("%s is not tested", c.Name())
		}
	}
}
