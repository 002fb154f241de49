package main

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/evanw/esbuild/pkg/api"

	"github.com/ashlar-mem/ashlar/internal/units"
)

const formatAll = `
process.stdout.write(JSON.stringify(JSON.parse(require('fs').readFileSync(0, 'utf8')).map((n) =>
	[format.size(n), format.sizeUp(n), format.delta(n), format.delta(-n), format.count(n)])));
`

// The page writes sizes, which change while somebody drags, as package units
// does.
func TestFormat(t *testing.T) {
	node, err := exec.LookPath("node")
	if err != nil {
		t.Skip("there is no node to run web/src/format.ts")
	}
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	script, err := bundle(api.BuildOptions{
		AbsWorkingDir: root, EntryPoints: []string{"web/src/format.ts"}, Format: api.FormatIIFE, GlobalName: "format",
	})
	if err != nil {
		t.Fatal(err)
	}
	numbers := []uint64{0, 1, 512, 1<<53 - 1}
	rng := rand.New(rand.NewPCG(1, 1))
	for shift := range 52 {
		for range 200 {
			numbers = append(numbers, 1<<shift+rng.Uint64N(1<<shift))
		}
		for _, at := range []uint64{1 << shift, 1<<shift - 1<<shift/200, 1<<shift + 1<<shift/200, 1<<shift + 1<<shift/8} { // where units and halves begin
			numbers = append(numbers, at-1, at, at+1)
		}
	}
	in, err := json.Marshal(numbers)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(node, "-e", string(script)+formatAll)
	cmd.Stdin = bytes.NewReader(in)
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	var got [][5]string
	if err := json.Unmarshal(out, &got); err != nil || len(got) != len(numbers) {
		t.Fatalf("%v, %d texts for %d numbers", err, len(got), len(numbers))
	}
	for i, n := range numbers {
		s := int64(n)
		if want := [5]string{units.Size(n), units.SizeUp(n), units.Delta(s), units.Delta(-s), units.Count(s)}; got[i] != want {
			t.Errorf("%d is %q on the page, %q by package units", n, got[i], want)
		}
	}
}
