package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/ashlar-mem/ashlar/plan"
	"github.com/ashlar-mem/ashlar/plan/config"
	"github.com/ashlar-mem/ashlar/plan/gpu"
	"github.com/ashlar-mem/ashlar/settings"
)

// Prediction is what a plan says of a case before it is measured.
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

// predict plans the cases of bench/plan/cases.json as `ashlar plan` does, for
// an H200, and prints a JSON line for each.
func predict(out *bufio.Writer, path string) error {
	cases, err := readCases(path)
	if err != nil {
		return err
	}
	lines := json.NewEncoder(out)
	for _, name := range slices.Sorted(maps.Keys(cases)) {
		p := Prediction{Case: name}
		if a, err := ask(cases[name]); err != nil {
			p.Error = err.Error()
		} else {
			p.Allocated, p.Reserved, p.Device = a.PeakAllocated, a.PeakReserved, a.PeakDevice
			p.SmallestLimit, p.Phase = a.SmallestLimit, a.BindingPhase
			p.Low, p.High = a.Range.Low, a.Range.High
		}
		if err := lines.Encode(p); err != nil {
			return err
		}
	}
	return nil
}

type fields = map[string]any

// readCases reads the cases with their models written out.
func readCases(path string) (map[string]fields, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var file struct {
		Models map[string]fields `json:"models"`
		Cases  map[string]fields `json:"cases"`
	}
	if err := json.Unmarshal(data, &file); err != nil {
		return nil, err
	}
	for name, c := range file.Cases {
		model, ok := c["m"].(string)
		if !ok || file.Models[model] == nil {
			return nil, fmt.Errorf("%s: no model %v", name, c["m"])
		}
		c["m"] = file.Models[model]
	}
	return file.Cases, nil
}

// ask plans a case.
func ask(c fields) (*plan.Answer, error) {
	shape := maps.Clone(c["m"].(fields))
	shape["model_type"] = shape["fam"]
	delete(shape, "fam")
	text, err := json.Marshal(shape)
	if err != nil {
		return nil, err
	}
	model, err := config.Read(strings.NewReader(string(text)))
	if err != nil {
		return nil, err
	}
	q := plan.Question{Model: model, NoLevers: true}
	if q.Options, err = optionsOf(c); err != nil {
		return nil, err
	}
	card, ok := gpu.Find("h200")
	if !ok {
		return nil, fmt.Errorf("no h200 among the cards")
	}
	q.Room.Card = &card
	q.Conf, _ = c["conf"].(string)
	if q.Settings, err = settings.Parse(q.Conf); err != nil {
		return nil, err
	}
	return plan.Ask(context.Background(), q)
}

// optionsOf is a case in the words of the command line.
func optionsOf(c fields) (o plan.Options, err error) {
	set := func(name string, value any) {
		if err == nil {
			err = o.Set(name, text(value))
		}
	}
	set("dtype", "bf16")
	for key, value := range c {
		v := text(value)
		switch key {
		case "b":
			set("batch", value)
		case "s":
			set("seq", value)
		case "ts":
			set("target-seq", value)
		case "dtype", "autocast", "mask", "clip", "save", "lora":
			set(key, value)
		case "opt":
			switch v {
			case "master":
				set("master-weights", "true")
			case "adamw_loop":
				set("optimizer", "adamw")
			case "sgdm":
				set("optimizer", "sgd-momentum")
			default:
				set("optimizer", strings.ReplaceAll(v, "_", "-"))
			}
		case "ckpt":
			set("recompute", v)
		case "attn", "sdpa":
			if v != "default" {
				set("attention", v)
			}
		case "accum":
			set("accumulate", value)
		case "zero":
			set("zero-grad", v)
		case "lora_dtype":
			set("lora-dtype", v)
		case "chunk":
			set("loss", "chunked:"+v)
		case "dist":
			set("shard", map[string]string{"ddp": "ddp:1", "fsdp": "fsdp:1", "fsdp_mp": "fsdp-mixed:1"}[v])
		case "gen":
			set("generate", value)
		case "static":
			set("cache", "static:"+v)
		case "m", "conf", "alone", "limits", "record":
		default:
			return o, fmt.Errorf("the option %q of a case is not known", key)
		}
	}
	return o, err
}

// text is a JSON value as a flag has it.
func text(v any) string {
	if f, ok := v.(float64); ok {
		return strconv.FormatFloat(f, 'f', -1, 64)
	}
	return fmt.Sprint(v)
}
