package plan

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/ashlar-mem/ashlar/internal/plan/hf"
	"github.com/ashlar-mem/ashlar/internal/plan/model"
	"github.com/ashlar-mem/ashlar/internal/plan/words"
)

// Options say how a model is run, in the words of the command line. The zero
// value has nothing set; what is not set gets a default that the answer lists.
type Options struct {
	values map[string]string
	notes  map[string]string // what is worth knowing about a value, by option
}

// Option describes one of the options.
type Option struct {
	Name  string
	Value string // what stands behind it; empty for a switch
	Usage string
	rule  *rule // nil: anything
}

// rule says what may be written for an option.
type rule struct {
	check       func(value string) error
	words       []string // it is one of these,
	numbered    []string // or one of these with a number, as in static:512
	least, most int64    // or a number from least to most, if most is not 0
}

// Words are the values that an option may have; those of Numbered take a
// number, as in chunked:1024. Both are empty for numbers and for free text.
func (o Option) Words() []string {
	if o.rule == nil {
		return nil
	}
	return slices.Clone(o.rule.words)
}

// Numbered are the words that stand before a number.
func (o Option) Numbered() []string {
	if o.rule == nil {
		return nil
	}
	return slices.Clone(o.rule.numbered)
}

// Bounds are those of an option that is a number; most is 0 if it is none.
func (o Option) Bounds() (least, most int64) {
	if o.rule == nil {
		return 0, 0
	}
	return o.rule.least, o.rule.most
}

// Mode is the one that an option is for; empty if it is for all.
func (o Option) Mode() model.Mode {
	for mode, names := range ofMode {
		if slices.Contains(names, o.Name) {
			return mode
		}
	}
	return ""
}

// ofMode are the options that one mode alone has.
var ofMode = map[model.Mode][]string{
	model.Train: {
		"target-seq", "autocast", "optimizer", "master-weights", "zero-grad", "clip", "accumulate", "recompute", "loss", "hold-output", "use-cache",
		"lora", "lora-targets", "lora-dtype", "lora-as", "lora-dropout", "build", "save", "offload", "loop", "label-smoothing", "eval-batch", "eval-keep",
		"eval-accumulation", "empty-cache",
	},
	model.Generate: {"generate", "generate-call", "cache"},
}

// catalogue lists the options in the order of the help text.
var catalogue = []Option{
	{"batch", "B", "sequences (or pictures) per step on one GPU; with --accumulate, per part", checkCount(1, maxCount)},
	{"seq", "S", "tokens per sequence; of the prompt when generating. Not for vit", checkCount(1, maxSeq)},
	{"target-seq", "S", "tokens of an encoder-decoder's target; by default as many as --seq", checkCount(1, maxSeq)},
	{"dtype", "TYPE", "type of the weights: fp32, bf16 or fp16; by default that of the --weights files, else the\nconfig's", checkOneOf(model.FP32, model.BF16, model.FP16)},
	{"quant", "HOW", "quantised weights: " + strings.Join(model.QuantNames, ", ") + "; none is dequantised. By\ndefault the config's quantization_config", checkOneOf(append(slices.Clone(model.QuantNames), noQuant)...)},
	{"autocast", "", "matrix products in bf16 over weights of --dtype, which then defaults to fp32", nil},
	{"optimizer", "NAME", "adamw-fused, adamw-foreach, adamw (a loop), adam-..., sgd, sgd-momentum,\nsgd-momentum-fused, adafactor; of bitsandbytes adamw-8bit, lion-8bit, lion-32bit,\nrmsprop-bnb, rmsprop-bnb-8bit, and paged-adamw-8bit, -32bit, paged-lion-8bit, -32bit", checkOneOf(optimizers...)},
	{"master-weights", "", "the optimizer works on fp32 copies of the weights", nil},
	{"zero-grad", "HOW", "none (set to None after the step), before (before the forward pass), keep (zeros)", checkOneOf(model.ZeroNone, model.ZeroBefore, model.ZeroKeep)},
	{"clip", "", "clip the norm of the gradients before the step", nil},
	{"accumulate", "N", "accumulate the gradients of a step over N parts", checkCount(1, 1<<20)},
	{"recompute", "HOW", "none, full, reentrant (full, with use_reentrant=True), selective (keep matrix products\nand attention), every:K (runs of K layers), sqrt (runs of sqrt(L)), groups:LIST, or best (least extra compute that\nfits)", checkRecompute()},
	{"attention", "HOW", "flash, efficient, math, cudnn, eager, or sdpa: what torch 2.11 picks", checkOneOf(model.SDPA, model.Flash, model.Efficient, model.Math, model.CuDNN, model.Eager)},
	{"mask", "HOW", "padding in the batch: none, left, right, or ones (a mask without padding)", checkOneOf(model.NoMask, model.LeftMask, model.RightMask, model.OnesMask)},
	{"loss", "HOW", "plain, or chunked:N (N tokens at a time, recomputed in the backward pass)", checkNumbered([]string{"plain"}, []string{"chunked"})},
	{"hold-output", "", "the program keeps the model's output, logits among it, until the next step", nil},
	{"use-cache", "", "a training step builds a key-value cache", nil},
	{"lora", "R", "adapters of rank R on frozen weights", checkCount(1, 1<<16)},
	{"lora-targets", "NAMES", "Linears with adapters, by name with commas; by default all but the head", nil},
	{"lora-dtype", "TYPE", "type of the adapters; by default fp32, as PEFT makes them", checkOneOf(model.FP32, model.BF16, model.FP16)},
	{"lora-as", "HOW", "peft, or plain: two products of the weights' type beside each Linear", checkOneOf(adaptersPEFT, adaptersPlain)},
	{"lora-dropout", "", "PEFT's adapters drop elements of their input", nil},
	{"mode", "MODE", "train or generate", checkOneOf(model.Train, model.Generate)},
	{"generate", "N", "tokens to generate; implies --mode generate", checkCount(1, maxTokens)},
	{"generate-call", "", "tokens come from transformers' generate(), not from a loop of forward calls", nil},
	{"cache", "HOW", "dynamic, or static:LEN", checkNumbered([]string{"dynamic"}, []string{"static"})},
	{"shard", "HOW", "ddp:N, ddp-view:N, fsdp:N, fsdp-mixed:N (bf16 over fp32), zero1:N, zero2:N, zero3:N,\ntp:N, sp:N, pp:N, cp:N, ep:N; several with commas", &rule{check: checkShard, words: []string{"none"}, numbered: shardWords}},
	{"build", "HOW", "sharded: each rank makes only its shard (meta device, zero.Init); whole: the model is\nbuilt on every GPU first, as from_config under torch.device('cuda') does", checkOneOf(buildWhole, buildSharded)},
	{"offload", "WHAT", "what is kept on the host: optimizer (state, master weights and gradients; DeepSpeed's\noffload_optimizer), params (the weights too; offload_param, FSDP's CPUOffloadPolicy)", checkOneOf(offloadOptimizer, offloadParams)},
	{"save", "HOW", "a checkpoint after each step: none, torch (torch.save(state_dict())), sync (a copy on\nthe GPU first), async (through pinned host memory)", checkOneOf(model.SaveNone, model.SaveTorch, model.SaveSync, model.SaveAsync)},
	{"loop", "HOW", "the training loop: plain, or " + hf.TrainerPreset + ", transformers' Trainer, which --trainer FILE\nchooses", checkOneOf(loopPlain, hf.TrainerPreset)},
	{"label-smoothing", "", "Trainer smooths the labels", nil},
	{"eval-batch", "B", "Trainer evaluates after each step, B sequences at a time", checkCount(1, maxCount)},
	{"eval-keep", "N", "logits of N batches stay on the GPU during the evaluation, as for compute_metrics", checkCount(1, maxTokens)},
	{"eval-accumulation", "K", "they go to the host after K batches each, and the cache is emptied:\neval_accumulation_steps", checkCount(1, maxTokens)},
	{"empty-cache", "N", "Trainer empties the cache in every Nth step: torch_empty_cache_steps", checkCount(1, maxTokens)},
	{"preset", "NAME", "the implementation that is planned: " + strings.Join(presetNames(), ", "), checkOneOf(presetNames()...)},
}

var optimizers = []model.Optimizer{
	model.AdamWFused, model.AdamWForeach, model.AdamW, model.AdamFused, model.AdamForeach, model.Adam,
	model.SGD, model.SGDMomentum, model.SGDFused, model.Adafactor,
	model.AdamW8bit, model.PagedAdamW8bit, model.PagedAdamW32bit, model.Lion8bit, model.Lion32bit, model.PagedLion8bit, model.PagedLion32bit,
	model.RMSprop8bit, model.RMSprop32bit,
}

// The values of --lora-as and --loop.
const (
	adaptersPEFT  = "peft"
	adaptersPlain = "plain"
	loopPlain     = "plain"
)

// The values of --build.
const (
	buildWhole   = "whole"
	buildSharded = "sharded"
)

// maxCount tokens, of which a sequence has at most maxSeq, keep the bytes of the
// largest tensor, attention scores written out, within 64 bits.
const (
	maxCount = 1 << 30
	maxSeq   = 1 << 23
	// maxTokens are some thousand events each; hf.MaxEvents bounds those of the
	// largest models.
	maxTokens = 4096
)

// Catalogue lists all options, in the order in which help shows them.
func Catalogue() []Option { return slices.Clone(catalogue) }

// Set sets an option, as a flag of that name would: a switch to "true" or
// "false". Other tools' words are taken for ours. The error says what may be
// written.
func (o *Options) Set(name, value string) error {
	i := slices.IndexFunc(catalogue, func(c Option) bool { return c.Name == name })
	if i < 0 {
		return fmt.Errorf("there is no option %q", name)
	}
	c, note := &catalogue[i], ""
	switch {
	case c.Value == "":
		on, ok := words.Switch(value)
		if !ok {
			return fmt.Errorf("%q: write true or false", value)
		}
		value = ""
		if on {
			value = "true"
		}
	case c.rule != nil:
		m, err := c.translate(value)
		if err != nil {
			return err
		}
		value, note = m.Value, m.Note
	}
	o.values, o.notes = maps.Clone(o.values), maps.Clone(o.notes)
	if o.values == nil {
		o.values = map[string]string{}
	}
	if o.notes == nil {
		o.notes = map[string]string{}
	}
	o.values[name], o.notes[name] = value, note
	if value == "" {
		delete(o.values, name)
	}
	return nil
}

// translate checks a value, and makes one of ours of another tool's word. A
// word that is empty then is another tool's for leaving the option out.
func (o *Option) translate(value string) (words.Meaning, error) {
	err := o.rule.check(value)
	if err == nil {
		return words.Meaning{Value: value}, nil
	}
	if m, ok := words.Of(o.Name, value); ok && (m.Value == "" || o.rule.check(m.Value) == nil) {
		return m, nil
	}
	if plain := words.Plain(value); o.rule.check(plain) == nil {
		return words.Meaning{Value: plain}, nil
	}
	if why := words.Refusal(o.Name, value); why != "" {
		return words.Meaning{}, fmt.Errorf("%q: %s", value, why)
	}
	return words.Meaning{}, err
}

// Get returns an option as it was set; "" if it was not.
func (o Options) Get(name string) string { return o.values[name] }

// Has reports whether an option was set.
func (o Options) Has(name string) bool { return o.values[name] != "" }

// with returns the options with some of them changed; "" takes one back. What
// it sets is known to be right.
func (o Options) with(pairs ...string) Options {
	o.values, o.notes = maps.Clone(o.values), maps.Clone(o.notes)
	if o.values == nil {
		o.values = map[string]string{}
	}
	for i := 0; i < len(pairs); i += 2 {
		delete(o.notes, pairs[i])
		if pairs[i+1] == "" {
			delete(o.values, pairs[i])
		} else {
			o.values[pairs[i]] = pairs[i+1]
		}
	}
	return o
}

// count returns a number that was set, or another.
func (o Options) count(name string, otherwise int64) int64 {
	n, err := strconv.ParseInt(o.values[name], 10, 64)
	if err != nil {
		return otherwise
	}
	return n
}

func checkCount(least, most int64) *rule {
	return &rule{least: least, most: most, check: func(value string) error {
		n, err := strconv.ParseInt(value, 10, 64)
		if err != nil || n < least || n > most {
			return fmt.Errorf("%q: write a whole number from %d to %d", value, least, most)
		}
		return nil
	}}
}

func checkOneOf[T ~string](names ...T) *rule {
	words := make([]string, len(names))
	for i, n := range names {
		words[i] = string(n)
	}
	return &rule{words: words, check: func(value string) error {
		if slices.Contains(words, value) {
			return nil
		}
		return fmt.Errorf("%q: write %s", value, oneOf(words))
	}}
}

// oneOf lists words for a choice.
func oneOf(words []string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:len(words)-1], ", ") + " or " + words[len(words)-1]
}

// numbered splits "every:4" into its word and its number.
func numbered(value string) (word string, n int64, ok bool) {
	word, digits, has := strings.Cut(value, ":")
	if !has {
		return word, 0, true
	}
	n, err := strconv.ParseInt(digits, 10, 64)
	return word, n, err == nil && n >= 1 && n <= maxCount
}

func checkNumbered(plain []string, numberedWords []string) *rule {
	return &rule{words: plain, numbered: numberedWords, check: func(value string) error {
		word, n, ok := numbered(value)
		if ok && (n == 0 && slices.Contains(plain, word) || n > 0 && slices.Contains(numberedWords, word)) {
			return nil
		}
		return fmt.Errorf("%q: write %s", value, oneOf(append(slices.Clone(plain), withNumbers(numberedWords)...)))
	}}
}

// withNumbers writes words that take a number.
func withNumbers(words []string) []string {
	out := make([]string, len(words))
	for i, w := range words {
		out[i] = w + ":N"
	}
	return out
}

func checkRecompute() *rule {
	r := checkNumbered([]string{"none", "full", "reentrant", "selective", "sqrt", Best}, []string{"every"})
	usual := r.check
	r.check = func(value string) error {
		if text, ok := strings.CutPrefix(value, "groups:"); ok {
			_, err := parseGroups(text)
			return err
		}
		return usual(value)
	}
	return r
}

// Best is the --recompute that is searched for.
const Best = "best"

// shardWords are the ways to spread work over ranks, by what job.Shard calls
// them.
var shardWords = []string{"ddp", "ddp-view", "fsdp", "fsdp-mixed", "zero1", "zero2", "zero3", "tp", "sp", "pp", "cp", "ep"}

// maxRanks is more than any cluster has.
const maxRanks = 1 << 20

func checkShard(value string) error {
	seen := map[string]bool{}
	for part := range strings.SplitSeq(value, ",") {
		if value == "none" {
			return nil
		}
		word, n, ok := numbered(part)
		if !ok || n == 0 || n > maxRanks || !slices.Contains(shardWords, word) {
			return fmt.Errorf("%q: write %s, with N from 1 to %d ranks; several with commas", part, oneOf(withNumbers(shardWords)), maxRanks)
		}
		if seen[word] {
			return fmt.Errorf("%q is given twice", word)
		}
		seen[word] = true
	}
	return nil
}

// String writes the options as flags, in the order of the catalogue.
func (o Options) String() string {
	var parts []string
	for _, c := range catalogue {
		if v := o.values[c.Name]; v != "" {
			parts = append(parts, c.Name, v)
		}
	}
	return flags(parts)
}
