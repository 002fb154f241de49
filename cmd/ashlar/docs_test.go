package main

import (
	"bytes"
	"context"
	"flag"
	"os"
	"strings"
	"testing"
)

var updateDocs = flag.Bool("update-docs", false, "rewrite the sessions in docs/explain.md and docs/plan.md")

// The sessions in the documentation are what the program prints.
func TestDocumentedSessions(t *testing.T) {
	t.Chdir("../..")
	for file, want := range map[string]struct{ sessions, status int }{
		"docs/explain.md": {3, exitOK},
		"docs/plan.md":    {1, exitBad}, // it does not fit
	} {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		const begin = "```console\n$ ashlar "
		parts := strings.Split(string(raw), begin)
		n := 0
		for i, p := range parts[1:] {
			command, rest, _ := strings.Cut(p, "\n")
			printed, after, ok := strings.Cut(rest, "```\n")
			if !ok {
				t.Fatalf("%s: the session of %q has no end", file, command)
			}
			if printed == "" || strings.HasPrefix(printed, "$ ") {
				continue // commands alone
			}
			n++
			var out, errs bytes.Buffer
			if code := execute(context.Background(), stdio{in: strings.NewReader(""), out: &out, err: &errs}, strings.Fields(command)); code != want.status || errs.Len() > 0 {
				t.Fatalf("%s: exit status %d, %s", command, code, errs.String())
			}
			if out.String() != printed && !*updateDocs {
				t.Errorf("ashlar %s prints something else than %s has (go test ./cmd/ashlar -run Documented -update-docs):\n%s", command, file, out.String())
			}
			parts[i+1] = command + "\n" + out.String() + "```\n" + after
		}
		if n != want.sessions {
			t.Errorf("%s: %d sessions, want %d", file, n, want.sessions)
		}
		if *updateDocs {
			if err := os.WriteFile(file, []byte(strings.Join(parts, begin)), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
}
