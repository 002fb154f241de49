package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ashlar-mem/ashlar/internal/answer"
)

// hostileNames are names that a file may have, and how a refusal shows them.
var hostileNames = map[string]string{
	"\nfoo":                "?foo",
	"no\nsuch":             "no?such",
	"end\n":                "end?",
	"a\r\x1b]0;b\u202ec":   "a??]0;b?c",
	"fine\nashlar: forged": "fine?ashlar: forged",
}

// A refusal is one whole line, whatever is in the name of a file.
func TestRefusalsAreOneLine(t *testing.T) {
	dir := t.TempDir()
	for name, shown := range hostileNames {
		for _, c := range []struct {
			args []string // NAME is the name
			want string   // SHOWN is how it is shown
		}{
			{[]string{"report", "NAME"}, "SHOWN: no such file; check the name"},
			{[]string{"explain", "NAME"}, "SHOWN: no such file; check the name"},
			{[]string{"diff", "NAME", "NAME"}, "SHOWN: no such file; check the name"},
			{[]string{"verify", "NAME"}, "SHOWN: no such file; check the name"},
			{[]string{"check", "NAME", "--max-reserved", "1GiB"}, "SHOWN: no such file; check the name"},
			{[]string{"plan", "../../testdata/plan/llama-1b.json", "--batch", "1", "--seq", "128", "--weights", "NAME"}, "checkpoint: stat SHOWN: no such file or directory"},
			{[]string{"convert", graphs, dir + "/NAME/out.json"}, dir + "/SHOWN/out.json cannot be written: no such file or directory"},
			{[]string{"convert", graphs, "NAME.json/"}, "SHOWN.json/: the ending "},
			{[]string{"stats", "--NAME"}, "unknown flag: --SHOWN; see ashlar stats --help"},
		} {
			args, want := make([]string, len(c.args)), strings.ReplaceAll(c.want, "SHOWN", shown)
			for i, a := range c.args {
				args[i] = strings.ReplaceAll(a, "NAME", name)
			}
			var stdout, stderr bytes.Buffer
			code := execute(t.Context(), stdio{out: &stdout, err: &stderr}, args)
			if line := stderr.String(); code != exitInput || !strings.HasPrefix(line, "ashlar: "+want) || strings.Count(line, "\n") != 1 {
				t.Errorf("%q: status %d, %q, want %q", args, code, line, want)
			}
		}

		var stdout, stderr bytes.Buffer
		execute(t.Context(), stdio{out: &stdout, err: &stderr}, []string{"stats", "--json", name})
		var d answer.Error
		if err := json.Unmarshal(stdout.Bytes(), &d); err != nil || d.Error != shown+": no such file; check the name" || d.Where == nil || *d.Where != shown {
			t.Errorf("%q: %v, %s", name, err, &stdout)
		}
	}
}

// An empty name, as a variable that is not set gives, is named as such.
func TestEmptyName(t *testing.T) {
	for _, args := range [][]string{{"explain", ""}, {"diff", "", ""}, {"verify", ""}, {"plan", ""}, {"policies", ""}, {"convert", graphs, ""}, {"view", ""}, {"dry", ""}} {
		var stdout, stderr bytes.Buffer
		code := execute(t.Context(), stdio{out: &stdout, err: &stderr}, args)
		if line := stderr.String(); code != exitInput || !strings.Contains(line, "is empty; check the variable") || strings.Count(line, "\n") != 1 {
			t.Errorf("%q: status %d, %q", args, code, line)
		}
	}
}

// What is said of a file that is there is on its line, too.
func TestNotesAreOneLine(t *testing.T) {
	dir := t.TempDir()
	for name := range hostileNames {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("nothing"), 0o600); err != nil {
			t.Skip(err)
		}
	}
	var stdout, stderr bytes.Buffer
	code := execute(t.Context(), stdio{out: &stdout, err: &stderr}, []string{"diff", dir})
	lines := strings.Split(strings.TrimSuffix(stderr.String(), "\n"), "\n")
	if code != exitInput || len(lines) != len(hostileNames)+1 {
		t.Errorf("status %d, %q", code, lines)
	}
	for _, l := range lines[:len(lines)-1] {
		if !strings.HasPrefix(l, "ashlar: "+dir) || !strings.HasSuffix(l, "; left out") {
			t.Errorf("%q", l)
		}
	}
}

// An agent gets the same line.
func TestAgentRefusalsAreOneLine(t *testing.T) {
	s := agentOf(t, t.TempDir())
	for name, shown := range hostileNames {
		for file, want := range map[string]string{name: shown + ": no such file; check the name", "../" + name: "../" + shown + ": .. is not followed; "} {
			if document, text := askAgent(t, s, "stats", map[string]any{"file": file}); document != nil || !strings.HasPrefix(text, want) || strings.Contains(text, "\n") {
				t.Errorf("%q: %q, want %q", file, text, want)
			}
		}
	}
}

// Of errors that were joined the first one is said, whole, and what was said around it.
func TestJoinedErrors(t *testing.T) {
	joined := errors.Join(errors.New("a\nb: first"), errors.New("second"))
	for _, c := range []struct {
		err  error
		want string
	}{
		{joined, "a?b: first"},
		{failure{joined}, "a?b: first"},
		{errors.Join(nil, errors.New("only\none")), "only?one"},
		{fmt.Errorf("x: %w; do y", joined), "x: a?b: first; do y"},
		{fmt.Errorf("%w, and %w", errors.New("one"), joined), "one, and a?b: first"},
		{errors.Join(joined, errors.New("third")), "a?b: first"},
		{errors.Join(fmt.Errorf("x: %w", joined), errors.New("third")), "x: a?b: first"},
		{errors.New("tab\tand bad \xff"), "tab?and bad ?"},
	} {
		if got := oneLine(c.err); got != c.want {
			t.Errorf("%q: %q, want %q", c.err, got, c.want)
		}
	}
}
