package main

import (
	"bytes"
	"os"
	"strings"
	"testing"
)

// The sessions in docs/plan.md are what the program prints.
func TestPlanDocumented(t *testing.T) {
	const start = "```console\n$ ashlar plan testdata/"
	raw, err := os.ReadFile("../../docs/plan.md")
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir("../..")
	parts := strings.Split(string(raw), start)
	if len(parts) != 2 {
		t.Fatalf("%d sessions, want 1", len(parts)-1)
	}
	command, rest, _ := strings.Cut(parts[1], "\n")
	want, after, ok := strings.Cut(rest, "```\n")
	if !ok {
		t.Fatalf("the session of %q has no end", command)
	}
	var out, errs bytes.Buffer
	code := run(t.Context(), stdio{in: strings.NewReader(""), out: &out, err: &errs}, append([]string{"plan"}, strings.Fields("testdata/"+command)...))
	if code != exitBad || errs.Len() > 0 {
		t.Fatalf("exit status %d, %s", code, errs.String())
	}
	if out.String() == want {
		return
	}
	if !*updateDocs {
		t.Errorf("ashlar plan testdata/%s prints something else than docs/plan.md has (go test ./cmd/ashlar -run PlanDocumented -update-docs):\n%s", command, out.String())
		return
	}
	if err := os.WriteFile("docs/plan.md", []byte(parts[0]+start+command+"\n"+out.String()+"```\n"+after), 0o644); err != nil {
		t.Fatal(err)
	}
}
