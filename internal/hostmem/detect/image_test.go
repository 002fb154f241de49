package detect

import (
	"bytes"
	"debug/elf"
	"os"
	"path/filepath"
	"testing"
)

// A text is found once wherever it lies, also across the border of two chunks,
// with what stands around it.
func TestSearch(t *testing.T) {
	const text = "<jemalloc>: "
	data := bytes.Repeat([]byte{0}, 2*searchChunk+500)
	for _, at := range []int{0, 100, searchChunk - 1, searchChunk - len(text), searchChunk, searchChunk + 5, 2*searchChunk - 3, len(data) - len(text)} {
		clear(data)
		copy(data[at:], text)
		file := filepath.Join(t.TempDir(), "object")
		if err := os.WriteFile(file, data, 0o600); err != nil {
			t.Fatal(err)
		}
		f, err := os.Open(file)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		o := &object{file: f}
		const reach = 20
		n := 0
		o.around(text, reach, func(w window) bool {
			n++
			if len(w.before) != min(reach, at) || len(w.after) != len(text)+min(reach, len(data)-at-len(text)) || !bytes.HasPrefix(w.after, []byte(text)) {
				t.Errorf("at %d: %d bytes before, %q", at, len(w.before), w.after)
			}
			return false
		})
		if n != 1 {
			t.Errorf("at %d: found %d times", at, n)
		}
		if got := o.which("absent", text); len(got) != 1 || got[0] != text {
			t.Errorf("at %d: %q", at, got)
		}
	}
}

func TestMimallocRelease(t *testing.T) {
	for n, want := range map[uint32]string{209: "2.0.9", 182: "1.8.2", 20405: "2.4.5", 30112: "3.1.12", 7: "", 4000: ""} {
		if got := mimallocRelease(n); got != want {
			t.Errorf("%d: %q, want %q", n, got, want)
		}
	}
}

// The code of mi_version on two machines, with and without a landing pad.
func TestReturnedConstant(t *testing.T) {
	for _, test := range []struct {
		machine elf.Machine
		code    string
		want    uint32
		ok      bool
	}{
		{elf.EM_X86_64, "\xb8\xd1\x00\x00\x00\xc3", 209, true},
		{elf.EM_X86_64, "\xf3\x0f\x1e\xfa\xb8\xb5\x4f\x00\x00\xc3", 20405, true},
		{elf.EM_X86_64, "\x31\xc0\xc3", 0, false},
		{elf.EM_AARCH64, "\x20\x1a\x80\x52\xc0\x03\x5f\xd6", 209, true},
		{elf.EM_AARCH64, "\x5f\x24\x03\xd5\x20\x1a\x80\x52\xc0\x03\x5f\xd6", 209, true},
		{elf.EM_AARCH64, "\x00\x00\x00\x00\xc0\x03\x5f\xd6", 0, false},
		{elf.EM_RISCV, "\xb8\xd1\x00\x00\x00\xc3", 0, false},
	} {
		var code [16]byte
		copy(code[:], test.code)
		if got, ok := returnedConstant(test.machine, code); got != test.want || ok != test.ok {
			t.Errorf("%s %x: %d %v", test.machine, test.code, got, ok)
		}
	}
}

func TestHashes(t *testing.T) {
	// The values of the System V and GNU specifications for these names.
	if h := sysvHash("printf"); h != 0x077905a6 {
		t.Errorf("%x", h)
	}
	if h := gnuHash("printf"); h != 0x156b2bb8 {
		t.Errorf("%x", h)
	}
}

// Whatever a file says, reading it ends and does not panic.
func FuzzImage(f *testing.F) {
	for _, name := range []string{"/proc/self/exe", "/lib64/ld-linux-x86-64.so.2"} {
		if data, err := os.ReadFile(name); err == nil {
			f.Add(data[:min(len(data), 1<<18)])
		}
	}
	f.Add([]byte("\x7fELF\x02\x01\x01"))
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := newImageOfFile(bytes.NewReader(data))
		if err != nil {
			return
		}
		m.defined("malloc")
		m.sysvLookup("malloc")
		m.slots("malloc")
		m.extent()
		if n, err := newImageOfMemory(bytes.NewReader(data), 0); err == nil {
			n.slots("malloc")
		}
	})
}
