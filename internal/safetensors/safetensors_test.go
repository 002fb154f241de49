package safetensors

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// encode writes a file with the given header and length of data.
func encode(header string, data int) []byte {
	out := binary.LittleEndian.AppendUint64(nil, uint64(len(header)))
	return append(append(out, header...), make([]byte, data)...)
}

const twoTensors = `{"__metadata__":{"format":"pt"},` +
	`"b":{"dtype":"BF16","shape":[3,4],"data_offsets":[8,32]},"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},` +
	`"empty":{"dtype":"I64","shape":[0,7],"data_offsets":[32,32]},"scalar":{"dtype":"F32","shape":[],"data_offsets":[32,36]}}   `

func TestRead(t *testing.T) {
	file := encode(twoTensors, 36)
	got, err := Read(bytes.NewReader(file), int64(len(file)))
	if err != nil {
		t.Fatal(err)
	}
	want := []Tensor{
		{Name: "a", DType: "F32", Shape: []int64{2}, Bytes: 8},
		{Name: "b", DType: "BF16", Shape: []int64{3, 4}, Bytes: 24},
		{Name: "empty", DType: "I64", Shape: []int64{0, 7}},
		{Name: "scalar", DType: "F32", Shape: []int64{}, Bytes: 4},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	for i, n := range []uint64{2, 12, 0, 1} {
		if got[i].Elements() != n {
			t.Errorf("%s: %d elements, want %d", got[i].Name, got[i].Elements(), n)
		}
	}
}

// TestReadBounds: what a header or an index makes the reader allocate has a bound, however its bytes are spent.
func TestReadBounds(t *testing.T) {
	var many strings.Builder
	many.WriteString(`{"0":{"dtype":"U8","shape":[0],"data_offsets":[0,0]}`)
	for i := range maxTensors {
		fmt.Fprintf(&many, `,"%d":{"dtype":"U8","shape":[0],"data_offsets":[0,0]}`, i+1)
	}
	many.WriteString("}")
	for _, x := range []struct {
		header, want string
		most         uint64
	}{
		{many.String(), "more than 262144 tensors", 400 << 20},
		{`{"w":{"dtype":"F32","shape":[` + strings.Repeat("1,", 8_000_000) + `1],"data_offsets":[0,4]}}`, "8000001 dimensions", 100 << 20},
		{`{"w":{"dtype":"F32","shape":[1],"data_offsets":[0,4` + strings.Repeat(",4", 8_000_000) + `]}}`, "two data_offsets", 100 << 20},
	} {
		file := encode(x.header, 4)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := Read(bytes.NewReader(file), int64(len(file)))
		runtime.ReadMemStats(&after)
		if err == nil || !strings.Contains(err.Error(), x.want) {
			t.Errorf("%v, want %q", err, x.want)
		}
		if took := after.TotalAlloc - before.TotalAlloc; took > x.most {
			t.Errorf("%s: %d MiB were allocated for a header of %d", x.want, took>>20, len(file)>>20)
		}
	}
}

func TestIndexBounds(t *testing.T) {
	var many strings.Builder
	for i := range 3_000_000 {
		fmt.Fprintf(&many, `,"%x":"a"`, i)
	}
	index := []byte(`{"weight_map":{` + many.String()[1:] + "}}")
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := parseIndex(index)
	runtime.ReadMemStats(&after)
	if err == nil || !strings.Contains(err.Error(), "more than 262144 tensors") {
		t.Errorf("%v", err)
	}
	if took := after.TotalAlloc - before.TotalAlloc; took > 300<<20 {
		t.Errorf("%d MiB were allocated for an index of %d", took>>20, len(index)>>20)
	}
}

func TestReadErrors(t *testing.T) {
	entry := func(body string) string { return `{"w":{` + body + `}}` }
	for _, c := range []struct {
		file []byte
		want string
	}{
		{nil, "shorter than 8 bytes"},
		{[]byte("PK\x03\x04"), "shorter than 8 bytes"},
		{[]byte("not a safetensors file at all"), "above the limit"},
		{encode(`{}`, 0)[:9], "was cut off"},
		{encode(``, 4), "too short"},
		{encode(`[1,2]`, 0), "does not begin with {"},
		{encode(`{"w":`, 0), "not a JSON object"},
		{encode(entry(`"dtype":"F32","shape":[1]`), 4), `tensor "w": dtype, shape or data_offsets is missing`},
		{encode(`{"w":null}`, 0), "is missing"},
		{encode(entry(`"dtype":"F32","shape":[1],"data_offsets":[0]`), 4), "there must be two data_offsets"},
		{encode(entry(`"dtype":"F32","shape":[1],"data_offsets":[0,8]`), 8), "do not fit F32 [1], which is 4 bytes"},
		{encode(entry(`"dtype":"F32","shape":[1],"data_offsets":[4,0]`), 8), "do not fit"},
		{encode(entry(`"dtype":"F32","shape":[-1],"data_offsets":[0,4]`), 4), "negative dimension"},
		{encode(entry(`"dtype":"F32","shape":[4611686018427387904,4611686018427387904],"data_offsets":[0,4]`), 4), "too large"},
		{encode(entry(`"dtype":"Q4_K","shape":[1],"data_offsets":[0,4]`), 4), `dtype "Q4_K" is not one of the format`},
		{encode(entry(`"dtype":"F4","shape":[3],"data_offsets":[0,1]`), 1), "whole bytes"},
		{encode(entry(`"dtype":"F32","shape":[1],"data_offsets":[0,4]`), 3), "only 3 bytes of data: it was cut off"},
		{encode(entry(`"dtype":"F32","shape":[1],"data_offsets":[0,4]`), 9), "5 bytes of data after the last tensor"},
		{encode(entry(`"dtype":"F32","shape":[1],"data_offsets":[4,8]`), 8), "begins at 4, the data before it ends at 0"},
		{encode(entry(`"dtype":"F32","shape":[`+strings.Repeat("1,", 70)+`1],"data_offsets":[0,4]`), 4), "71 dimensions"},
	} {
		_, err := Read(bytes.NewReader(c.file), int64(len(c.file)))
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%.80q: %v, want %q", c.file, err, c.want)
		}
	}
}

// write puts files into a new folder.
func write(t *testing.T, files map[string][]byte) string {
	t.Helper()
	dir := t.TempDir()
	for name, data := range files {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func one(name string) []byte {
	return encode(fmt.Sprintf(`{%q:{"dtype":"U8","shape":[5],"data_offsets":[0,5]}}`, name), 5)
}

func TestOpen(t *testing.T) {
	dir := write(t, map[string][]byte{
		"model-00001-of-00002.safetensors": one("a"), "model-00002-of-00002.safetensors": one("b"),
		"model.safetensors.index.json": []byte(`{"metadata":{"total_size":10},"weight_map":{"b":"model-00002-of-00002.safetensors","a":"model-00001-of-00002.safetensors"}}`),
	})
	for _, path := range []string{dir, filepath.Join(dir, "model.safetensors.index.json")} {
		list, err := Open(path)
		if err != nil || len(list) != 2 || list[0].Name != "a" || list[1].File != "model-00002-of-00002.safetensors" {
			t.Errorf("%s: %v, %v", path, list, err)
		}
	}
	single := write(t, map[string][]byte{"model.safetensors": one("w")})
	for _, path := range []string{single, filepath.Join(single, "model.safetensors")} {
		if list, err := Open(path); err != nil || len(list) != 1 || list[0].File != "model.safetensors" {
			t.Errorf("%s: %v, %v", path, list, err)
		}
	}
}

// The files of a folder are found under the names that libraries give them.
func TestFolder(t *testing.T) {
	index := func(file string) []byte {
		return []byte(fmt.Sprintf(`{"metadata":{"total_size":10},"weight_map":{"a":%q}}`, file))
	}
	for _, c := range []struct {
		files map[string][]byte
		from  string
	}{
		{map[string][]byte{"diffusion_pytorch_model.safetensors": one("a"), "diffusion_pytorch_model.fp16.safetensors": one("a")}, "diffusion_pytorch_model.safetensors"},
		{map[string][]byte{"diffusion_pytorch_model.fp16.safetensors": one("a")}, "diffusion_pytorch_model.fp16.safetensors"},
		{map[string][]byte{"model.fp16.safetensors": one("a"), "other.safetensors": one("a")}, "model.fp16.safetensors"},
		{map[string][]byte{"diffusion_pytorch_model.safetensors.index.json": index("x.safetensors"), "x.safetensors": one("a")}, "x.safetensors"},
		{map[string][]byte{"model.safetensors.index.fp16.json": index("x.safetensors"), "x.safetensors": one("a"), "y.safetensors": one("a")}, "x.safetensors"},
		{map[string][]byte{"sd_xl_base.safetensors": one("a"), "notes.txt": nil}, "sd_xl_base.safetensors"},
	} {
		dir := write(t, c.files)
		list, err := Open(dir)
		if err != nil || len(list) != 1 || list[0].File != c.from || !Has(dir) {
			t.Errorf("%v: %v, %v, want that of %s", c.files, list, err, c.from)
		}
	}
	two := write(t, map[string][]byte{"a.safetensors": one("a"), "b.safetensors": one("a")})
	if _, err := Open(two); !errors.Is(err, fs.ErrNotExist) || Has(two) {
		t.Errorf("two files without a usual name: %v", err)
	}
	for text, want := range map[string]uint64{`{"metadata":{"total_size":10}}`: 10, `{"metadata":{"total_size":10.0}}`: 10, `{"metadata":{"total_size":-1}}`: 0, `{"metadata":{"total_size":1e300}}`: 0, `{}`: 0, `7`: 0} {
		if got := Total(write(t, map[string][]byte{"model.safetensors.index.json": []byte(text)})); got != want {
			t.Errorf("%s: %d bytes, want %d", text, got, want)
		}
	}
}

func TestOpenErrors(t *testing.T) {
	const index = "model.safetensors.index.json"
	for _, c := range []struct {
		files map[string][]byte
		want  string
	}{
		{nil, "neither model.safetensors nor"},
		{map[string][]byte{"model.safetensors": []byte("x")}, "shorter than 8 bytes"},
		{map[string][]byte{"model.safetensors": []byte("version https://git-lfs.github.com/spec/v1\n")}, "run git lfs pull"},
		{map[string][]byte{index: []byte(`7`)}, "not an index"},
		{map[string][]byte{index: []byte(`{}`)}, "no weight_map"},
		{map[string][]byte{index: []byte(`{"weight_map":{"a":"x.safetensors"}}`)}, "download all shards"},
		{map[string][]byte{index: []byte(`{"weight_map":{"a":"../secret"}}`)}, "not the name of a file beside the index"},
		{map[string][]byte{index: []byte(`{"weight_map":{"a":".."}}`)}, "not the name of a file"},
		{
			map[string][]byte{index: []byte(`{"weight_map":{"a":"x.safetensors","c":"x.safetensors"}}`), "x.safetensors": one("a")},
			`tensor "c" should be in x.safetensors and is not`,
		},
		{
			map[string][]byte{index: []byte(`{"weight_map":{"a":"x.safetensors","b":"y.safetensors"}}`), "x.safetensors": one("a"), "y.safetensors": one("a")},
			`tensor "a" is in x.safetensors and in y.safetensors`,
		},
	} {
		_, err := Open(write(t, c.files))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: %v, want %q", c.files, err, c.want)
		}
	}
	if _, err := Open(filepath.Join(t.TempDir(), "none")); err == nil {
		t.Error("a missing file is no error")
	}
}

func FuzzRead(f *testing.F) {
	f.Add(encode(twoTensors, 36))
	f.Add(one("w"))
	f.Add(encode(`{"w":{"dtype":"F4","shape":[1,2],"data_offsets":[0,1]}}`, 1))
	f.Fuzz(func(t *testing.T, data []byte) {
		list, err := Read(bytes.NewReader(data), int64(len(data)))
		if err != nil {
			if strings.Contains(err.Error(), "\n") {
				t.Errorf("more than one line: %q", err)
			}
			return
		}
		sum := uint64(0)
		for _, x := range list {
			sum += x.Bytes
		}
		if header := binary.LittleEndian.Uint64(data); sum != uint64(len(data))-8-header {
			t.Errorf("%d bytes of tensors in a file of %d", sum, len(data))
		}
	})
}

func FuzzIndex(f *testing.F) {
	f.Add([]byte(`{"weight_map":{"a":"x.safetensors"}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		where, err := parseIndex(data)
		if err != nil {
			return
		}
		for _, file := range where {
			if filepath.Dir(filepath.Join("d", file)) != "d" {
				t.Errorf("%q leaves the folder", file)
			}
		}
	})
}
