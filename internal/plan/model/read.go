package model

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/ashlar-mem/ashlar/internal/guard"
	"github.com/ashlar-mem/ashlar/internal/plan/problem"
)

// maxFile is far above any real config.json; the largest are those of image
// classifiers that list 21,000 labels.
const maxFile = 32 << 20

// Option changes how a file is read.
type Option func(*options)

type options struct{ head string }

// WithHead chooses the head, whatever the file's architectures say: one of
// [Heads]. An empty name leaves it to the file.
func WithHead(name string) Option {
	return func(o *options) { o.head = name }
}

// Open reads a config.json, or the one in a folder.
func Open(path string, opts ...Option) (*Model, error) {
	open := os.Open
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		path, open = filepath.Join(path, "config.json"), guard.Open
	}
	f, err := open(path)
	if err != nil {
		return nil, fmt.Errorf("model config: %w; give a config.json or a folder that holds one", err)
	}
	defer f.Close()
	m, err := Read(f, opts...)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return m, nil
}

// Read reads a config.json.
func Read(r io.Reader, opts ...Option) (*Model, error) {
	var set options
	for _, opt := range opts {
		opt(&set)
	}
	data, err := io.ReadAll(io.LimitReader(r, maxFile+1))
	if err != nil {
		return nil, fmt.Errorf("model config: %w", err)
	}
	if len(data) > maxFile {
		return nil, fmt.Errorf("model config: more than %d MiB: this is no config.json", maxFile>>20)
	}
	top, err := parse(data)
	if err != nil {
		return nil, err
	}
	m := &Model{}
	if err := m.read(top, set); err != nil {
		return nil, err
	}
	return m, nil
}

// parse reads the outermost object.
func parse(data []byte) (map[string]json.RawMessage, error) {
	data = bytes.TrimSpace(data)
	if len(data) == 0 {
		return nil, errors.New("model config: the file is empty; a config.json is one JSON object with a model_type")
	}
	if data[0] != '{' {
		return nil, fmt.Errorf("model config: it begins with %.20q; a config.json is one JSON object with a model_type", data[:1])
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(data, &fields); err != nil {
		var syntax *json.SyntaxError
		if errors.As(err, &syntax) {
			return nil, fmt.Errorf("model config: not JSON at byte %d: %s", syntax.Offset, oneLine(err.Error()))
		}
		return nil, fmt.Errorf("model config: not JSON: %s", oneLine(err.Error()))
	}
	return fields, nil
}

// read fills the model from the outermost object.
func (m *Model) read(top map[string]json.RawMessage, set options) error {
	outer := newFields(m, top, "")
	m.ModelType = outer.word("model_type")
	if outer.err != nil {
		return outer.err
	}
	if m.ModelType == "" {
		if err := outer.otherFile(); err != nil {
			return err
		}
		return fmt.Errorf("model config: no model_type: give the config.json of the model; known families are %s", strings.Join(modelTypes(), ", "))
	}
	fam, ok := familyOf(m.ModelType)
	if !ok {
		return &UnknownError{m.ModelType, top}
	}
	m.Family = fam.name
	inner := outer
	if fam.wrapped(m.ModelType) {
		inner = outer.text(fam)
	}
	arch := outer.architecture()
	if outer != inner && arch == "" {
		arch = inner.architecture()
	}
	if err := m.setHead(fam, arch, set.head); err != nil {
		return err
	}
	for _, f := range []*fields{outer, inner} {
		if err := f.refuse(fam); err != nil {
			return err
		}
	}
	outer.quantised()
	if outer != inner && m.Quantised == "" {
		inner.quantised()
	}
	m.DType = inner.dtype(outer)
	if outer != inner {
		inner.tieFrom(outer, arch)
	}
	fam.read(inner)
	inner.scores()
	inner.ignored(fam)
	for _, f := range []*fields{outer, inner} {
		if f.err != nil {
			return f.err
		}
	}
	return m.check()
}

// otherFile says which file it is that lies beside a config.json, if it is one.
func (f *fields) otherFile() error {
	has := func(name string) bool { _, ok := f.raw[name]; return ok }
	switch {
	case has("_class_name") || has("_diffusers_version"):
		return &UnknownError{f.word("_class_name"), f.raw}
	case has("peft_type"):
		return problem.New("model config: the config of an adapter; give the config.json of %s, and this file with {trainer}", f.word("base_model_name_or_path"))
	case has("tokenizer_class"):
		return errors.New("model config: it seems to be a tokenizer_config.json; give the config.json beside it")
	case has("eos_token_id") && has("transformers_version"):
		return errors.New("model config: it seems to be a generation_config.json; give the config.json beside it")
	}
	return nil
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }
