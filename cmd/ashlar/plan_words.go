package main

import (
	"maps"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/ashlar-mem/ashlar/internal/plan/recipe"
)

// foreignValue is a flag of another tool, and its value.
type foreignValue struct{ key, value string }

// foreignFlag is a flag that plan takes because another tool has it. It is read
// with that tool's files, which must come first.
type foreignFlag struct {
	to  *planOptions
	key string
	is  string
}

func (f *foreignFlag) Set(value string) error {
	f.is = value
	f.to.foreign = append(f.to.foreign, foreignValue{f.key, value})
	return nil
}

func (f *foreignFlag) Type() string   { return "VALUE" }
func (f *foreignFlag) String() string { return f.is }

// addForeign adds other tools' flags, of which help lists only one.
func (o *planOptions) addForeign(flags *pflag.FlagSet) {
	keys := recipe.Keys()
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		name := strings.ReplaceAll(key, "_", "-")
		if len(name) < 2 || flags.Lookup(name) != nil {
			continue
		}
		f := flags.VarPF(&foreignFlag{to: o, key: key}, name, "", "")
		f.Hidden = name != numGPUs
		if keys[key] {
			f.NoOptDefVal = "true"
		}
	}
	flags.Lookup(numGPUs).Usage = "`N` GPUs share the job: as a file says, or with DDP"
}

// flagAliases are vLLM's longer names of flags that plan has.
var flagAliases = map[string]string{"tensor-parallel-size": "tp", "kv-cache-dtype": "kv-dtype"}

const numGPUs = "num-gpus"

// recipe reads what other tools' files and flags say.
func (o *planOptions) recipe(std stdio) (*recipe.Recipe, error) {
	r := recipe.New(o.given)
	r.MayRead = std.agent.mayRead
	for _, f := range []struct {
		name string
		read func(string) error
	}{{o.accelerate, r.Accelerate}, {o.deepspeed, r.DeepSpeed}, {o.trainer, r.Trainer}} {
		if f.name != "" {
			if err := f.read(f.name); err != nil {
				return r, err
			}
		}
	}
	for _, f := range o.foreign {
		if err := r.Flag(f.key, f.value); err != nil {
			return r, err
		}
	}
	return r, nil
}
