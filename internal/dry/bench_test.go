package dry

import (
	"bytes"
	"fmt"
	"testing"
)

// long is a ledger of about n events: many kinds of calls, in steps.
func long(n int) []byte {
	var out bytes.Buffer
	out.WriteString(header)
	const kinds = 200
	for k := range kinds {
		fmt.Fprintf(&out, `["K",%d,"aten.op%d.default",[["float32",[%d],[1],"cuda:0"]],[["float32",[%d],[1],"cuda:0"]],[{"t":0},0.5],{}]`+"\n", k, k%40, 1000*(k+1), 1000*(k+1))
	}
	const live = 300
	for i := range n / 3 {
		if i >= live {
			fmt.Fprintf(&out, `["d",%d]`+"\n", i-live)
		}
		fmt.Fprintf(&out, `["b",%d,%d,"cuda:0"]`+"\n", i, 4000*(i%kinds+1))
		fmt.Fprintf(&out, `["o",%d,-1,0,0,[-1],[%d]]`+"\n", i%kinds, i)
		if i%20000 == 19999 {
			fmt.Fprintf(&out, `["m","steps",%d]`+"\n", i/20000+1)
		}
	}
	return out.Bytes()
}

// BenchmarkAsk reads a ledger of 500,000 events and answers about it.
func BenchmarkAsk(b *testing.B) {
	file := long(500_000)
	b.SetBytes(int64(len(file)))
	for b.Loop() {
		r, err := Read(b.Context(), bytes.NewReader(file))
		if err != nil {
			b.Fatal(err)
		}
		if _, _, err := Ask(b.Context(), Question{Recording: r, Points: 80}); err != nil {
			b.Fatal(err)
		}
	}
}
