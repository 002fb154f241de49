package message

import (
	"fmt"
	"strings"
	"testing"
)

// BenchmarkParse reads a server's log of 8 MB with a message every 64 KB.
func BenchmarkParse(b *testing.B) {
	var log strings.Builder
	for i := 0; log.Len() < 8<<20; i++ {
		fmt.Fprintf(&log, "(EngineCore pid=112) INFO 05-01 14:39:%02d [core.py:%d] step %d: %d requests running, %d waiting\n", i%60, i%2000, i, i%17, i%5)
		if i%700 == 0 {
			log.WriteString("(EngineCore pid=112) ERROR 05-01 14:39:06 [core.py:1131] " + wild[19].text + "\n")
		}
	}
	text := log.String()
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		if _, err := Parse(text); err != nil {
			b.Fatal(err)
		}
	}
}
