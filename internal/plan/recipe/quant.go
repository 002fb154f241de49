package recipe

import (
	"fmt"
	"strings"

	"github.com/ashlar-mem/ashlar/internal/plan/model"
	"github.com/ashlar-mem/ashlar/internal/yaml"
)

// quant is what files say about bitsandbytes' quantised weights.
type quant struct {
	bits   int    // 0 if they are not quantised
	kind   string // nf4 or fp4; empty if nobody said
	double string // true or false; empty if nobody said
	usual  bool   // double quantisation is the tool's default
}

func (r *Recipe) quantise(bits int) (outcome, error) {
	r.quant.bits = bits
	return outcome{as: fmt.Sprintf("weights of %d bits", bits)}, nil
}

// qlora is axolotl's adapter of that name, and others' switch. axolotl and
// LLaMA-Factory quantise the scales too.
func (r *Recipe) qlora() (outcome, error) {
	r.adapters, r.peft = "lora", true
	r.quant.bits, r.quant.usual = 4, true
	return outcome{as: "PEFT's adapters on weights of 4 bits"}, nil
}

// quantBits is LLaMA-Factory's.
func quantBits(r *Recipe, _ string, v yaml.Value) (outcome, error) {
	n, err := whole(v)
	if err != nil || n != 4 && n != 8 {
		return outcome{}, fmt.Errorf("it is not planned; 4 and 8 are")
	}
	r.quant.usual = true
	return r.quantise(int(n))
}

func quantType(r *Recipe, _ string, v yaml.Value) (outcome, error) {
	if kind := strings.ToLower(v.Text); kind == "nf4" || kind == "fp4" {
		r.quant.kind = kind
		return outcome{as: kind}, nil
	}
	return outcome{}, fmt.Errorf("write nf4 or fp4")
}

func quantDouble(r *Recipe, _ string, v yaml.Value) (outcome, error) {
	on, err := truth(v)
	r.quant.double = fmt.Sprint(on)
	return outcome{as: "double quantisation " + map[bool]string{true: "on", false: "off"}[on]}, err
}

// quantised chooses --quant.
func (r *Recipe) quantised(*model.Model) error {
	q := r.quant
	switch {
	case q.bits == 0:
		return nil
	case q.bits == 8:
		r.choose("quant", "int8", "weights of 8 bits, bitsandbytes'")
		return nil
	}
	name := q.kind
	if name == "" {
		name = "nf4"
	}
	if q.double == "true" || q.double == "" && q.usual {
		name += "-double"
	}
	r.choose("quant", name, "weights of 4 bits, bitsandbytes'")
	return nil
}

// offload is what lies on the host.
func offload(what string) rule {
	return func(r *Recipe, _ string, v yaml.Value) (outcome, error) {
		switch {
		case !given(v) || strings.EqualFold(v.Text, "none"):
			return outcome{noEffect: true}, nil
		case strings.EqualFold(v.Text, "nvme"):
			return outcome{}, fmt.Errorf("only the host's memory is planned; write cpu")
		case r.options["offload"].value == "params":
			return outcome{as: "--offload params"}, nil
		}
		r.options["offload"] = chosen{value: what, by: r.source.File}
		return outcome{as: "--offload " + what}, nil
	}
}
