package model

import (
	"encoding/json"
	"slices"
	"strings"
)

// quantConfig are the fields of quantization_config that decide sizes, of all
// methods.
type quantConfig struct {
	Method string `json:"quant_method"`

	// bitsandbytes
	In4Bit      bool     `json:"load_in_4bit"`
	In8Bit      bool     `json:"load_in_8bit"`
	FourBitType string   `json:"bnb_4bit_quant_type"`
	Double      bool     `json:"bnb_4bit_use_double_quant"`
	Compute     string   `json:"bnb_4bit_compute_dtype"`
	Threshold   *float64 `json:"llm_int8_threshold"`
	SkipInt8    []string `json:"llm_int8_skip_modules"`

	// awq, gptq
	Bits    int      `json:"bits"`
	Group   *int     `json:"group_size"`
	Skip    []string `json:"modules_to_not_convert"`
	Ignored []string `json:"ignored_layers"`

	// fp8
	Block    json.RawMessage `json:"weight_block_size"` // nil if it is not there, "null" for one scale a weight
	Scales   string          `json:"scale_fmt"`
	Inputs   string          `json:"activation_scheme"`
	Unpacked bool            `json:"dequantize"`

	// compressed-tensors
	Groups map[string]struct {
		Weights *struct {
			Bits      int    `json:"num_bits"`
			Type      string `json:"type"`
			Strategy  string `json:"strategy"`
			Group     *int   `json:"group_size"`
			Symmetric *bool  `json:"symmetric"`
			Block     []int  `json:"block_structure"`
		} `json:"weights"`
	} `json:"config_groups"`
	Ignore []string `json:"ignore"`
}

// quantised reads quantization_config.
func (f *fields) quantised() {
	const name = "quantization_config"
	raw, ok := f.raw[name]
	if !ok {
		return
	}
	f.used[name] = true
	if nothing(raw) {
		return
	}
	var c quantConfig
	if json.Unmarshal(raw, &c) != nil || c.Method == "" && !c.In4Bit && !c.In8Bit {
		f.model.Quantised = show(raw)
		return
	}
	q := c.quant()
	if c.Method != "" {
		f.model.Quantised = show(json.RawMessage(c.Method))
	} else {
		f.model.Quantised = "bitsandbytes"
	}
	if q == nil || c.Unpacked {
		return
	}
	q.Stored = true
	f.model.Quant = q
}

// quant is the method with its sizes, nil if it is not known.
func (c *quantConfig) quant() *Quant {
	group := 128
	if c.Group != nil {
		group = max(*c.Group, 0)
	}
	switch strings.ToLower(c.Method) {
	case "bitsandbytes", "":
		if c.In8Bit {
			return &Quant{Method: Int8, Outliers: c.Threshold == nil || *c.Threshold > 0, Skip: c.SkipInt8}
		}
		q := &Quant{Method: FP4, Double: c.Double, Compute: FP32, Skip: c.SkipInt8}
		if c.FourBitType == "nf4" {
			q.Method = NF4
		}
		if d := TypeOf(c.Compute); d != "" {
			q.Compute = d
		}
		return q
	case "awq":
		return &Quant{Method: AWQ, Bits: bitsOr4(c.Bits), Group: group, Skip: c.Skip}
	case "gptq":
		return &Quant{Method: GPTQ, Bits: bitsOr4(c.Bits), Group: group, Skip: c.Skip}
	case "fp8":
		q := &Quant{Method: FP8, ByteScales: c.Scales == "ue8m0", StaticInputs: c.Inputs == "static", Skip: c.Skip}
		if q.Skip == nil {
			q.Skip = c.Ignored
		}
		block := []int{128, 128}
		if c.Block != nil && json.Unmarshal(c.Block, &block) != nil {
			return nil
		}
		if len(block) == 2 && min(block[0], block[1]) > 0 {
			q.Block = [2]int(block)
		}
		return q
	case "mxfp4":
		return &Quant{Method: MXFP4, Skip: c.Skip}
	case "compressed-tensors":
		return c.compressed()
	}
	return nil
}

// compressed takes the first group: checkpoints with several are not known here.
func (c *quantConfig) compressed() *Quant {
	if len(c.Groups) != 1 {
		return nil
	}
	for _, g := range c.Groups {
		w := g.Weights
		if w == nil || w.Bits < 1 || w.Bits > 8 || w.Type == "float" && w.Bits != 8 {
			return nil
		}
		q := &Quant{Method: Compressed, Bits: w.Bits, Float: w.Type == "float", Symmetric: w.Symmetric == nil || *w.Symmetric, Skip: slices.Clone(c.Ignore)}
		switch {
		case w.Strategy == "tensor":
			q.Group = -1
		case len(w.Block) == 2 && min(w.Block[0], w.Block[1]) > 0:
			q.Block = [2]int(w.Block)
		case w.Group != nil:
			q.Group = max(*w.Group, 0)
		}
		if q.Skip == nil {
			q.Skip = []string{}
		}
		return q
	}
	return nil
}

func bitsOr4(n int) int {
	if n < 2 || n > 8 {
		return 4
	}
	return n
}

// TypeOf is a type as configs name it; empty if it is none of weights.
func TypeOf(name string) DType {
	return map[string]DType{"bfloat16": BF16, "float16": FP16, "float32": FP32}[strings.TrimPrefix(name, "torch.")]
}

// NewQuant is a method as --quant names it, with the library's defaults; nil if
// there is none of that name.
func NewQuant(name string) *Quant {
	switch name {
	case "nf4", "nf4-double":
		return &Quant{Method: NF4, Double: name == "nf4-double"}
	case "fp4", "fp4-double":
		return &Quant{Method: FP4, Double: name == "fp4-double"}
	case "int8":
		return &Quant{Method: Int8, Outliers: true}
	case "awq":
		return &Quant{Method: AWQ, Bits: 4, Group: 128, Stored: true}
	case "gptq":
		return &Quant{Method: GPTQ, Bits: 4, Group: 128, Stored: true}
	case "fp8":
		return &Quant{Method: FP8, Block: [2]int{128, 128}}
	case "fp8-tensor":
		return &Quant{Method: FP8}
	case "mxfp4":
		return &Quant{Method: MXFP4, Stored: true}
	}
	return nil
}

// QuantNames are the names that NewQuant knows.
var QuantNames = []string{"nf4", "nf4-double", "fp4", "fp4-double", "int8", "awq", "gptq", "fp8", "fp8-tensor", "mxfp4"}
