package plan

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/ashlar-mem/ashlar/internal/plan/model"
)

func readModel(t testing.TB, text string) *model.Model {
	t.Helper()
	m, err := model.Read(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestJob(t *testing.T) {
	m := toyModel(t)
	j, assumed, err := options(t, "batch", "4", "seq", "128").Job(m)
	if err != nil {
		t.Fatal(err)
	}
	if j.Mode != model.Train || j.DType != model.BF16 || j.Optimizer != model.AdamWFused || j.Attention != model.SDPA || j.Accumulate != 1 || j.Recompute.Mode != "none" || j.ZeroGrad != model.ZeroNone || j.Save != model.SaveNone || j.Steps != 3 {
		t.Errorf("%+v", j)
	}
	for _, want := range []string{"--dtype bf16: the config's", "--optimizer adamw-fused: ", "--attention sdpa: "} {
		if !slices.ContainsFunc(assumed, func(s string) bool { return strings.HasPrefix(s, want) }) {
			t.Errorf("%q is not among %q", want, assumed)
		}
	}
	j, assumed, err = options(t, "batch", "2", "seq", "64", "generate", "8", "cache", "static:100").Job(m)
	if err != nil || j.Mode != model.Generate || j.Tokens != 8 || j.StaticCache != 100 {
		t.Errorf("%+v %v %v", j, assumed, err)
	}
	j, _, err = options(t, "batch", "2", "seq", "64", "recompute", "every:3", "lora", "8", "lora-targets", "q_proj, v_proj", "lora-dtype", "fp32", "loss", "chunked:32", "shard", "fsdp:4,tp:2").Job(m)
	if err != nil {
		t.Fatal(err)
	}
	if !equal(j.Recompute.Groups, []int{3, 3, 2}) || j.LoRA.Rank != 8 || len(j.LoRA.Targets) != 2 || j.LoRA.DType != model.FP32 || j.LossChunk != 32 || j.Shard.FSDP != 4 || j.Shard.Tensor != 2 {
		t.Errorf("%+v", j)
	}
	if j, _, err := options(t, "batch", "2", "seq", "64", "recompute", "sqrt").Job(m); err != nil || !equal(j.Recompute.Groups, []int{3, 3, 2}) {
		t.Errorf("%+v %v", j, err)
	}
	if _, assumed, err := options(t, "batch", "2", "seq", "64", "shard", "tp:8").Job(m); err != nil || !slices.Contains(assumed, "--shard tp:8: each of the 2 key-value heads is on 4 ranks") {
		t.Errorf("%q %v", assumed, err)
	}
	if j, _, err := options(t, "batch", "2", "seq", "64", "autocast", "true").Job(m); err != nil || j.DType != model.FP32 || !j.Autocast {
		t.Errorf("%+v %v", j, err)
	}
}

// The defaults are what is planned: setting them changes nothing.
func TestDefaults(t *testing.T) {
	m := toyModel(t)
	for _, o := range []Options{
		options(t, "batch", "2", "seq", "64"),
		options(t, "batch", "2", "seq", "64", "optimizer", "sgd", "dtype", "fp32"),
		options(t, "batch", "2", "seq", "64", "lora", "8"),
		options(t, "batch", "2", "seq", "64", "shard", "fsdp:4"),
		options(t, "batch", "2", "seq", "64", "mode", "generate"),
	} {
		want, _, err := o.Job(m)
		if err != nil {
			t.Fatal(err)
		}
		filled := o
		defaults := o.Defaults(m)
		for _, c := range Catalogue() {
			value, known := defaults[c.Name]
			if c.Mode() != "" && c.Mode() != want.Mode || !known || o.Has(c.Name) || c.Name == "lora-dtype" && !o.Has("lora") {
				continue
			}
			if err := filled.Set(c.Name, value); err != nil {
				t.Errorf("the default of %s: %v", c.Name, err)
			}
		}
		got, assumed, err := filled.Job(m)
		if err != nil {
			t.Fatalf("%s: %v", filled, err)
		}
		got.LoRA.DType = want.LoRA.DType                                                                            // the same, and said
		assumed = slices.DeleteFunc(assumed, func(s string) bool { return strings.HasPrefix(s, "--lora-targets") }) // all of them has no word
		if len(assumed) > 0 || fmt.Sprintf("%+v", *got) != fmt.Sprintf("%+v", *want) {
			t.Errorf("%s:\n%+v, and assumed %q;\n%s:\n%+v", filled, *got, assumed, o, *want)
		}
	}
	if d := options(t, "batch", "2", "seq", "64", "dtype", "fp32").Defaults(m); d["dtype"] != "bf16" || d["optimizer"] != "adamw-fused" || d["attention"] != "sdpa" {
		t.Errorf("%v", d)
	}
}

func TestJobRefuses(t *testing.T) {
	llama := toyConfig
	const (
		vit  = `{"model_type": "vit"}`
		bert = `{"model_type": "bert"}`
		gpt2 = `{"model_type": "gpt2"}`
		t5   = `{"model_type": "t5"}`
		moe  = `{"model_type": "mixtral"}`
	)
	both := []string{"batch", "2", "seq", "64"}
	for _, tt := range []struct {
		config  string
		options []string
		want    string
	}{
		{llama, []string{"seq", "64"}, "batch is missing: "},
		{llama, []string{"batch", "2"}, "seq is missing: "},
		{vit, both, "vit takes no seq: its pictures make sequences of 197"},
		{vit, []string{"batch", "2", "mask", "left"}, "leave it out"},
		{bert, append([]string{"generate", "4"}, both...), "bert has no head that predicts tokens"},
		{t5, append([]string{"generate", "4", "target-seq", "8"}, both...), "target-seq is for mode train: leave it out"},
		{t5, append([]string{"generate", "4", "cache", "static:100"}, both...), "leave it out for t5"},
		{llama, append([]string{"generate", "4", "generate-call", "true", "cache", "static:100"}, both...), "compiles the model"},
		{bert, append([]string{"loss", "chunked:8"}, both...), "loss chunked"},
		{gpt2, []string{"batch", "2", "seq", "2000"}, "a table for 1024 positions, and 2000 are asked for"},
		{`{"model_type":"roberta","max_position_embeddings":514}`, []string{"batch", "2", "seq", "513"}, "a table for 512 positions"},
		{`{"model_type":"clip"}`, []string{"batch", "2"}, "for instance seq 77"},
		{`{"model_type":"whisper"}`, []string{"batch", "2", "target-seq", "500"}, "give a smaller target-seq"},
		{`{"model_type":"dinov2"}`, both, "dinov2 takes no seq"},
		{gpt2, []string{"batch", "2", "seq", "1020", "generate", "8"}, "a table for 1024 positions, and 1028 are asked for"},
		{t5, append([]string{"recompute", "every:2"}, both...), "t5 has two: use full"},
		{llama, append([]string{"target-seq", "5"}, both...), "target-seq is for encoder-decoders"},
		{llama, append([]string{"attention", "flash", "dtype", "fp32"}, both...), "takes bf16 and fp16 only"},
		{llama, append([]string{"master-weights", "true", "dtype", "fp32"}, both...), "master-weights with fp32"},
		{llama, append([]string{"generate", "4", "optimizer", "sgd"}, both...), "optimizer is for mode train"},
		{llama, append([]string{"cache", "static:9"}, both...), "cache is for mode generate"},
		{llama, append([]string{"generate", "4", "mode", "train"}, both...), "leave one of them out"},
		{llama, append([]string{"generate", "4", "cache", "static:9"}, both...), "write static:68 or longer"},
		{llama, append([]string{"lora-dtype", "fp32"}, both...), "lora-dtype needs lora R"},
		{llama, append([]string{"recompute", "every:9"}, both...), "the model has 8 layers"},
		{llama, append([]string{"recompute", "groups:-3,2"}, both...), "names 5 layers, and the model has 8"},
		{llama, append([]string{"recompute", "best"}, both...), "a search of its own"},
		{llama, append([]string{"shard", "tp:3"}, both...), "8 heads cannot be divided among 3 ranks; write 2 or 4"},
		{llama, append([]string{"shard", "tp:16"}, both...), "8 heads cannot be divided among 16 ranks; write 8"},
		{llama, append([]string{"shard", "sp:2"}, both...), "write tp:2,sp:2"},
		{llama, append([]string{"shard", "cp:5"}, both...), "64 tokens cannot be divided among 5 ranks"},
		{llama, append([]string{"shard", "cp:4,tp:2,sp:2"}, "batch", "2", "seq", "12"), "give a seq that is a multiple of 8"},
		{vit, []string{"batch", "2", "shard", "cp:2"}, "197 positions of a picture"},
		{llama, []string{"batch", "2", "seq", "1", "loss", "chunked:5"}, "give a seq of 2 or more"},
		{llama, []string{"batch", "2", "seq", "2", "loss", "chunked:5", "shard", "cp:2"}, "give a seq of 4 or more"},
		{llama, append([]string{"use-cache", "true", "recompute", "every:4"}, both...), "use-cache with recompute every:4: "},
		{llama, append([]string{"use-cache", "true", "recompute", "sqrt"}, both...), "leave one of them out"},
		{gpt2, append([]string{"use-cache", "true", "recompute", "groups:12"}, both...), "leave one of them out"},
		{llama, append([]string{"shard", "pp:9"}, both...), "only 8 layers"},
		{llama, append([]string{"shard", "ep:2"}, both...), "llama has no experts"},
		{`{"model_type": "qwen2", "hidden_size": 896, "intermediate_size": 4864, "num_attention_heads": 14, "num_key_value_heads": 2}`, append([]string{"shard", "tp:4"}, both...), "among 4 ranks; write 2"},
		{llama, append([]string{"shard", "tp:5", "dtype", "bf16"}, both...), "among 5 ranks; write 4 or 8"},
		{moe, append([]string{"shard", "ep:3"}, both...), "8 experts cannot be divided among 3 ranks; write 2 or 4"},
		{llama, append([]string{"shard", "ddp:2,fsdp:2"}, both...), "exclude each other"},
		{llama, append([]string{"shard", "fsdp:2", "generate", "4"}, both...), "tp and ep"},
		{llama, []string{"batch", "1000000", "seq", "8000000"}, "give less"},
	} {
		m := readModel(t, tt.config)
		_, _, err := options(t, tt.options...).Job(m)
		if err == nil || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s %v: %v, want %q", m.ModelType, tt.options, err, tt.want)
		}
	}
}

func TestOptions(t *testing.T) {
	for _, tt := range []struct{ name, value, want string }{
		{"batch", "0", "whole number from 1"},
		{"batch", "many", "whole number from 1"},
		{"seq", "99999999999", "whole number from 1"},
		{"dtype", "int8", "--quant nf4 --dtype bf16"},
		{"optimizer", "adamx", "write adamw-fused, "},
		{"recompute", "every", "write none, full, reentrant, selective, sqrt, best or every:N"},
		{"recompute", "every:0", "write none"},
		{"loss", "pieces", "write plain or chunked:N"},
		{"cache", "static", "such as static:4096"},
		{"shard", "tp", "write ddp:N"},
		{"shard", "fsdp:9999999", "with N from 1 to 1048576 ranks"},
		{"shard", "tp:2,tp:4", "given twice"},
		{"shard", "magic:2", "write ddp:N"},
		{"preset", "hf-4", "write hf-5.17"},
		{"autocast", "perhaps", "write true or false"},
		{"colour", "red", "no option"},
	} {
		var o Options
		if err := o.Set(tt.name, tt.value); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s %s: %v", tt.name, tt.value, err)
		}
	}
	o := options(t, "seq", "4", "autocast", "true", "batch", "2")
	if got := o.String(); got != "--batch 2 --seq 4 --autocast" {
		t.Errorf("%q", got)
	}
	copied := o
	if err := copied.Set("autocast", "false"); err != nil || copied.Has("autocast") || !o.Has("autocast") {
		t.Error("a copy shares its values")
	}
}

// The arithmetic of a forward pass is twice the weights for every token, and
// attention.
func TestWork(t *testing.T) {
	m := toyModel(t)
	j, _, err := options(t, "batch", "2", "seq", "10").Job(m)
	if err != nil {
		t.Fatal(err)
	}
	w := workOf(j)
	layer := 512*64*(8+2+2+8) + 3*512*1536
	scores := 2 * 2 * 8 * 10 * 10 * 64 // both products, half of each
	if want := float64(2*20*layer + 2*scores/2); len(w.layers) != 8 || w.layers[0] != want {
		t.Errorf("%v, want %v", w.layers, want)
	}
	if want := float64(2 * 20 * 512 * 32000); w.head != want {
		t.Errorf("head %v, want %v", w.head, want)
	}
	if got, want := w.extraAll(), 8*w.layers[0]/(3*(8*w.layers[0]+w.head)); got != want {
		t.Errorf("%v, want %v", got, want)
	}
}
