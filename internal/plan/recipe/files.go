package recipe

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/ashlar-mem/ashlar/internal/guard"
	"github.com/ashlar-mem/ashlar/internal/plan"
	"github.com/ashlar-mem/ashlar/internal/yaml"
)

// maxFile is far above any real configuration.
const maxFile = 4 << 20

// read reads a file of JSON or YAML, whatever it is called.
func (r *Recipe) read(path string) (yaml.Value, error) {
	if r.MayRead != nil {
		if err := r.MayRead(path); err != nil {
			return yaml.Value{}, err
		}
	}
	data, err := guard.ReadFile(path, maxFile>>20, "configuration")
	if err != nil {
		return yaml.Value{}, err
	}
	parse := yaml.Parse
	if text := strings.TrimSpace(string(data)); strings.HasPrefix(text, "{") || strings.EqualFold(filepath.Ext(path), ".json") {
		parse = yaml.ParseJSON
	}
	v, err := parse(data)
	if err != nil {
		return v, fmt.Errorf("%s: %w", path, err)
	}
	if v.Kind != yaml.Map {
		return v, fmt.Errorf("%s: it has no keys; give a file of JSON or YAML with one mapping", path)
	}
	return v, nil
}

// begin makes a file the one that is read.
func (r *Recipe) begin(path string) {
	r.keys = 0
	r.source = &plan.Source{File: path, Used: []string{}, NoEffect: []string{}, NotPlanned: []string{}, Unknown: []string{}}
	r.Sources = append(r.Sources, r.source)
}

// Trainer reads a file of TrainingArguments, of axolotl or of LLaMA-Factory.
func (r *Recipe) Trainer(path string) error {
	v, err := r.read(path)
	if err != nil {
		return err
	}
	r.begin(path)
	r.trainer = true
	kind := kindOf(&v)
	switch {
	case kind == "accelerate" || kind == "deepspeed":
		return fmt.Errorf("%s looks like a config of %s; give it with --%s", path, kind, kind)
	case kind == "model":
		return fmt.Errorf("%s looks like a model's config.json; give it without a flag", path)
	}
	r.kind, r.batch = kind, kind != "axolotl"
	if err := r.apply(v, "", func(key string) rule { return trainerRule(kind, key) }); err != nil {
		return err
	}
	if d, ok := v.Get("deepspeed"); ok && d.Kind == yaml.Scalar && d.Text != "" {
		if err := r.deepSpeedBeside(path, d.Text); err != nil {
			return fmt.Errorf("%s: deepspeed: %w", path, err)
		}
	}
	return nil
}

// beside finds a file that another one names: from where the program runs, which
// may be any folder that the other one lies in.
func beside(path, name string) string {
	if _, err := os.Stat(name); err == nil || filepath.IsAbs(name) {
		return name
	}
	at, err := filepath.Abs(path)
	if err != nil {
		return name
	}
	for dir := filepath.Dir(at); ; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, name)); err == nil {
			return filepath.Join(dir, name)
		}
		if dir == filepath.Dir(dir) {
			return name
		}
	}
}

// kindOf tells whose file it is.
func kindOf(v *yaml.Value) string {
	for _, k := range []struct {
		kind string
		keys []string
	}{
		{"accelerate", []string{"compute_environment", "distributed_type"}},
		{"deepspeed", []string{"zero_optimization", "train_micro_batch_size_per_gpu"}},
		{"axolotl", []string{"base_model", "micro_batch_size", "sequence_len"}},
		{"llama-factory", []string{"finetuning_type", "cutoff_len", "stage"}},
		{"model", []string{"architectures", "hidden_size", "num_hidden_layers"}},
	} {
		if slices.ContainsFunc(k.keys, func(key string) bool { _, ok := v.Get(key); return ok }) {
			return k.kind
		}
	}
	return "transformers"
}

// Accelerate reads what accelerate config writes.
func (r *Recipe) Accelerate(path string) error {
	v, err := r.read(path)
	if err != nil {
		return err
	}
	r.begin(path)
	if err := r.apply(v, "", accelerateRule); err != nil {
		return err
	}
	if ds, ok := v.Get("deepspeed_config"); ok {
		if name, ok := ds.Get("deepspeed_config_file"); ok && name.Text != "" {
			if err := r.deepSpeedBeside(path, name.Text); err != nil {
				return fmt.Errorf("%s: deepspeed_config_file: %w", path, err)
			}
		}
	}
	return nil
}

// DeepSpeed reads a config of DeepSpeed.
func (r *Recipe) DeepSpeed(path string) error {
	v, err := r.read(path)
	if err != nil {
		return err
	}
	r.begin(path)
	r.strategy = "zero"
	r.stage = max(r.stage, 0)
	return r.apply(v, "", deepspeedRule)
}

// deepSpeedBeside reads a config that another file names.
func (r *Recipe) deepSpeedBeside(path, name string) error {
	named := beside(path, name)
	if err := guard.Check(named); err != nil {
		return err
	}
	return r.DeepSpeed(named)
}

// Flag reads a key that was given as a flag. Flags come after files and override
// them.
func (r *Recipe) Flag(key, value string) error {
	if !r.flags {
		r.begin("the command line")
		r.flags = true
	}
	do := trainerRule("transformers", key)
	if do == nil {
		return fmt.Errorf("--%s is not known", dashed(key))
	}
	v := yaml.Value{Kind: yaml.Scalar, Text: value}
	if err := r.one(do, "--"+dashed(key), v); err != nil {
		return err
	}
	return nil
}

func dashed(key string) string { return strings.ReplaceAll(key, "_", "-") }
