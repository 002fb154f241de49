package snapshot

import (
	"bytes"
	"context"
	"runtime"
	"testing"
	"time"
)

// FuzzRead looks for files that crash the reader, hang it or make it take much
// more memory than they have bytes. What is read comes back from both writers.
func FuzzRead(f *testing.F) {
	for _, path := range []string{sample, "testdata/py_snapshot.pickle", "testdata/cpp_snapshot.pickle", "../testdata/variety/stateonly.pickle.gz"} {
		data := plain(f, path)
		f.Add(data)
		f.Add(data[:len(data)/2])
	}
	f.Add([]byte(later))
	f.Add([]byte(later[:len(later)/2]))
	f.Add([]byte(memoBomb()))
	f.Add(buildDevices(f, 3))
	f.Add([]byte("\x80\x02]q\x00h\x00a."))
	f.Fuzz(func(t *testing.T, data []byte) {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		start := time.Now()
		limits := Limits{Bytes: 4 << 20, Extra: 100_000}
		file, err := Read(context.Background(), "file", bytes.NewReader(data), Options{Limits: limits})
		runtime.ReadMemStats(&after)
		compressed := bytes.HasPrefix(data, []byte("\x1f\x8b")) || bytes.HasPrefix(data, []byte("\x28\xb5\x2f\xfd"))
		if used := after.TotalAlloc - before.TotalAlloc; used > 64<<20+1000*uint64(len(data)) && !compressed {
			t.Errorf("%d bytes of memory for %d bytes", used, len(data))
		}
		if took := time.Since(start); took > 10*time.Second {
			t.Errorf("%v for %d bytes", took, len(data))
		}
		if err != nil {
			return
		}
		var first, second, text, again bytes.Buffer
		if err := WritePickle(&first, file); err != nil {
			t.Fatal(err)
		}
		if err := WriteJSON(&text, file); err != nil {
			t.Fatal(err)
		}
		if first.Len() > 1<<20 || text.Len() > 1<<20 {
			return
		}
		readBack := func(b []byte) *File {
			f, err := Read(context.Background(), "file", bytes.NewReader(b), Options{})
			if err != nil {
				t.Fatalf("what was written is not read: %v", err)
			}
			return f
		}
		if err := WritePickle(&second, readBack(first.Bytes())); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(first.Bytes(), second.Bytes()) {
			t.Error("the pickle comes back as another one")
		}
		if err := WriteJSON(&again, readBack(text.Bytes())); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(text.Bytes(), again.Bytes()) {
			t.Error("the JSON comes back as another one")
		}
	})
}
