package checkpoint

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strings"

	"github.com/ashlar-mem/ashlar/internal/guard"
	"github.com/ashlar-mem/ashlar/internal/plan/model"
	"github.com/ashlar-mem/ashlar/internal/safetensors"
)

// Checkpoint is a model, or a pipeline of several.
type Checkpoint struct {
	Class    string
	Pipeline bool
	Parts    []Part
}

// Part is one model.
type Part struct {
	Name   string // its folder in a pipeline; empty if it stands alone
	Class  string
	Config map[string]json.RawMessage // nil if there is none
	// Tensors are from the headers of its files. Without files Bytes may be their
	// size, from an index.
	Tensors []safetensors.Tensor
	Bytes   uint64
	Damaged error // why files that are there were not read, if Bytes is from an index
	// Denoiser: it is what diffusers' scripts train; the rest of a pipeline is
	// frozen.
	Denoiser bool
}

// Known reports whether the size of its weights is known.
func (p *Part) Known() bool { return len(p.Tensors) > 0 || p.Bytes > 0 }

// Quantised reports whether the config says that the weights are.
func (p *Part) Quantised() bool {
	var fields map[string]json.RawMessage
	return json.Unmarshal(p.Config["quantization_config"], &fields) == nil && len(fields) > 0
}

const (
	pipelineIndex = "model_index.json"
	configName    = "config.json"
	weightsEnd    = ".safetensors"
	indexEnd      = ".safetensors.index.json"
	maxFile       = 32 << 20
)

// Stands reports whether a path is a checkpoint without a config.json of
// transformers: a pipeline of diffusers, its model_index.json, a safetensors file
// or a folder of them.
func Stands(path string) bool {
	name := filepath.Base(path)
	if name == pipelineIndex || isFile(path) && (strings.HasSuffix(name, weightsEnd) || strings.HasSuffix(name, indexEnd)) {
		return true
	}
	if isFile(path) || isFile(filepath.Join(path, configName)) {
		return false
	}
	return isFile(filepath.Join(path, pipelineIndex)) || safetensors.Has(path)
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && !info.IsDir()
}

// Open reads a config.json, a folder, a safetensors file or an index of one, or a
// pipeline.
func Open(path string) (*Checkpoint, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("model: %w", err)
	}
	dir, name := path, ""
	if !info.IsDir() {
		dir, name = filepath.Split(path)
	}
	switch {
	case name == pipelineIndex || name == "" && isFile(filepath.Join(dir, pipelineIndex)) && !isFile(filepath.Join(dir, configName)):
		return openPipeline(dir)
	case strings.HasSuffix(name, weightsEnd) || strings.HasSuffix(name, indexEnd):
		tensors, err := safetensors.Open(path)
		if err != nil {
			return nil, err
		}
		return &Checkpoint{Class: name, Parts: []Part{{Class: name, Tensors: tensors}}}, nil
	}
	if name == "" {
		name = configName
	}
	config, err := readConfig(filepath.Join(dir, name))
	if err != nil && !(info.IsDir() && errors.Is(err, fs.ErrNotExist)) {
		return nil, err
	}
	p, err := openPart(dir, config)
	if err != nil {
		return nil, err
	}
	if config == nil && !p.Known() {
		return nil, fmt.Errorf("%s: neither a %s, a %s nor a safetensors file in this folder", path, configName, pipelineIndex)
	}
	return &Checkpoint{Class: p.Class, Parts: []Part{p}}, nil
}

// New is the checkpoint of a config alone.
func New(e *model.UnknownError) *Checkpoint {
	return &Checkpoint{Class: e.Class(), Parts: []Part{{Class: e.Class(), Config: e.Config, Denoiser: e.Diffusers()}}}
}

func readConfig(path string) (map[string]json.RawMessage, error) {
	data, err := guard.ReadRegular(path, maxFile>>20, "config")
	if err != nil {
		return nil, fmt.Errorf("model config: %w", err)
	}
	fields, err := model.Parse(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return fields, nil
}

// openPart reads the weights beside a config. Files that are not all there leave
// the size that their index has.
func openPart(dir string, config map[string]json.RawMessage) (Part, error) {
	p := Part{Config: config, Class: className(config)}
	if p.Class == "" {
		p.Class = filepath.Base(filepath.Clean(dir))
	}
	tensors, err := safetensors.Open(filepath.Clean(dir))
	if err == nil {
		p.Tensors = tensors
		return p, nil
	}
	var refused *guard.RefusedError
	if errors.As(err, &refused) {
		return p, err
	}
	p.Bytes = safetensors.Total(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return p, nil
	}
	if p.Bytes == 0 {
		return p, err
	}
	p.Damaged = err
	return p, nil
}

// className is the class that a config names.
func className(config map[string]json.RawMessage) string {
	var classes []string
	if json.Unmarshal(config["architectures"], &classes) == nil && len(classes) > 0 {
		return classes[0]
	}
	for _, name := range []string{"_class_name", "model_type"} {
		var class string
		if json.Unmarshal(config[name], &class) == nil && class != "" {
			return class
		}
	}
	return ""
}

// denoisers are the components that diffusers' training scripts train.
var denoisers = []string{"unet", "transformer", "transformer_2", "prior"}

// openPipeline reads the components that a model_index.json names: each is a
// list of its library and its class.
func openPipeline(dir string) (*Checkpoint, error) {
	path := filepath.Join(dir, pipelineIndex)
	index, err := readConfig(path)
	if err != nil {
		return nil, err
	}
	c := &Checkpoint{Class: className(index), Pipeline: true}
	var names []string
	for name := range index {
		names = append(names, name)
	}
	sort.Strings(names)
	for _, name := range names {
		var what []string
		if json.Unmarshal(index[name], &what) != nil || len(what) != 2 || !filepath.IsLocal(name) {
			continue
		}
		folder := filepath.Join(dir, name)
		config, err := readConfig(filepath.Join(folder, configName))
		switch {
		case errors.Is(err, fs.ErrNotExist) && !isModel(what[1]): // tokenizers and schedulers have none
			continue
		case err != nil && !errors.Is(err, fs.ErrNotExist):
			return nil, err
		}
		p, err := openPart(folder, config)
		if err != nil {
			return nil, err
		}
		p.Name, p.Class = name, what[1]
		p.Denoiser = slices.Contains(denoisers, name)
		if p.Known() || isModel(what[1]) {
			c.Parts = append(c.Parts, p)
		}
	}
	if len(c.Parts) == 0 {
		return nil, fmt.Errorf("%s: it names no component with weights", path)
	}
	return c, nil
}

// isModel reports whether a class has weights, by its name.
func isModel(class string) bool {
	for _, other := range []string{"Tokenizer", "Scheduler", "Processor", "Extractor", "TokenizerFast", "Guider"} {
		if strings.HasSuffix(class, other) {
			return false
		}
	}
	return class != ""
}
