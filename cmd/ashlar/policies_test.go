package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const streams = "../../testdata/snapshots/streams_graphs-default.pickle.gz"

func TestPoliciesCommand(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
		return path
	}
	problem := write("p.csv", "id,lower,upper,size\n0,0,5,100\n1,2,9,50\n2,5,7,100\n")
	broken := write("broken.csv", "id,lower,upper,size\n0,0,5,100\n1,9,2,50\n")
	access := write("access", `{"event": 1, "addr": 5, "bytes": 3, "write": true}`)
	for _, tt := range []struct {
		args   []string
		stdin  string
		code   int
		stdout []string
		stderr string
	}{
		{args: []string{streams, "--policy", "best-fit,lower-bound"}, stdout: []string{"the model reproduces 558 of 558", "best-fit", "lower-bound", "live at most 239.54 MiB"}},
		{args: []string{streams, "--policy", "buddy", "--set", "max_split_size_mb:64", "--limit", "100MiB"}, stdout: []string{"buddy", "caching:max_split_size_mb:64", "What fails first"}},
		{args: []string{streams, "--policy", "bfc", "--json", "--curve", "3"}, stdout: []string{`"policy": "bfc"`, `"lower_bound_bytes"`, `"given_bytes"`, `"self_check"`}},
		{args: []string{problem, "--policy", "best-fit,arena"}, stdout: []string{"a placement problem of 3 buffers", "1.000", "arena: not answered"}},
		{args: []string{"-", "--policy", "static-plan", "--json"}, stdin: "id,lower,upper,size\n0,0,5,100\n", stdout: []string{`"self_check": null`, `"kind": "oracle"`}},
		{args: []string{streams, "--policy", "bestfit"}, code: 2, stderr: `--policy: unknown policy "bestfit" (did you mean best-fit?); there are caching, expandable, best-fit`},
		{args: []string{streams, "--policy", "async:x"}, code: 2, stderr: "the release threshold is max or a size"},
		{args: []string{broken}, code: 2, stderr: "broken.csv: line 3: upper 2 is not after lower 9"},
		{args: []string{streams, "--policy", "managed", "--access", access}, code: 2, stderr: "line 1: no block that is live at event 1"},
		{args: []string{problem, "--access", access}, code: 2, stderr: "which nobody accesses"},
		{args: []string{streams, "--costs", access}, code: 2, stderr: "no times of managed memory"},
		{args: []string{streams, "--budget", "0s"}, code: 2, stderr: "--budget is 0s"},
		{args: []string{streams, "--curve", "5"}, code: 2, stderr: "--curve is for --json"},
		{args: []string{filepath.Join(dir, "none.csv")}, code: 2, stderr: "none.csv"},
	} {
		var stdout, stderr bytes.Buffer
		code := execute(t.Context(), stdio{in: strings.NewReader(tt.stdin), out: &stdout, err: &stderr}, append([]string{"policies"}, tt.args...))
		if code != tt.code || !strings.Contains(stderr.String(), tt.stderr) || tt.code == 2 && strings.Count(stderr.String(), "\n") != 1 {
			t.Errorf("%v: status %d, stderr %q", tt.args, code, &stderr)
		}
		for _, want := range tt.stdout {
			if !strings.Contains(stdout.String(), want) {
				t.Errorf("%v: no %q in %s", tt.args, want, &stdout)
			}
		}
	}
}
