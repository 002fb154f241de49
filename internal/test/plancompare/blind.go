package plancompare

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/ashlar-mem/ashlar/internal/plan/model"
)

// Fields are a case of tools/bench/plan/cases.json, in the words of the script that
// measures it.
type Fields map[string]any

// Prediction is what a plan says of a case before it is measured. Those of
// testdata/plan/predicted.jsonl were committed before anything of them was
// measured and stay as they are.
type Prediction struct {
	Case          string `json:"case"`
	Allocated     uint64 `json:"peak_allocated_bytes"`
	Reserved      uint64 `json:"peak_reserved_bytes"`
	Device        uint64 `json:"peak_device_bytes"`
	SmallestLimit uint64 `json:"smallest_limit_bytes"`
	Low           uint64 `json:"low_bytes"`
	High          uint64 `json:"high_bytes"`
	Phase         string `json:"binding_phase"`
	Error         string `json:"error,omitempty"`
}

// BlindCase is a run that was measured after its plan was committed.
type BlindCase struct {
	Name   string `json:"case"`
	Spec   Fields `json:"spec"`
	Params int64  `json:"params"`

	// Limit is the cap that the run had, 0 for none. Died is the message of a run
	// that ended with too little memory.
	Limit uint64 `json:"limit"`
	Died  string `json:"died"`

	PeakAllocated uint64 `json:"peak_allocated"`
	PeakReserved  uint64 `json:"peak_reserved"`
	PeakRequested uint64 `json:"peak_requested"`
	// DeviceUsed is what mem_get_info said at the end. It is about the run only if
	// that had the GPU for itself.
	DeviceUsed uint64 `json:"device_used"`
}

// Blind reads the runs that were measured after their plans were committed.
func Blind() ([]BlindCase, error) { return readLines[BlindCase]("measured-blind.jsonl") }

// Predicted reads the plans that were committed before, by case.
func Predicted() (map[string]Prediction, error) {
	all, err := readLines[Prediction]("predicted.jsonl")
	out := make(map[string]Prediction, len(all))
	for _, p := range all {
		out[p.Case] = p
	}
	return out, err
}

// Alone reports whether a run had the GPU for itself.
func (f Fields) Alone() bool { return f["alone"] == true }

// Conf returns the allocator's settings, empty for the defaults.
func (f Fields) Conf() string {
	s, _ := f["conf"].(string)
	return s
}

// Model is the config that the case's fields make.
func (f Fields) Model() (*model.Model, error) {
	given, ok := f["m"].(map[string]any)
	if !ok {
		return nil, fmt.Errorf("no model: m is %v", f["m"])
	}
	shape := maps.Clone(given)
	shape["model_type"] = shape["fam"]
	delete(shape, "fam")
	text, err := json.Marshal(shape)
	if err != nil {
		return nil, err
	}
	head, _ := f["head"].(string)
	return model.Read(bytes.NewReader(text), model.WithHead(head))
}

// Options are the case as flags of `ashlar plan`: pairs of name and value. The
// script's default type is bf16 and its default attention what torch picks.
func (f Fields) Options() ([][2]string, error) {
	out := [][2]string{{"dtype", "bf16"}}
	for _, key := range slices.Sorted(maps.Keys(f)) {
		v := text(f[key])
		name := key
		switch key {
		case "b":
			name = "batch"
		case "s":
			name = "seq"
		case "ts":
			name = "target-seq"
		case "lora":
			out = append(out, [2]string{"lora-as", "plain"})
		case "dtype", "autocast", "mask", "clip", "save":
		case "opt":
			name = "optimizer"
			switch v {
			case "master":
				name, v = "master-weights", "true"
			case "adamw_loop":
				v = "adamw"
			case "sgdm":
				v = "sgd-momentum"
			default:
				v = strings.ReplaceAll(v, "_", "-")
			}
		case "ckpt":
			name = "recompute"
		case "attn", "sdpa":
			if name = "attention"; v == "default" {
				continue
			}
		case "accum":
			name = "accumulate"
		case "zero":
			name = "zero-grad"
		case "lora_dtype":
			name = "lora-dtype"
		case "chunk":
			name, v = "loss", "chunked:"+v
		case "dist":
			name, v = "shard", map[string]string{"ddp": "ddp:1", "fsdp": "fsdp:1", "fsdp_mp": "fsdp-mixed:1"}[v]
		case "gen":
			name = "generate"
		case "static":
			name, v = "cache", "static:"+v
		case "m", "head", "conf", "alone", "limits", "record":
			continue
		default:
			return nil, fmt.Errorf("the option %q of a case is not known", key)
		}
		out = append(out, [2]string{name, v})
	}
	return out, nil
}

// text returns a JSON value as a flag has it.
func text(v any) string {
	if f, ok := v.(float64); ok {
		return strconv.FormatFloat(f, 'f', -1, 64)
	}
	return fmt.Sprint(v)
}
