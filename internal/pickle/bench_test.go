package pickle

import (
	"strings"
	"testing"
)

// BenchmarkDecode reads dictionaries of the size of an event, each with a list
// of 20 entries from the memo.
func BenchmarkDecode(b *testing.B) {
	const n = 10_000
	event := "}\x94(h\x00h\x00h\x00\x8a\x06\x00\x00\x00\x00\x20\x7fh\x00J\x00\x10\x00\x00h\x00K\x00h\x00\x8a\x07\xb5\xd7\x82\xa7\x46\x60\x06h\x00]\x94(" +
		strings.Repeat("j\x00\x00\x00\x00", 20) + "eu"
	data := "\x80\x04(\x8c\x06action\x941](" + strings.Repeat(event, n) + "e."
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := NewDecoder(strings.NewReader(data), NewMachine(&countHook{}, Limits{})).Decode(); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/dict")
}
