package cost

import (
	"strings"
	"testing"
)

func TestBytes(t *testing.T) {
	var keep []byte
	if n := Bytes(func() { keep = make([]byte, 1<<20) }); n < 1<<20 || n > 2<<20 {
		t.Errorf("%d bytes for %d", n, len(keep))
	}
}

func TestGrows(t *testing.T) {
	var keep string
	linear := func(n int) { keep = strings.Repeat("x", n) + "y" }
	square := func(n int) {
		for i := 0; i < n; i += 100 {
			keep = strings.Repeat("x", n)
		}
	}
	if Grows(linear) || !Grows(square) {
		t.Errorf("linear %v, square %v; %d", Grows(linear), Grows(square), len(keep))
	}
}
