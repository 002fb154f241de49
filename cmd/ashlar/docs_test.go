package main

import (
	"bytes"
	"context"
	"flag"
	"os"
	"strings"
	"testing"
)

var updateDocs = flag.Bool("update-docs", false, "rewrite the sessions in docs/explain.md")

// The sessions in the documentation are what the program prints.
func TestDocumentedSessions(t *testing.T) {
	const file = "../../docs/explain.md"
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir("../..")
	parts := strings.Split(string(raw), "```console\n$ ashlar ")
	if len(parts) != 4 {
		t.Fatalf("%d sessions, want 3", len(parts)-1)
	}
	for i, p := range parts[1:] {
		command, rest, _ := strings.Cut(p, "\n")
		want, after, ok := strings.Cut(rest, "```\n")
		if !ok {
			t.Fatalf("the session of %q has no end", command)
		}
		var out, errs bytes.Buffer
		if code := run(context.Background(), stdio{in: strings.NewReader(""), out: &out, err: &errs}, strings.Fields(command)); code != 0 {
			t.Fatalf("%s: exit status %d, %s", command, code, errs.String())
		}
		if out.String() != want && !*updateDocs {
			t.Errorf("ashlar %s prints something else than docs/explain.md has (go test ./cmd/ashlar -run Documented -update-docs):\n%s", command, out.String())
		}
		parts[i+1] = command + "\n" + out.String() + "```\n" + after
	}
	if *updateDocs {
		if err := os.WriteFile("docs/explain.md", []byte(strings.Join(parts, "```console\n$ ashlar ")), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}
