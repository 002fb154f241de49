package model

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/ashlar-mem/ashlar/internal/safetensors"
)

// QuantMethod is how weights are quantised.
type QuantMethod string

// The methods. NF4, FP4 and Int8 are bitsandbytes'; Compressed are the formats
// of compressed-tensors.
const (
	NF4        QuantMethod = "nf4"
	FP4        QuantMethod = "fp4"
	Int8       QuantMethod = "int8"
	AWQ        QuantMethod = "awq"
	GPTQ       QuantMethod = "gptq"
	FP8        QuantMethod = "fp8"
	MXFP4      QuantMethod = "mxfp4"
	Compressed QuantMethod = "compressed-tensors"
)

// Quant says which weights are quantised, and how they lie in memory.
type Quant struct {
	Method QuantMethod
	Double bool // bitsandbytes' 4 bits: the scales are quantised too
	Bits   int  // awq, gptq, compressed-tensors
	Group  int  // awq, gptq, compressed-tensors: inputs that share a scale; 0 is all of them
	Block  [2]int
	// Symmetric: compressed-tensors keeps no zero points.
	Symmetric bool
	// Float: compressed-tensors' 8 bits are fp8, not integers.
	Float bool
	// ByteScales: the scales of fp8 are powers of two of one byte.
	ByteScales bool
	// StaticInputs: fp8 has a scale for the inputs of each Linear.
	StaticInputs bool
	// Outliers: int8 computes columns with large inputs apart, as it does unless
	// llm_int8_threshold is 0.
	Outliers bool
	// Compute is the type that bitsandbytes' 4 bits are computed in; empty is that
	// of the inputs.
	Compute DType
	// Source is the type of the weights before they were quantised.
	Source DType
	// Stored: the checkpoint holds quantised weights. Otherwise they are quantised
	// on the GPU, one by one, as they are loaded.
	Stored bool
	// Skip are the modules that stay as they are: names, ends of names or regular
	// expressions for their beginning. Nil is the library's default.
	Skip []string
	// Files are the tensors of the modules that a checkpoint has quantised, by the
	// name of the module; those of experts by the name of their stacked weight. If
	// it is not nil nothing else is quantised.
	Files map[string][]safetensors.Tensor
}

// blockSize is how many weights share a scale in bitsandbytes' 4 bits, and
// nestedBlock how many scales do if they are quantised too.
const (
	blockSize   = 64
	nestedBlock = 256
)

// Tensors are what stands in memory for a weight of a Linear, [out, in], in the
// order in which the library makes them. Names are those of checkpoints.
func (q *Quant) Tensors(in, out int64) []safetensors.Tensor {
	n := in * out
	switch q.Method {
	case NF4, FP4:
		blocks := ceil(n, blockSize)
		w := safetensors.New("weight", "U8", (n+1)/2, 1)
		levels := safetensors.New("weight.quant_map", "F32", 16)
		if !q.Double {
			return []safetensors.Tensor{w, safetensors.New("weight.absmax", "F32", blocks), levels}
		}
		return []safetensors.Tensor{
			w, levels, safetensors.New("weight.nested_offset", "F32"), safetensors.New("weight.absmax", "U8", blocks),
			safetensors.New("weight.nested_absmax", "F32", ceil(blocks, nestedBlock)), safetensors.New("weight.nested_quant_map", "F32", 256),
		}
	case Int8:
		return []safetensors.Tensor{safetensors.New("weight", "I8", out, in), safetensors.New("SCB", "F32", out)}
	case AWQ:
		groups, words := in/q.group(in), out*int64(q.Bits)/32
		return []safetensors.Tensor{
			safetensors.New("qweight", "I32", in, words), safetensors.New("qzeros", "I32", groups, words), safetensors.New("scales", "F16", groups, out),
		}
	case GPTQ:
		groups := ceil(in, q.group(in))
		return []safetensors.Tensor{
			safetensors.New("qweight", "I32", ceil(in*int64(q.Bits), 32), out), safetensors.New("qzeros", "I32", groups, ceil(out*int64(q.Bits), 32)),
			safetensors.New("scales", "F16", groups, out), safetensors.New("g_idx", "I32", in),
		}
	case FP8:
		return q.eightBit(in, out)
	case MXFP4:
		return q.Stacked(1, 1, in, out)
	}
	return q.compressed(in, out)
}

// eightBit is FP8Linear of transformers.
func (q *Quant) eightBit(in, out int64) []safetensors.Tensor {
	scale := safetensors.New("weight_scale_inv", "F32")
	if q.Block[0] > 0 {
		scale = safetensors.New("weight_scale_inv", q.scaleType(), ceil(out, int64(q.Block[0])), ceil(in, int64(q.Block[1])))
	}
	list := []safetensors.Tensor{safetensors.New("weight", "F8_E4M3", out, in), scale}
	if q.StaticInputs {
		list = append(list, safetensors.New("activation_scale", "F32"))
	}
	return list
}

func (q *Quant) scaleType() string {
	if q.ByteScales {
		return "F8_E8M0"
	}
	return "F32"
}

// compressed are the formats pack-quantized (at most seven bits, or eight without
// quantised inputs), int-quantized and float-quantized of compressed-tensors.
func (q *Quant) compressed(in, out int64) []safetensors.Tensor {
	scales := int64(1)
	if q.Group > 0 {
		scales = ceil(in, int64(q.Group))
	}
	source := map[DType]string{FP32: "F32", FP16: "F16"}[q.Source]
	if source == "" {
		source = "BF16"
	}
	scale := safetensors.New("weight_scale", source, out, scales)
	switch {
	case q.Block[0] > 0:
		scale = safetensors.New("weight_scale", source, ceil(out, int64(q.Block[0])), ceil(in, int64(q.Block[1])))
	case q.Group < 0: // one for the tensor
		scale = safetensors.New("weight_scale", source, 1)
	}
	if q.Bits == 8 {
		return []safetensors.Tensor{safetensors.New("weight", map[bool]string{true: "F8_E4M3", false: "I8"}[q.Float], out, in), scale}
	}
	list := []safetensors.Tensor{safetensors.New("weight_packed", "I32", out, ceil(in*int64(q.Bits), 32)), scale, safetensors.New("weight_shape", "I64", 2)}
	if !q.Symmetric {
		list = append(list, safetensors.New("weight_zero_point", "I32", ceil(out*int64(q.Bits), 32), scales))
	}
	return list
}

// Stacked are what stands in memory for the weights of some experts, [experts,
// out, in], which are parts Linears side by side; none if the method leaves them
// as they are. AWQ, GPTQ and compressed-tensors quantise each Linear by itself.
func (q *Quant) Stacked(experts, parts, in, out int64) []safetensors.Tensor {
	switch q.Method {
	case MXFP4:
		return []safetensors.Tensor{
			safetensors.New("blocks", "U8", experts, out, in/32, 16), safetensors.New("scales", "U8", experts, out, in/32),
		}
	case FP8:
		rows, columns := parts, int64(1)
		if q.Block[0] > 0 {
			rows, columns = max(ceil(out, int64(q.Block[0])), parts), ceil(in, int64(q.Block[1]))
		}
		return []safetensors.Tensor{
			safetensors.New("weight", "F8_E4M3", experts, out, in), safetensors.New("weight_scale_inv", q.scaleType(), experts, rows, columns),
		}
	case AWQ, GPTQ, Compressed:
		var list []safetensors.Tensor
		for range experts * parts {
			list = append(list, q.Tensors(in, out/parts)...)
		}
		return list
	}
	return nil
}

func (q *Quant) group(in int64) int64 {
	if q.Group <= 0 {
		return in
	}
	return int64(q.Group)
}

func ceil(n, d int64) int64 { return (n + d - 1) / d }

// heads are the modules that libraries leave as they are unless a list says
// otherwise: the output embedding, what is tied to it, the last module.
var heads = []string{"lm_head", "embed_tokens", "cls.predictions", "classifier", "score", "qa_outputs", "shared"}

// Converts reports whether a Linear is quantised, by the name of its module.
func (q *Quant) Converts(module string) bool {
	switch {
	case q == nil || q.Method == MXFP4:
		return false
	case q.Files != nil:
		return q.Files[module] != nil
	case q.Method == GPTQ && !strings.Contains(module, "."): // only what is inside of layers
		return false
	}
	return q.ConvertsExperts(module)
}

// TakesConv1D reports whether the method makes a quantised Linear of a Conv1D,
// gpt2's.
func (q *Quant) TakesConv1D() bool {
	return q.Method == NF4 || q.Method == FP4 || q.Method == Int8 || q.Method == GPTQ
}

// ConvertsExperts is Converts for the experts of a layer, whose weights are
// stacked.
func (q *Quant) ConvertsExperts(module string) bool {
	skip := q.Skip
	if skip == nil || q.Method == AWQ {
		skip = slices.Concat(heads, skip)
	}
	return !slices.ContainsFunc(skip, func(pattern string) bool { return skips(pattern, module) })
}

// skips is should_convert_module of transformers: the pattern is a regular
// expression for the beginning of the name, or the end of the name.
// compressed-tensors marks expressions by "re:".
func skips(pattern, module string) bool {
	pattern = strings.TrimPrefix(pattern, "re:")
	if strings.HasSuffix(module, pattern) {
		return true
	}
	if !strings.ContainsAny(pattern, `*+?[](){}|\^$`) {
		return strings.HasPrefix(module, pattern)
	}
	known, ok := compiled.Load(pattern)
	if !ok {
		known, _ = regexp.Compile("^(?:" + pattern + ")")
		compiled.Store(pattern, known)
	}
	re := known.(*regexp.Regexp)
	return re != nil && re.MatchString(module)
}

// compiled are the expressions that skips met: a plan asks for every Linear, and
// each lever plans anew.
var compiled sync.Map

// Sources name the code that the sizes and moments of a method are taken from.
func (q *Quant) Sources() string {
	switch q.Method {
	case NF4, FP4, Int8:
		return BitsAndBytes
	case AWQ, GPTQ:
		return "gptqmodel 7.3"
	case Compressed:
		return "compressed-tensors 0.18"
	}
	return "transformers 5.16"
}

// BitsAndBytes is the version whose source is followed.
const BitsAndBytes = "bitsandbytes 0.50.1"

// String names the method as --quant does.
func (q *Quant) String() string {
	switch {
	case q.Method == NF4 && q.Double:
		return "nf4-double"
	case q.Method == FP4 && q.Double:
		return "fp4-double"
	case q.Method == FP8 && q.Block[0] == 0:
		return "fp8-tensor"
	case q.Method == Compressed:
		return fmt.Sprintf("%s, %d bits", q.Method, q.Bits)
	}
	return string(q.Method)
}
