package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// What --interactive does not take is refused before anything is written.
func TestInteractiveRefuses(t *testing.T) {
	const snapshot = "../../testdata/variety/graphs.pickle.gz"
	out := filepath.Join(t.TempDir(), "page.html")
	text := filepath.Join(t.TempDir(), "oom.txt")
	message := "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 79.19 GiB of which 1.00 GiB is free.\n"
	if err := os.WriteFile(text, []byte(message), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{snapshot, "-o", out, "--limit", "1GiB"}, "--limit: a page with --interactive holds FILE alone"},
		{[]string{snapshot, "-o", out, "--set", "max_split_size_mb:64"}, "--set: a page"},
		{[]string{snapshot, "-o", "-", "--json"}, "both want standard output"},
		{[]string{snapshot, "-o", snapshot}, "is the same file as FILE"},
		{[]string{text, "-o", out}, "--interactive needs a memory snapshot"},
		{nil, "a page without a FILE has no name"},
		{[]string{"-o", out, "--json"}, "give a FILE"},
		{[]string{snapshot, snapshot}, "takes one FILE"},
	} {
		var errs bytes.Buffer
		args := append([]string{"report", "--interactive"}, c.args...)
		code := execute(t.Context(), stdio{in: strings.NewReader(""), out: new(bytes.Buffer), err: &errs}, args)
		if code != 2 || !strings.Contains(errs.String(), c.want) {
			t.Errorf("%v: status %d, %q, not %q", args, code, errs.String(), c.want)
		}
	}
	if _, err := os.Stat(out); err == nil {
		t.Error("a page was written")
	}
}
