package pickle

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"strings"
	"testing"
	"testing/iotest"
)

// What the opcodes do, by hand.
func TestOpcodes(t *testing.T) {
	for _, tt := range []struct{ name, data, want string }{
		{"none", "N.", "None"},
		{"bools", "\x80\x02\x88\x89\x86.", "(True, False)"},
		{"text bools", "(I01\nI00\nI7\nt.", "(True, False, 7)"},
		{"ints", "(K\xffM\xff\xffJ\xff\xff\xff\xffJ\x00\x00\x00\x80t.", "(255, 65535, -1, -2147483648)"},
		{"long1", "(\x8a\x00\x8a\x01\xff\x8a\x08\x00\x00\x00\x00\x00\x00\x00\x80\x8a\x09\xff\xff\xff\xff\xff\xff\xff\xff\x00t.", "(0, -1, -9223372036854775808, 18446744073709551615)"},
		{"long of 60 bits", "(\x8a\x08\xff\xff\xff\xff\xff\xff\xff\x07\x8a\x08\x00\x00\x00\x00\x00\x00\x00\x08\x8a\x08\x00\x00\x00\x00\x00\x00\x00\xf8t.", "(576460752303423487, 576460752303423488, -576460752303423488)"},
		{"long4", "\x8b\x0a\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x01.", pow2(72).String()},
		{"long text", "(L12L\nL-99999999999999999999L\nt.", "(12, -99999999999999999999)"},
		{"floats", "(G?\xf8\x00\x00\x00\x00\x00\x00F-2.5\nFinf\nt.", "(1.5, -2.5, +Inf)"},
		{"texts", "(X\x01\x00\x00\x00a\x8c\x01b\x8d\x01\x00\x00\x00\x00\x00\x00\x00cVd\\u00e9\\U0001f600\xe9\nt.", `("a", "b", "c", "dé😀é")`},
		{"lone surrogate", "V\\ud800\n.", `"\xed\xa0\x80"`},
		{"python 2 texts", "(S'a\\n\\x41\\101\\'\\q'\nS\"b\"\nT\x01\x00\x00\x00cU\x01dt.", `("a\nAA'\\q", "b", "c", "d")`},
		{"bytes", "(B\x01\x00\x00\x00aC\x01b\x8e\x01\x00\x00\x00\x00\x00\x00\x00c\x96\x01\x00\x00\x00\x00\x00\x00\x00dt.", `(b"a", b"b", b"c", b"d")`},
		{"tuples", "()K\x01\x85K\x01K\x02\x86K\x01K\x02K\x03\x87(K\x01K\x02K\x03K\x04tt.", "((), (1), (1, 2), (1, 2, 3), (1, 2, 3, 4))"},
		{"lists", "(](lK\x01a](K\x01K\x02e(K\x03K\x04lt.", "([], [1], [1, 2], [3, 4])"},
		{"dictionaries", "(}(d}K\x01K\x02s}(K\x01K\x02K\x03K\x04u(K\x05K\x06dt.", "({}, {}, {1: 2}, {1: 2, 3: 4}, {5: 6})"},
		{"filled in pieces", "](K\x01e(K\x02K\x03eK\x04a.", "[1, 2, 3, 4]"},
		{"sets", "(\x8f\x8f(K\x01K\x02\x90(K\x03\x91t.", "([], [1, 2], [3])"},
		{"pop, dup", "(K\x01K\x020K\x032(K\x04K\x051t.", "(1, 3, 3)"},
		{"pop of a mark", "K\x01(0.", "1"},
		{"memo", "(X\x01\x00\x00\x00aq\x00]r\x01\x00\x00\x00K\x05p2\nh\x00j\x01\x00\x00\x00g2\nt.", `("a", [], 5, "a", [], 5)`},
		{"memoize", "\x80\x04(\x8c\x01a\x94]\x94(K\x01eh\x00h\x01t.", `("a", [1], "a", [1])`},
		{"memo behind the contents", "(](K\x01eq\x00h\x00t.", "([1], [1])"},
		{"memo entries from 1 on", "(]q\x01h\x01t.", "([], [])"},
		{"memo entries far apart", "(K\x07r\x00\x00\x00\x10K\x08r\x00\x00\x00\x00j\x00\x00\x00\x10j\x00\x00\x00\x00t.", "(7, 8, 7, 8)"},
		{"frames", "\x80\x04\x95\x05\x00\x00\x00\x00\x00\x00\x00]\x94K\x01a.", "[1]"},
		{"OrderedDict", "(ccollections\nOrderedDict\n)RK\x01K\x02sccollections\nOrderedDict\n(](](K\x03K\x04eK\x05K\x06\x86etRt.", "({1: 2}, {3: 4, 5: 6})"},
		{"OrderedDict of protocol 4", "\x80\x04\x8c\x0bcollections\x94\x8c\x0bOrderedDict\x94\x93\x94)R\x94(K\x01K\x02u.", "{1: 2}"},
		{"type tags", "ctorch.jit._pickle\nrestore_type_tag\nq\x00](K\x01eX\x01\x00\x00\x00T\x86R.", "[1]"},
		{"type tags with memo", "(ctorch.jit._pickle\nrestore_type_tag\nq\x00](K\x01eX\x01\x00\x00\x00T\x86Rh\x00](K\x02eX\x01\x00\x00\x00T\x86Rt.", "([1], [2])"},
		{"build_intlist", "ctorch.jit._pickle\nbuild_intlist\n](K\x01e\x85R.", "[1]"},

		// Records, however a dictionary is filled and named.
		{"record", "}(\x8c\x03rowK\x07u.", "row1(7)"},
		{"record by SETITEM", "}\x8c\x03rowK\x07s.", "row1(7)"},
		{"record by DICT", "(\x8c\x03rowK\x07d.", "row1(7)"},
		{"record filled in pieces", "](}(\x8c\x03rowK\x07u(\x8c\x01aK\x08ue.", "[row1(7)]"},
		{"record named before", "(}q\x00(\x8c\x03rowK\x07uh\x00t.", "(row1(7), row1(7))"},
		{"record named behind", "(}(\x8c\x03rowK\x07uq\x00h\x00t.", "(row1(7), row1(7))"},
		{"record named and dropped", "(}q\x00(\x8c\x03rowK\x07u0h\x00t.", "(row1(7))"},
		{"run of records", "](}(\x8c\x03rowK\x01u}(\x8c\x03rowK\x02u}(\x8c\x03rowK\x03uK\x04e.", "[row1(1), row1(2), row1(3), 4]"},
		{"a list used by two neighbours", "(]q\x00(K\x01eh\x00h\x00t.", "([1], [1], [1])"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for name, r := range map[string]io.Reader{
				"at once":      strings.NewReader(tt.data),
				"byte by byte": iotest.OneByteReader(strings.NewReader(tt.data)),
				"with its end": iotest.DataErrReader(strings.NewReader(tt.data)),
			} {
				h := &treeHook{}
				m := NewMachine(h, Limits{})
				d := NewDecoder(r, m)
				v, err := d.Decode()
				if err != nil {
					t.Fatalf("%s: %v", name, err)
				}
				if got := h.repr(m, v); got != tt.want {
					t.Errorf("%s: %s, want %s", name, got, tt.want)
				}
				if d.Offset() != int64(len(tt.data)) {
					t.Errorf("%s: stopped at byte %d of %d", name, d.Offset(), len(tt.data))
				}
			}
			// Each piece of it is truncated, or wrong in a way with a place.
			for n := range len(tt.data) {
				_, err := decode(tt.data[:n], Limits{})
				var truncated *TruncatedError
				if !errors.As(err, &truncated) || truncated.Offset != int64(n) {
					t.Errorf("of %d bytes: %v", n, err)
				}
			}
		})
	}
}

// Many things that Python can pickle, at all protocols, by both its picklers.
func TestPython(t *testing.T) {
	path, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("python3 is not installed: what Python makes of these pickles is not checked")
	}
	out, err := exec.Command(path, "testdata/values.py").Output()
	if err != nil {
		t.Fatal(err)
	}
	d := json.NewDecoder(bytes.NewReader(out))
	n := 0
	for d.More() {
		var tt struct{ Name, Data, Want string }
		if err := d.Decode(&tt); err != nil {
			t.Fatal(err)
		}
		data, err := base64.StdEncoding.DecodeString(tt.Data)
		if err != nil {
			t.Fatal(err)
		}
		got, err := decode(string(data), Limits{})
		if err != nil || got != tt.Want {
			t.Errorf("%s: %.200s, %v, want %.200s", tt.Name, got, err, tt.Want)
		}
		n++
	}
	if n < 100 {
		t.Errorf("only %d values", n)
	}
}

func TestLimits(t *testing.T) {
	for _, tt := range []struct {
		name, data string
		limits     Limits
		want       string
	}{
		{"text", "X\x03\x00\x00\x00abc.", Limits{String: 2}, "at byte 0: a text of 3 bytes is above the limit of 2"},
		{"line", "Vabcdefgh\n.", Limits{String: 2}, ""},
		{"integer", "\x8a\x09\x00\x00\x00\x00\x00\x00\x00\x00\x01.", Limits{Long: 8}, "at byte 0: an integer of 9 bytes is above the limit of 8"},
		{"digits", "L" + strings.Repeat("9", 100) + "L\n.", Limits{Long: 8}, "an integer of 100 digits is above the limit of 20"},
		{"depth", "]]]]aaa.", Limits{Depth: 2}, "containers inside each other above the limit of 2"},
		{"marks", "((((((.", Limits{Depth: 2}, "containers inside each other above the limit of 2"},
		{"memo", "Nq\x05.", Limits{Memo: 5}, "at byte 1: memo entries above the limit of 5"},
		{"stack", strings.Repeat("N", 100_000) + ".", Limits{Stack: 1000}, "values on the stack above the limit of 1000"},
		{"values", "](NNNNNNe.", Limits{Values: 5}, "above the limit of 5"},
		{"bytes", strings.Repeat("N0", 1_000_000) + "N.", Limits{Bytes: 1000}, "the size in bytes is above the limit of 1000"},
	} {
		got, err := decode(tt.data, tt.limits)
		if tt.want == "" && err == nil {
			continue
		}
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %s, %v, want %s", tt.name, got, err, tt.want)
		}
	}
}

// What the reader says is passed on.
func TestReaderFails(t *testing.T) {
	fault := errors.New("disk on fire")
	m := NewMachine(&treeHook{}, Limits{})
	_, err := NewDecoder(io.MultiReader(strings.NewReader("]]"), iotest.ErrReader(fault)), m).Decode()
	if !errors.Is(err, fault) {
		t.Error(err)
	}
	_, err = NewDecoder(iotest.ErrReader(io.ErrUnexpectedEOF), NewMachine(&treeHook{}, Limits{})).Decode()
	var truncated *TruncatedError
	if !errors.As(err, &truncated) || !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Error(err)
	}
}

// A trace of PyTorch's C++ pickler is one list of a million records: the stack
// stays small, and so does the list.
func TestRunsOnTheStack(t *testing.T) {
	const n = 100_000
	var b strings.Builder
	b.WriteString("](\x8c\x03rowq\x000")
	for range n {
		b.WriteString("}(h\x00K\x01u")
	}
	b.WriteString("e.")
	h := &treeHook{}
	m := NewMachine(h, Limits{})
	v, err := NewDecoder(strings.NewReader(b.String()), m).Decode()
	if err != nil {
		t.Fatal(err)
	}
	if len(h.rows) != n || cap(m.stack) > 1024 || len(m.Items(v)) != 1 {
		t.Errorf("%d rows, room for %d values on the stack, %d items", len(h.rows), cap(m.stack), len(m.Items(v)))
	}
}

func TestUnfinished(t *testing.T) {
	for _, tt := range []struct{ data, want string }{
		{"", ": "},
		{"}", ": "},
		{"}(X\x01\x00\x00\x00a", ` "a": `},
		{"}(X\x01\x00\x00\x00a](K\x01K\x02eX\x01\x00\x00\x00b](K\x03", `"a" [1, 2] "b": [] 3`},
		{"}X\x01\x00\x00\x00aK\x01sX\x01\x00\x00\x00b]K\x02aK\x03", `"a" 1 "b": [2] 3`},
		{"}(X\x01\x00\x00\x00a}(X\x01\x00\x00\x00bK\x01X\x01\x00\x00\x00c", ` "a": {} "b" 1 "c"`},
		{"](K\x01K\x02", ": [] 1 2"},
	} {
		h := &treeHook{}
		m := NewMachine(h, Limits{})
		_, err := NewDecoder(strings.NewReader(tt.data), m).Decode()
		var truncated *TruncatedError
		if !errors.As(err, &truncated) {
			t.Fatalf("%q: %v", tt.data, err)
		}
		u, err := m.Unfinished()
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, v := range u.Pairs {
			got = append(got, h.repr(m, v))
		}
		text := strings.Join(got, " ")
		if u.Key != 0 {
			text += " " + h.repr(m, u.Key)
		}
		text += ":"
		for _, v := range u.Open {
			text += " " + h.repr(m, v)
		}
		if len(u.Open) == 0 {
			text += " "
		}
		if text != tt.want {
			t.Errorf("%q: %q, want %q", tt.data, text, tt.want)
		}
	}
}

// The machine can be fed by hand.
func TestByHand(t *testing.T) {
	h := &treeHook{}
	m := NewMachine(h, Limits{})
	for _, err := range []error{
		m.Begin(Dict), m.PushText([]byte("a")), m.Begin(List), m.Push(m.MakeInt(1)), m.Push(m.MakeFloat(2.5)),
		m.Begin(Dict), m.PushText([]byte("row")), m.Push(MakeBool(true)), m.End(), m.End(), m.End(),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	v, err := m.Result()
	if got := h.repr(m, v); err != nil || got != `{"a": [1, 2.5, row1(True)]}` {
		t.Errorf("%s, %v", got, err)
	}
}

// Reading records costs no memory but the memo's.
func TestNoGarbage(t *testing.T) {
	const n = 20_000
	data := "](\x8c\x03rowq\x00K\x01" + strings.Repeat("}(h\x00K\x01u0", n) + "e."
	h := &countHook{}
	allocs := testing.AllocsPerRun(3, func() {
		m := NewMachine(h, Limits{})
		if _, err := NewDecoder(strings.NewReader(data), m).Decode(); err != nil {
			t.Fatal(err)
		}
	})
	if allocs > 100 {
		t.Errorf("%.0f allocations for %d records", allocs, n)
	}
}

// countHook makes a record of every dictionary.
type countHook struct{ n int }

func (h *countHook) Intern([]byte) (uint32, error) { return 1, nil }
func (h *countHook) Text(uint32) string            { return "" }
func (h *countHook) Dict(*Machine, []Value) (Value, error) {
	h.n++
	return MakeRecord(1, h.n), nil
}
func (h *countHook) List(*Machine, []Value) (Value, error)  { return 0, nil }
func (h *countHook) Tuple(*Machine, []Value) (Value, error) { return 0, nil }
