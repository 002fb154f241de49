package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ashlar-mem/ashlar/internal/test/attack"
	"github.com/ashlar-mem/ashlar/internal/test/short"
)

// A part of make attack, with a fixed seed and a fixed number of inputs. Large inputs are
// left to make attack, which measures time and memory.
func TestAttack(t *testing.T) {
	corpus, err := filepath.Glob("testdata/hostile/*")
	if err != nil {
		t.Fatal(err)
	}
	g, err := attack.New(1, "../..", corpus)
	if err != nil {
		t.Fatal(err)
	}
	g.Small = true
	dir := t.TempDir()
	cases := short.Some(g.Sweep(), 10)
	for range short.Times(200) {
		cases = append(cases, g.Next())
	}
	for _, c := range cases {
		file := filepath.Join(dir, c.Name)
		if err := os.WriteFile(file, c.Data, 0o600); err != nil {
			t.Fatal(err)
		}
		if wrong := c.Judge(runAttack(t, c.Commands[0], file, g.Good)); len(wrong) > 0 {
			t.Errorf("%s: %s: %q", c.What, c.Commands[0], wrong)
		}
	}
}

func runAttack(t *testing.T, line, file, good string) *attack.Result {
	out := filepath.Join(t.TempDir(), "out")
	words := strings.NewReplacer("FILE", file, "GOOD", good, "OUT", out)
	var args []string
	for _, arg := range strings.Fields(line) {
		args = append(args, words.Replace(arg))
	}
	var stdout, stderr bytes.Buffer
	code := execute(t.Context(), stdio{out: &stdout, err: &stderr}, args)
	r := &attack.Result{Args: args, Code: code, Stdout: stdout.String(), Stderr: stderr.String(), Files: map[string][]byte{}}
	if page, err := os.ReadFile(out + ".html"); err == nil {
		r.Files[out+".html"] = page
	}
	return r
}
