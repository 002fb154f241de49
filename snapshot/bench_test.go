package snapshot

import (
	"bytes"
	"io"
	"os"
	"testing"
)

// The largest recording: 407,899 events, 46 MB of pickle.
const largest = "../testdata/snapshots/serve_generate-default.pickle.gz"

func benchmarkRead(b *testing.B, data []byte, plainBytes int) {
	events := 0
	b.SetBytes(int64(plainBytes))
	b.ReportAllocs()
	for b.Loop() {
		f, err := read1(data)
		if err != nil {
			b.Fatal(err)
		}
		events, _ = f.content()
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(events), "ns/event")
}

func BenchmarkReadPickle(b *testing.B) {
	data := plain(b, largest)
	benchmarkRead(b, data, len(data))
}

func BenchmarkReadGzip(b *testing.B) {
	data, err := os.ReadFile(largest)
	if err != nil {
		b.Fatal(err)
	}
	benchmarkRead(b, data, len(plain(b, largest)))
}

func BenchmarkReadJSON(b *testing.B) {
	var text bytes.Buffer
	if err := WriteJSON(&text, open(b, "../testdata/snapshots/gpt2_varlen-tight-default.pickle.gz")); err != nil {
		b.Fatal(err)
	}
	benchmarkRead(b, text.Bytes(), text.Len())
}

func benchmarkWrite(b *testing.B, path string, write func(io.Writer, *File) error) {
	f := open(b, path)
	var n countWriter
	b.ReportAllocs()
	for b.Loop() {
		n = 0
		if err := write(&n, f); err != nil {
			b.Fatal(err)
		}
	}
	b.SetBytes(int64(n))
}

type countWriter int64

func (w *countWriter) Write(p []byte) (int, error) {
	*w += countWriter(len(p))
	return len(p), nil
}

func BenchmarkWritePickle(b *testing.B) { benchmarkWrite(b, largest, WritePickle) }

func BenchmarkWriteJSON(b *testing.B) {
	benchmarkWrite(b, "../testdata/snapshots/gpt2_varlen-tight-default.pickle.gz", WriteJSON)
}
