package serve

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"os"
	"slices"
	"testing"

	"github.com/ashlar-mem/ashlar/internal/plan/cards"
	"github.com/ashlar-mem/ashlar/internal/plan/model"
)

const gib = 1 << 30

// logFile is testdata/serve/logs.json.
type logFile struct {
	About  string `json:"about"`
	Models map[string]struct {
		Config json.RawMessage `json:"config"`
		Source string          `json:"source"`
	} `json:"models"`
	Logs []logRow `json:"logs"`
}

// logRow is what a log printed, and the flags it was printed with.
type logRow struct {
	URL   string `json:"url"`
	Model string `json:"model"`
	Card  string `json:"card"`
	VLLM  string `json:"vllm"`

	MaxModelLen   int64   `json:"max_model_len"`
	Utilization   float64 `json:"gpu_memory_utilization"`
	TP            int64   `json:"tp,omitempty"`
	DType         string  `json:"dtype,omitempty"`
	KVType        string  `json:"kv_dtype,omitempty"`
	MaxSeqs       int64   `json:"max_num_seqs,omitempty"`
	Batched       int64   `json:"max_num_batched_tokens,omitempty"`
	BlockSize     int64   `json:"block_size,omitempty"`
	Eager         bool    `json:"enforce_eager,omitempty"`
	V0            bool    `json:"v0,omitempty"`
	Quantised     string  `json:"quantised,omitempty"`
	LoRA          bool    `json:"lora,omitempty"` // of a rank that is not known
	LoRARank      int     `json:"lora_rank,omitempty"`
	FlashInfer    bool    `json:"flashinfer,omitempty"`
	PrefixCaching bool    `json:"prefix_caching,omitempty"`
	// Inferred says what the log does not print, and how it is known.
	Inferred string `json:"inferred,omitempty"`
	// CacheOnly says why only the cache is compared.
	CacheOnly string `json:"cache_only,omitempty"`

	Total       float64  `json:"total_gib,omitempty"`
	Weights     float64  `json:"weights_gib,omitempty"`
	Activation  float64  `json:"activation_gib,omitempty"`
	Peak        float64  `json:"peak_gib,omitempty"`
	Outside     *float64 `json:"outside_gib,omitempty"`
	Graphs      float64  `json:"graphs_gib,omitempty"`
	KV          float64  `json:"kv_gib,omitempty"`
	Blocks      int64    `json:"blocks,omitempty"`
	Tokens      int64    `json:"tokens,omitempty"`
	Concurrency float64  `json:"concurrency,omitempty"`
}

func readLogs(t testing.TB) logFile {
	t.Helper()
	raw, err := os.ReadFile("../../../testdata/serve/logs.json")
	if err != nil {
		t.Fatal(err)
	}
	var f logFile
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	if err := d.Decode(&f); err != nil {
		t.Fatal(err)
	}
	return f
}

// quantConfigs are the usual settings of the methods.
var quantConfigs = map[string]string{
	"awq":          `{"quant_method":"awq","bits":4,"group_size":128,"zero_point":true}`,
	"awq_marlin":   `{"quant_method":"awq","bits":4,"group_size":128,"zero_point":true}`,
	"gptq":         `{"quant_method":"gptq","bits":4,"group_size":128}`,
	"gptq_marlin":  `{"quant_method":"gptq","bits":4,"group_size":128}`,
	"bitsandbytes": `{"quant_method":"bitsandbytes","load_in_4bit":true,"bnb_4bit_quant_type":"nf4","bnb_4bit_use_double_quant":true,"bnb_4bit_compute_dtype":"bfloat16"}`,
	"fp8":          `{"quant_method":"fp8","weight_block_size":[128,128]}`,
	"mxfp4":        `{"quant_method":"mxfp4"}`,
}

// request is the row as a question.
func (f *logFile) request(t testing.TB, row *logRow) Request {
	t.Helper()
	config := f.Models[row.Model].Config
	if row.Quantised != "" {
		config = append(config[:len(config)-1:len(config)-1], fmt.Sprintf(`,"quantization_config":%s}`, quantConfigs[row.Quantised])...)
	}
	m, err := model.Read(bytes.NewReader(config))
	if err != nil {
		t.Fatalf("%s: %v", row.Model, err)
	}
	name := row.Card
	if name == "" { // the cache is the same on all
		name = "h100"
	}
	card, ok := cards.Find(name)
	if !ok || row.Card == "" && row.CacheOnly == "" {
		t.Fatalf("card %s is not known", row.Card)
	}
	if row.Total > 0 {
		card.TotalBytes = uint64(row.Total * gib)
	}
	v, err := ParseVersion(row.VLLM)
	if err != nil {
		t.Fatal(err)
	}
	r := Request{
		Model: m, Card: card, Version: v, MaxModelLen: row.MaxModelLen, Utilization: row.Utilization, TP: row.TP,
		KVType: row.KVType, DType: model.DType(row.DType), MaxSeqs: row.MaxSeqs, BatchedTokens: row.Batched, BlockSize: row.BlockSize,
		Eager: row.Eager, V0: row.V0, FlashInfer: row.FlashInfer, PrefixCaching: row.PrefixCaching,
	}
	if err := r.settle(); err != nil {
		t.Fatalf("%s: %v", row.URL, err)
	}
	return r
}

// TestPrintedTokens holds what logs print of the cache against its layout: the
// printed memory, within its last digit, has as many blocks and tokens as printed.
func TestPrintedTokens(t *testing.T) {
	f := readLogs(t)
	compared := 0
	for i := range f.Logs {
		row := &f.Logs[i]
		if row.KV == 0 || row.Blocks == 0 && row.Tokens == 0 {
			continue
		}
		compared++
		r := f.request(t, row)
		l := r.layOut()
		least, most := l.blocks(int64((row.KV-0.005)*gib)), l.blocks(int64((row.KV+0.005)*gib))
		got, low, high := row.Blocks, least, most
		if got == 0 {
			got = row.Tokens
			low, high = l.tokens(least, r.MaxModelLen, r.batched()), l.tokens(most, r.MaxModelLen, r.batched())
		}
		if got < low || got > high {
			t.Errorf("%s %s: printed %d, planned %d to %d in %.2f GiB of blocks of %d bytes", row.URL, row.Model, got, low, high, row.KV, l.blockBytes())
		}
		if row.Concurrency == 0 {
			continue
		}
		low1, high1 := l.concurrency(least, r.MaxModelLen, r.batched()), l.concurrency(most, r.MaxModelLen, r.batched())
		if row.Concurrency < low1-0.005 || row.Concurrency > high1+0.005 {
			t.Errorf("%s %s: concurrency %.2f printed, %.2f to %.2f planned", row.URL, row.Model, row.Concurrency, low1, high1)
		}
	}
	if compared < 40 {
		t.Errorf("%d logs print memory and tokens; at least 40 are wanted", compared)
	}
}

// compared is a log beside its plan.
type compared struct {
	row  *logRow
	plan *Answer
	want float64 // GiB of cache, printed or counted from what was
	off  float64 // of the plan, as a part of the card's memory
}

// compare plans the logs that are about more than the cache.
func (f *logFile) compare(t testing.TB) []compared {
	t.Helper()
	var out []compared
	for i := range f.Logs {
		row := &f.Logs[i]
		if row.CacheOnly != "" {
			continue
		}
		r := f.request(t, row)
		a, err := r.on(context.Background(), r.Card)
		if err != nil {
			t.Fatal(err)
		}
		c := compared{row: row, plan: a, want: row.KV}
		if c.want == 0 {
			c.want = float64((row.Blocks+row.Tokens/a.BlockSize)*a.BlockBytes) / gib
		}
		c.off = (float64(a.Available) - c.want*gib) / float64(r.Card.TotalBytes)
		out = append(out, c)
	}
	return out
}

// TestAvailableMemory holds the whole plan against the memory of the cache in the
// logs: four of five are to be within 1.5 % of the card's memory.
func TestAvailableMemory(t *testing.T) {
	f := readLogs(t)
	all := f.compare(t)
	good := 0
	for _, c := range all {
		if math.Abs(c.off) <= 0.015 {
			good++
		}
	}
	if good*5 < len(all)*4 {
		t.Errorf("%d of %d plans are within 1.5 %% of the card, fewer than four of five", good, len(all))
	}
}

// TestPrintedWeights holds the weights that are not quantised and have no LoRA
// beside them against the logs. From 0.11 on these have a little more, for a reason
// that was not found.
func TestPrintedWeights(t *testing.T) {
	f := readLogs(t)
	n := 0
	for _, c := range f.compare(t) {
		if c.row.Weights == 0 || c.row.Quantised != "" || c.row.LoRARank > 0 || c.row.LoRA {
			continue
		}
		n++
		got := float64(c.plan.Parts[0].Bytes) / gib
		within := 0.004
		if v, _ := ParseVersion(c.row.VLLM); v.since(11, 0) {
			within = 0.08
		}
		if math.Abs(got-c.row.Weights) > within {
			t.Errorf("%s %s: %.4f GiB planned, %.4f printed", c.row.URL, c.row.Model, got, c.row.Weights)
		}
	}
	if n < 10 {
		t.Errorf("%d logs print such weights", n)
	}
}

// TestPrintedActivations holds the peak of the profiling run against the logs.
func TestPrintedActivations(t *testing.T) {
	f := readLogs(t)
	n := 0
	for _, c := range f.compare(t) {
		printed := c.row.Activation
		if c.row.Peak > 0 {
			printed = c.row.Peak - c.row.Weights
		}
		if printed == 0 || c.row.MaxModelLen == 32768 && (c.row.LoRA || c.row.LoRARank > 0) { // LoRA's buffers grow with the tokens
			continue
		}
		n++
		if got := float64(c.plan.Parts[1].Bytes) / gib; math.Abs(got-printed) > 0.03 {
			t.Errorf("%s %s: %.3f GiB planned, %.3f printed", c.row.URL, c.row.Model, got, printed)
		}
	}
	if n < 15 {
		t.Errorf("%d logs print activations", n)
	}
}

// TestLogsDiffer checks that no two logs are alike, and that there are enough.
func TestLogsDiffer(t *testing.T) {
	f := readLogs(t)
	models, cards, versions, seen := map[string]bool{}, map[string]bool{}, map[string]bool{}, map[logRow]bool{}
	families := map[string]bool{}
	for _, row := range f.Logs {
		models[row.Model], versions[row.VLLM] = true, true
		if row.Card != "" {
			cards[row.Card] = true
		}
		flags := row
		flags.URL, flags.CacheOnly, flags.Inferred = "", "", ""
		flags.Total, flags.Weights, flags.Activation, flags.Peak, flags.Outside, flags.Graphs, flags.KV = 0, 0, 0, 0, nil, 0, 0
		flags.Blocks, flags.Tokens, flags.Concurrency = 0, 0, 0
		if seen[flags] {
			t.Errorf("%s: another log has the same model, card, flags and version", row.URL)
		}
		seen[flags] = true
		if f.Models[row.Model].Source == "" {
			t.Errorf("%s: no source for the config of %s", row.URL, row.Model)
		}
		if row.CacheOnly == "" {
			families[read(t, string(f.Models[row.Model].Config)).Family] = true
		}
	}
	if len(f.Logs) < 40 || len(models) < 12 || len(cards) < 4 || len(versions) < 5 {
		t.Errorf("%d logs, %d models, %d cards, %d versions: too few", len(f.Logs), len(models), len(cards), len(versions))
	}
	if got := slices.Sorted(maps.Keys(families)); !slices.Equal(got, logged) {
		t.Errorf("plans of %v are compared, and plans say %v", got, logged)
	}
}
