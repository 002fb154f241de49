package pickle

import (
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/ashlar-mem/ashlar/internal/test/cost"
)

// FuzzDecode looks for input that crashes the decoder or makes it take much more
// memory than the input has bytes. A value that is read twice is
// the same both times.
func FuzzDecode(f *testing.F) {
	for _, seed := range []string{
		"N.", "(I01\nL12L\nF1.5\nt.", "}(\x8c\x03row](K\x01eu.", "(S'a\\x41'\nVb\\u0041\nt.", "\x80\x04]\x94(h\x00e.",
		"(]q\x00h\x00t.", "ccollections\nOrderedDict\n)R.", "ctorch.jit._pickle\nrestore_type_tag\n]X\x01\x00\x00\x00T\x86R.",
		"](}(\x8c\x03rowK\x01u}(\x8c\x03rowK\x02ue.", "(K\x01K\x020K\x032(K\x041t.", "\x8f(K\x01\x90.", "(K\x07r\x00\x00\x00\x10j\x00\x00\x00\x10t.",
		"\x80\x04\x95\x05\x00\x00\x00\x00\x00\x00\x00]\x94K\x01a.", "\x8b\x0a\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x01.",
	} {
		f.Add([]byte(seed))
	}
	if data, err := os.ReadFile("../../snapshot/testdata/py_snapshot.pickle"); err == nil {
		f.Add(data)
	}
	if data, err := os.ReadFile("../../snapshot/testdata/cpp_snapshot.pickle"); err == nil {
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		h := &treeHook{}
		m := NewMachine(h, Limits{})
		var v Value
		var err error
		used := cost.Bytes(func() { v, err = NewDecoder(strings.NewReader(string(data)), m).Decode() })
		if used > 8<<20+1000*uint64(len(data)) {
			t.Errorf("%d bytes of memory for %d bytes", used, len(data))
		}
		if err != nil {
			var truncated *TruncatedError
			if errors.As(err, &truncated) {
				if _, err := m.Unfinished(); err != nil {
					t.Logf("unfinished: %v", err)
				}
			}
			return
		}
		if !v.usable() {
			t.Fatalf("the result is %v", m.KindOf(v))
		}
		if m.arena.values > 1000 { // the text of a memo bomb is long
			return
		}
		again := &treeHook{}
		n := NewMachine(again, Limits{})
		w, err := NewDecoder(strings.NewReader(string(data)), n).Decode()
		if err != nil {
			t.Fatalf("the second time: %v", err)
		}
		if size(m, v, 1000) < 1000 {
			if a, b := h.repr(m, v), again.repr(n, w); a != b {
				t.Fatalf("%s, then %s", a, b)
			}
		}
	})
}

// size counts the values in v, up to a limit.
func size(m *Machine, v Value, limit int) int {
	n := 1
	for _, item := range m.Items(v) {
		if n >= limit {
			break
		}
		n += size(m, item, limit-n)
	}
	return n
}
