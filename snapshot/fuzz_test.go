package snapshot

import (
	"bytes"
	"context"
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/ashlar-mem/ashlar/internal/test/cost"
)

// FuzzRead looks for files that crash the reader or make it take much more
// memory than they have bytes. What is read comes back from both writers.
func FuzzRead(f *testing.F) {
	for _, path := range []string{sample, "testdata/py_snapshot.pickle", "testdata/cpp_snapshot.pickle", "../testdata/variety/stateonly.pickle.gz"} {
		data := plain(f, path)
		f.Add(data)
		f.Add(data[:len(data)/2])
	}
	f.Add([]byte(later))
	f.Add([]byte(later[:len(later)/2]))
	f.Add([]byte(memoBomb()))
	f.Add([]byte(viewerPage([]byte(later))))
	f.Add(buildDevices(f, 3))
	f.Add([]byte("\x80\x02]q\x00h\x00a."))
	// What this fuzzer has found: keys that come twice, values of the wrong
	// kind, texts that are none, equal texts and numbers in frames.
	segment := `{"segments": [{"device": 0, "address": 1, "total_size": 2, "segment_pool_id": [0, 0], "segment_pool_id": 25,
		"is_expandable": [false, 0], "blocks": [], "frames": [{"name": "f", "filename": "g", "line": 1, "x": 1},
		{"name": "f", "filename": "g", "line": 1, "x": "1"}]}]}`
	f.Add([]byte(segment))
	f.Add([]byte("\x80\x04](}(\x8c\x07addressK\x01\x8c\x0atotal_sizeK\x02\x8c\x06blocks]\x8c\x06frames](}(\x8c\x04nameC\x01f\x8c\x08filename\x8c\x01\xff\x8c\x04lineK\x01ueue."))
	f.Fuzz(func(t *testing.T, data []byte) {
		var file *File
		var err error
		used := cost.Bytes(func() {
			limits := Limits{Bytes: 4 << 20, Extra: 100_000}
			file, err = Read(context.Background(), "file", bytes.NewReader(data), Options{Limits: limits})
		})
		compressed := bytes.HasPrefix(data, []byte("\x1f\x8b")) || bytes.HasPrefix(data, []byte("\x28\xb5\x2f\xfd"))
		if used > 64<<20+1000*uint64(len(data)) && !compressed {
			t.Errorf("%d bytes of memory for %d bytes", used, len(data))
		}
		if err != nil {
			return
		}
		want := asJSON(t, file)
		var b bytes.Buffer
		if err := WritePickle(&b, file); err != nil {
			t.Fatal(err)
		}
		if b.Len() > 1<<20 || len(want) > 1<<20 {
			return
		}
		for format, written := range map[string][]byte{"pickle": b.Bytes(), "JSON": []byte(want)} {
			again, err := Read(context.Background(), "file", bytes.NewReader(written), Options{})
			if err != nil {
				t.Fatalf("the %s that was written is not read: %v", format, err)
			}
			if got := asJSON(t, again); got != want && !reflect.DeepEqual(unordered(got), unordered(want)) {
				t.Errorf("the %s that was written is read as something else", format)
			}
		}
	})
}

// unordered is a JSON document without the order of its keys: a field of an odd
// type is kept among the further fields, behind the known ones, and may be an
// ordinary one once it was written. Documents with the NaN that Python writes
// are not taken apart.
func unordered(text string) any {
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	var v any
	if d.Decode(&v) != nil {
		return nil
	}
	return v
}
