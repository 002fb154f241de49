package main

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const sessionStart = "```console\n$ ashlar "

var updateDocs = flag.Bool("update-docs", false, "rewrite the sessions in docs/explain.md, docs/ci.md and docs/plan.md")

// The sessions in the documentation are what the program prints. The README's are
// shortened: TestShortenedSessions.
func TestDocumentedSessions(t *testing.T) {
	t.Chdir("../..")
	for file, want := range map[string]struct{ sessions, status int }{
		"docs/explain.md": {3, exitOK},
		"docs/ci.md":      {1, exitOK},
		"docs/plan.md":    {1, exitBad}, // it does not fit
	} {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		parts := strings.Split(string(raw), sessionStart)
		n := 0
		for i, p := range parts[1:] {
			command, printed, after := session(t, file, p)
			if printed == "" || strings.HasPrefix(printed, "$ ") {
				continue // commands alone
			}
			n++
			out := printedBy(t, command, want.status)
			if out != printed && !*updateDocs {
				t.Errorf("ashlar %s prints something else than %s has (go test ./cmd/ashlar -run Documented -update-docs):\n%s", command, file, out)
			}
			parts[i+1] = command + "\n" + out + "```\n" + after
		}
		if n != want.sessions {
			t.Errorf("%s: %d sessions, want %d", file, n, want.sessions)
		}
		if *updateDocs {
			if err := os.WriteFile(file, []byte(strings.Join(parts, sessionStart)), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// session takes what follows a sessionStart apart.
func session(t *testing.T, file, text string) (command, printed, after string) {
	t.Helper()
	command, rest, _ := strings.Cut(text, "\n")
	printed, after, ok := strings.Cut(rest, "```\n")
	if !ok {
		t.Fatalf("%s: the session of %q has no end", file, command)
	}
	return command, printed, after
}

// printedBy returns what a command line prints; it ends with one of the statuses.
func printedBy(t *testing.T, command string, statuses ...int) string {
	t.Helper()
	var out, errs bytes.Buffer
	code := execute(context.Background(), stdio{in: strings.NewReader(""), out: &out, err: &errs}, strings.Fields(command))
	if !slices.Contains(statuses, code) || errs.Len() > 0 {
		t.Fatalf("%s: exit status %d, %s", command, code, errs.String())
	}
	return out.String()
}

// The README's sessions are what the program prints, with lines left out where it
// has three dots.
func TestShortenedSessions(t *testing.T) {
	t.Chdir("../..")
	raw, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	recordings := 0
	for _, g := range []string{"snapshots/*.pickle.gz", "fresh/*.pickle.gz", "variety/*.pickle.gz", "oracle/*.json.gz"} {
		files, _ := filepath.Glob("testdata/" + g)
		recordings += len(files)
	}
	if !strings.Contains(string(raw), fmt.Sprintf("On %d recordings", recordings)) {
		t.Errorf("the README does not count %d recordings", recordings)
	}
	sessions := strings.Split(string(raw), sessionStart)[1:]
	statuses := []int{exitOK, exitBad, exitBad} // explain, plan, check
	if len(sessions) != len(statuses) {
		t.Fatalf("%d sessions, want %d", len(sessions), len(statuses))
	}
	for i, s := range sessions {
		command, want, _ := session(t, "README.md", s)
		if out := printedBy(t, command, statuses[i]); !shortened(out, want) {
			t.Errorf("ashlar %s prints something else than the README has:\n%s", command, out)
		}
	}
}

// shortened reports whether short is the text with whole lines left out, each
// stretch of them marked by a line of three dots.
func shortened(text, short string) bool {
	pieces := strings.Split("\n"+short, "\n...\n")
	for i, p := range pieces {
		if i < len(pieces)-1 {
			p += "\n"
		}
		before, after, found := strings.Cut("\n"+text, "\n"+strings.TrimPrefix(p, "\n"))
		if !found || i == 0 && before != "" {
			return false
		}
		text = after
	}
	return text == "" || strings.HasSuffix(short, "...\n")
}

func TestShortened(t *testing.T) {
	const text = "one\ntwo\nthree\n"
	for short, want := range map[string]bool{
		text:                     true,
		"one\n...\n":             true,
		"...\nthree\n":           true,
		"one\n...\nthree\n":      true,
		"...\ntwo\n...\n":        true,
		"one\nthree\n":           false,
		"two\nthree\n":           false,
		"one\ntwo\n":             false,
		"...\nwo\n...\n":         false,
		"...\nthree\n...\none\n": false,
	} {
		if got := shortened(text, short); got != want {
			t.Errorf("%q: %v, want %v", short, got, want)
		}
	}
}
