package recipe

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/ashlar-mem/ashlar/internal/plan"
	"github.com/ashlar-mem/ashlar/internal/plan/words"
	"github.com/ashlar-mem/ashlar/internal/yaml"
)

// Recipe is what files and flags say about a run.
type Recipe struct {
	// Model is the one that a file names; empty if none does.
	Model string
	// Sources say what became of each file's keys.
	Sources []*plan.Source
	// MayRead says why a file may not be read, which another one may have named;
	// nil if all may be.
	MayRead func(path string) error

	kept    func(option string) bool
	options map[string]chosen
	notes   []note
	source  *plan.Source // the one that is read
	keys    int          // of it
	flags   bool         // flags override files

	kind       string // of a file for Trainer: see kindOf
	trainer    bool   // a file of transformers' Trainer, or of a tool on top of it
	batch      bool   // TrainingArguments have a default batch
	mixed      string // bf16 or fp16: mixed precision
	pure       bool   // no mixed precision, whatever else is said
	bits       int    // of bitsandbytes' weights; 0 if they are not quantised
	type4      string // nf4 or fp4
	double     bool   // scales are quantised too
	single     bool   // they are said not to be
	ranks      int
	strategy   string // ddp, fsdp, zero
	stage      int    // of ZeRO
	peft       bool   // adapters are PEFT's
	adapters   string // lora or full, as a file says
	fp32       bool   // adapters of PEFT are fp32
	globalSize int64  // DeepSpeed's train_batch_size
	reentrant  bool   // use_reentrant
	everyN     int    // every_n_layers; 0 if nobody said
	generates  bool   // it is no training
	loop       bool   // what is said needs Trainer's loop
	evaluates  bool   // between steps
	evalBatch  int64  // 0 if nobody said
}

// chosen is an option's value, and who chose it.
type chosen struct {
	value string
	by    string
	word  string // what the value was called; empty if it was called so
}

// note is what is worth knowing about the choice of an option.
type note struct{ option, text string }

// New returns an empty recipe. kept reports whether one of plan's options was
// given, also if it was given to be left out: it overrides what the recipe says.
func New(kept func(option string) bool) *Recipe {
	return &Recipe{kept: kept, options: map[string]chosen{}, stage: -1, fp32: true}
}

// refusal is an error about what an option is for.
type refusal struct {
	option string
	error
}

func about(option, format string, args ...any) error {
	return &refusal{option, fmt.Errorf(format, args...)}
}

// outcome is what became of a key.
type outcome struct {
	as        string // what it is taken as
	noEffect  bool   // on memory
	unplanned string // an effect that is not planned
}

// rule reads the value of a key. An error refuses it.
type rule func(r *Recipe, key string, v yaml.Value) (outcome, error)

// maxKeys and maxKey are far above any real configuration: each key of a file is told, with those around it.
const maxKeys, maxKey = 10_000, 1_000

// apply reads the keys of a mapping. A rule is looked up by the whole path of a
// key, such as zero_optimization.stage; a mapping without one by what is in it.
func (r *Recipe) apply(v yaml.Value, path string, rules func(key string) rule) error {
	for _, e := range v.Entries {
		key := path + e.Key
		if r.keys++; r.keys > maxKeys || len(key) > maxKey {
			return fmt.Errorf("%s:%d: more than %d keys, or one of more than %d bytes: this is no configuration", r.source.File, e.Line, maxKeys, maxKey)
		}
		do := rules(key)
		switch {
		case (do == nil || key == "deepspeed") && e.Value.Kind == yaml.Map && len(e.Value.Entries) > 0:
			if err := r.apply(e.Value, key+".", rules); err != nil {
				return err
			}
			continue
		case do == nil && e.Value.Kind == yaml.Map:
			r.source.NoEffect = append(r.source.NoEffect, key) // empty
			continue
		case do == nil:
			r.source.Unknown = append(r.source.Unknown, key)
			continue
		}
		if err := r.one(do, key, e.Value); err != nil {
			return fmt.Errorf("%s:%d: %w", r.source.File, e.Line, err)
		}
	}
	return nil
}

// one applies the rule of a key.
func (r *Recipe) one(do rule, key string, v yaml.Value) error {
	if v.Kind == yaml.Null || v.Text == "auto" && v.Kind == yaml.Scalar && key != "bf16" {
		r.source.NoEffect = append(r.source.NoEffect, key) // whoever reads it decides
		return nil
	}
	out, err := do(r, key, v)
	var x *refusal
	switch {
	case errors.As(err, &x) && r.kept(x.option):
		r.source.Used = append(r.source.Used, fmt.Sprintf("%s: %s: --%s overrides it", key, show(v), x.option))
	case err != nil:
		return fmt.Errorf("%s: %s: %w", key, show(v), err)
	case out.unplanned != "":
		r.source.NotPlanned = append(r.source.NotPlanned, fmt.Sprintf("%s: %s: %s", key, show(v), out.unplanned))
	case out.noEffect:
		r.source.NoEffect = append(r.source.NoEffect, key)
	default:
		r.source.Used = append(r.source.Used, fmt.Sprintf("%s: %s: %s", key, show(v), out.as))
	}
	return nil
}

// show writes a value for a message, shortened.
func show(v yaml.Value) string {
	text := shown(v, 2*maxShown)
	if len(text) > maxShown {
		return text[:maxShown] + "..."
	}
	return text
}

// shown writes the first bytes of a value, and a little more.
func shown(v yaml.Value, most int) string {
	var b strings.Builder
	switch v.Kind {
	case yaml.Null:
		return "null"
	case yaml.List:
		b.WriteString("[")
		for i := 0; i < len(v.Items) && b.Len() <= most; i++ {
			if i > 0 {
				b.WriteString(", ")
			}
			b.WriteString(shown(v.Items[i], most))
		}
		b.WriteString("]")
	case yaml.Map:
		b.WriteString("{")
		for i := 0; i < len(v.Entries) && b.Len() <= most; i++ {
			if i > 0 {
				b.WriteString(", ")
			}
			e := v.Entries[i]
			b.WriteString(e.Key[:min(len(e.Key), most)] + ": " + shown(e.Value, most))
		}
		b.WriteString("}")
	default:
		return v.Text[:min(len(v.Text), most)]
	}
	return b.String()
}

// maxShown is how much of a value a message repeats.
const maxShown = 60

// set chooses an option. Two files that disagree are an error; a flag overrides
// both.
func (r *Recipe) set(name, value string) (outcome, error) {
	var probe plan.Options
	if err := probe.Set(name, value); err != nil {
		return outcome{}, about(name, "%w", unquoted(err, value))
	}
	called := value
	value = probe.Get(name)
	was, twice := r.options[name]
	if twice && !r.flags && was.by != r.source.File && was.value != value {
		return outcome{}, about(name, "%s says %s; let both files say the same", was.by, orNone(was.value))
	}
	r.options[name] = chosen{value, r.source.File, called}
	return outcome{as: "--" + name + switchText(value)}, nil
}

func switchText(value string) string {
	switch value {
	case "true":
		return ""
	case "":
		return " left out"
	}
	return " " + value
}

func orNone(value string) string {
	if value == "" {
		return "nothing"
	}
	return value
}

// unquoted drops the value from the beginning of an error that repeats it.
func unquoted(err error, value string) error {
	return fmt.Errorf("%s", strings.TrimPrefix(err.Error(), strconv.Quote(value)+": "))
}

// The rules that many keys share.

// number sets an option to a whole number.
func number(option string) rule {
	return func(r *Recipe, _ string, v yaml.Value) (outcome, error) {
		n, err := whole(v)
		if err != nil {
			return outcome{}, err
		}
		return r.set(option, strconv.FormatInt(n, 10))
	}
}

// whole reads a whole number, which Python may write as 4.0 or 5e8.
func whole(v yaml.Value) (int64, error) {
	f, err := strconv.ParseFloat(strings.ReplaceAll(v.Text, "_", ""), 64)
	if err != nil || f != math.Trunc(f) || math.Abs(f) > 1<<53 {
		return 0, fmt.Errorf("write a whole number")
	}
	return int64(f), nil
}

// truth reads a switch.
func truth(v yaml.Value) (bool, error) {
	if on, ok := words.Switch(v.Text); ok && v.Kind == yaml.Scalar {
		return on, nil
	}
	return false, fmt.Errorf("write true or false")
}

// given reports whether a value turns something on: it is not false, 0, "no" or
// empty.
func given(v yaml.Value) bool {
	switch v.Kind {
	case yaml.Scalar:
		on, ok := words.Switch(v.Text)
		n, err := strconv.ParseFloat(v.Text, 64)
		return v.Text != "" && !(ok && !on) && !(err == nil && n == 0)
	case yaml.List:
		return len(v.Items) > 0
	case yaml.Map:
		return len(v.Entries) > 0
	}
	return false
}

// word sets an option to a word, in whoever's spelling.
func word(option string) rule {
	return func(r *Recipe, _ string, v yaml.Value) (outcome, error) {
		if v.Kind != yaml.Scalar {
			return outcome{}, fmt.Errorf("write one word")
		}
		return r.set(option, v.Text)
	}
}

// none is a key without an effect on memory.
func none(*Recipe, string, yaml.Value) (outcome, error) { return outcome{noEffect: true}, nil }

// when does something for a switch that is on.
func when(do func(r *Recipe) (outcome, error)) rule {
	return func(r *Recipe, _ string, v yaml.Value) (outcome, error) {
		if on, err := truth(v); err != nil || !on {
			return outcome{noEffect: true}, err
		}
		return do(r)
	}
}

// on sets an option if a switch is on.
func on(option, value string) rule {
	return when(func(r *Recipe) (outcome, error) { return r.set(option, value) })
}

// unplanned has an effect on memory that a plan leaves out.
func unplanned(what string) rule {
	return func(_ *Recipe, _ string, v yaml.Value) (outcome, error) {
		if !given(v) {
			return outcome{noEffect: true}, nil
		}
		return outcome{unplanned: what}, nil
	}
}

// refuse is about a run that a plan without it would not describe.
func refuse(why string) rule {
	return func(_ *Recipe, _ string, v yaml.Value) (outcome, error) {
		if !given(v) {
			return outcome{noEffect: true}, nil
		}
		return outcome{}, fmt.Errorf("%s", why)
	}
}

// taken notes a fact that the whole recipe makes use of.
func taken(do func(r *Recipe, v yaml.Value) (string, error)) rule {
	return func(r *Recipe, _ string, v yaml.Value) (outcome, error) {
		as, err := do(r, v)
		return outcome{as: as, noEffect: as == ""}, err
	}
}

// list returns the words of a list, or of a text with commas or blanks.
func list(v yaml.Value) []string {
	var out []string
	switch v.Kind {
	case yaml.List:
		for _, i := range v.Items {
			out = append(out, i.Text)
		}
	case yaml.Scalar:
		out = strings.FieldsFunc(v.Text, func(c rune) bool { return c == ',' || c == ' ' })
	}
	return slices.DeleteFunc(out, func(s string) bool { return s == "" })
}
