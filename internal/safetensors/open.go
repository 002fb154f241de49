package safetensors

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/ashlar-mem/ashlar/internal/guard"
)

// The names that libraries give the files of a checkpoint: transformers the first,
// diffusers the second. A variant, such as fp16, stands before the ending.
var stems = []string{"model", "diffusion_pytorch_model"}

const (
	ending   = ".safetensors"
	indexEnd = ".safetensors.index.json"
	maxIndex = 64 << 20
)

// Open reads the tensors of a .safetensors file, of an index, or of a folder
// that holds a checkpoint: its shards, in the order of their names.
func Open(path string) ([]Tensor, error) {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return nil, fmt.Errorf("checkpoint: %w", err)
	case info.IsDir():
		return openFolder(path)
	}
	if strings.HasSuffix(path, ".index.json") { // which may be a pipe, as its name was given
		return openIndex(path)
	}
	return openFile(path)
}

// openFolder prefers the index: a single file beside it would be the same
// checkpoint saved twice. A variant is taken where there is nothing else.
func openFolder(dir string) ([]Tensor, error) {
	index, single := find(dir)
	if err := guard.Check(index); err != nil { // of a single file openFile says it
		return nil, err
	}
	switch {
	case index != "":
		return openIndex(index)
	case single != "":
		return openFile(single)
	}
	return nil, absent(fmt.Sprintf("%s: neither %s nor %s in this folder", dir, stems[0]+ending, stems[0]+indexEnd))
}

// absent says which files of a checkpoint are not there.
type absent string

func (a absent) Error() string { return string(a) }

// Is reports whether it is one of io/fs's errors.
func (a absent) Is(target error) bool { return target == fs.ErrNotExist }

// find returns the index of a folder's checkpoint, or else its only file.
func find(dir string) (index, single string) {
	for _, stem := range stems {
		for _, variant := range []string{"", ".fp16", ".bf16"} {
			for _, name := range []string{stem + indexEnd, stem + ".safetensors.index" + variant + ".json", stem + variant + indexEnd} {
				if path := filepath.Join(dir, name); exists(path) {
					return path, ""
				}
			}
			if path := filepath.Join(dir, stem+variant+ending); exists(path) {
				return "", path
			}
		}
	}
	var all []string
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), ending) {
			all = append(all, filepath.Join(dir, e.Name()))
		}
	}
	if len(all) == 1 {
		return "", all[0]
	}
	return "", ""
}

// Has reports whether a folder holds a checkpoint.
func Has(dir string) bool {
	index, single := find(dir)
	return index != "" || single != ""
}

// Total returns what the index of a folder's checkpoint says about its size, for
// checkpoints whose files are not there; 0 if it does not say.
func Total(dir string) uint64 {
	index, _ := find(dir)
	if index == "" {
		return 0
	}
	data, err := guard.ReadRegular(index, maxIndex>>20, "index")
	if err != nil {
		return 0
	}
	var said struct {
		Metadata struct {
			Total float64 `json:"total_size"`
		} `json:"metadata"`
	}
	if json.Unmarshal(data, &said) != nil || !(said.Metadata.Total > 0 && said.Metadata.Total < 1<<60) {
		return 0
	}
	return uint64(said.Metadata.Total)
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func openFile(path string) ([]Tensor, error) {
	f, err := guard.Open(path)
	if err != nil {
		return nil, fmt.Errorf("checkpoint: %w", err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, fmt.Errorf("checkpoint: %w", err)
	}
	list, err := Read(f, info.Size())
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	for i := range list {
		list[i].File = filepath.Base(path)
	}
	return list, nil
}

// openIndex reads all shards that an index names and checks that they hold
// what it says.
func openIndex(path string) ([]Tensor, error) {
	data, err := guard.ReadFile(path, maxIndex>>20, "index")
	if err != nil {
		return nil, fmt.Errorf("checkpoint: %w", err)
	}
	where, err := parseIndex(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	shards := slices.Sorted(maps.Values(where))
	shards = slices.Compact(shards)
	var out []Tensor
	found := map[string]string{}
	for _, shard := range shards {
		list, err := openFile(filepath.Join(filepath.Dir(path), shard))
		if errors.Is(err, fs.ErrNotExist) {
			return nil, absent(fmt.Sprintf("%s: it names %q, which is not there: download all shards", path, shard))
		}
		if err != nil {
			return nil, err
		}
		for _, t := range list {
			if other, twice := found[t.Name]; twice {
				return nil, fmt.Errorf("%s: tensor %q is in %s and in %s", path, short(t.Name), other, shard)
			}
			found[t.Name] = shard
		}
		out = append(out, list...)
	}
	for _, name := range sorted(where) {
		if found[name] != where[name] {
			return nil, fmt.Errorf("%s: tensor %q should be in %s and is not", path, short(name), where[name])
		}
	}
	return out, nil
}

// parseIndex returns which file holds each tensor.
func parseIndex(data []byte) (map[string]string, error) {
	var index struct {
		Where weightMap `json:"weight_map"`
	}
	if err := json.Unmarshal(data, &index); err != nil {
		return nil, fmt.Errorf("not an index: %s", oneLine(err))
	}
	if len(index.Where) == 0 {
		return nil, errors.New("not an index: it has no weight_map")
	}
	for _, name := range sorted(index.Where) {
		// A shard lies beside the index. Anything else could read any file.
		file := index.Where[name]
		if file == "" || file != filepath.Base(file) || strings.ContainsAny(file, `/\`) || file == ".." || file == "." {
			return nil, fmt.Errorf("tensor %q: %q is not the name of a file beside the index", short(name), short(file))
		}
	}
	return index.Where, nil
}

// weightMap is the file of each tensor.
type weightMap map[string]string

func (w *weightMap) UnmarshalJSON(text []byte) error {
	if text[0] != '{' {
		return errors.New("weight_map is not an object")
	}
	*w = weightMap{}
	return members(text, func(name string, value json.RawMessage) error {
		var file string
		if err := json.Unmarshal(value, &file); err != nil {
			return err
		}
		if (*w)[name] = file; len(*w) > maxTensors {
			return errTensors
		}
		return nil
	})
}

func sorted(m map[string]string) []string {
	names := make([]string, 0, len(m))
	for name := range m {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
