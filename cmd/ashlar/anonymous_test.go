package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// What is answered about a file without names is what is answered about the file,
// but for the names.
func TestAnonymousAnswers(t *testing.T) {
	commands := []string{"explain --full", "stats", "check", "whatif --set expandable_segments:True --set max_split_size_mb:64"}
	files := []string{
		"variety/profiler", "variety/compile", "variety/cppstacks", "advice/ddp_buckets", "advice/attention_maps", "snapshots/gpt2_fixed-tight-default",
	}
	for _, file := range files {
		original := filepath.Join("../../testdata", file+".pickle.gz")
		hidden := filepath.Join(t.TempDir(), "hidden.pickle")
		printedBy(t, "convert --anonymous "+original+" "+hidden, exitOK)
		words := 0
		for _, command := range commands {
			ask := func(file string) (doc any) {
				name, flags, _ := strings.Cut(command, " ")
				out := printedBy(t, name+" "+file+" --json "+flags, exitOK, exitBad)
				if err := json.Unmarshal([]byte(out), &doc); err != nil {
					t.Fatalf("%s %s: %v: %s", command, file, err, out)
				}
				return doc
			}
			for _, d := range differences("", ask(original), ask(hidden), &words) {
				t.Errorf("%s of %s: %s", command, file, d)
			}
		}
		if words == 0 {
			t.Errorf("%s: no answer has a name", file)
		}
	}
}

// hiddenWord is a word that stands for a name, with what is kept around it.
var hiddenWord = regexp.MustCompile(`(/[a-z-]+/(torch/)?(optim/|_dynamo/)?)?([A-Za-z0-9_:]+::|(\w+-)*)(file|function|range|context|text|node)-[bcdfghjkmnpqrtvw]{12}(\.\w+)?>?`)

// differences lists where two documents differ in more than names. Facts about the
// file itself are left out.
func differences(at string, a, b any, words *int) (all []string) {
	switch x := a.(type) {
	case map[string]any:
		y, _ := b.(map[string]any)
		if len(x) != len(y) {
			return []string{at + ": other fields"}
		}
		for k := range x {
			if !slices.Contains([]string{"file", "file_bytes", "unpacked_bytes", "compression"}, k) {
				all = append(all, differences(at+"."+k, x[k], y[k], words)...)
			}
		}
		return all
	case []any:
		y, _ := b.([]any)
		if len(x) != len(y) {
			return []string{fmt.Sprintf("%s: %d and %d items", at, len(x), len(y))}
		}
		for i := range x {
			all = append(all, differences(fmt.Sprintf("%s[%d]", at, i), x[i], y[i], words)...)
		}
		return all
	case string:
		if y, ok := b.(string); ok && sameButNames(x, y, words) {
			return nil
		}
	}
	if a != b {
		return []string{fmt.Sprintf("%s: %v became %v", at, a, b)}
	}
	return nil
}

func sameButNames(original, hidden string, words *int) bool {
	if original == hidden || strings.HasPrefix(original, "/") && path.Base(original) == path.Base(hidden) {
		return true
	}
	pieces := hiddenWord.Split(hidden, -1)
	if len(pieces) == 1 {
		return false
	}
	*words++
	for i := range pieces {
		pieces[i] = regexp.QuoteMeta(pieces[i])
	}
	return regexp.MustCompile("^(?s:" + strings.Join(pieces, ".+?") + ")$").MatchString(original)
}

// A report is without names, whatever the file is called.
func TestAnonymousReport(t *testing.T) {
	dir := t.TempDir()
	raw, err := os.ReadFile("../../testdata/advice/attention_maps.pickle.gz")
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "secret-project.pickle.gz")
	if err := os.WriteFile(file, raw, 0o644); err != nil {
		t.Fatal(err)
	}
	report := func(flags string) string {
		return printedBy(t, "report "+file+" -o - "+flags, exitOK)
	}
	hidden, plain := report("--anonymous"), report("")
	for _, name := range []string{"secret-project", "attention_maps.py", "linear.py"} {
		if strings.Contains(hidden, name) {
			t.Errorf("the report has %s", name)
		}
		if !strings.Contains(plain, name) {
			t.Errorf("the report with names does not have %s", name)
		}
	}
}
