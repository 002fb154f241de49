package dry

import (
	"bytes"
	"os"
	"testing"

	"github.com/ashlar-mem/ashlar/internal/plan/ledger"
)

// Whatever a file holds, it is read or refused, and what was read makes a ledger
// in which every tensor dies at most once.
func FuzzRead(f *testing.F) {
	whole, err := os.ReadFile("../../testdata/dry/mlp.dry")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(whole)
	for _, line := range []string{
		`["b",0,16,"cuda:0"]`, `["r",0,64]`, `["d",0]`, `["c","input",[0]]`, `["m","steps",1]`, `["n","x",-1]`, `["u","x",-1]`,
		`["K",0,"a.b.c",[],[["float32",[4],null,"cuda:0"]],[{"t":0}],{"a":[{"t":1}]}]`, `["F",0,"a.py",1,"f"]`, `["S",0,[0]]`,
	} {
		f.Add([]byte(header + line + "\n" + line))
	}
	f.Fuzz(func(t *testing.T, file []byte) {
		r, err := Read(t.Context(), bytes.NewReader(file))
		if err != nil {
			return
		}
		l := Build(r, r.Kernels()).Ledger
		live := 0
		for i, e := range l.Events {
			switch {
			case e >= 0:
				live++
			case e != ledger.EmptyCache:
				live--
			}
			if live < 0 {
				t.Fatalf("more deaths than births at event %d", i)
			}
		}
	})
}
