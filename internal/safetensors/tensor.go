package safetensors

import (
	"fmt"
	"math/bits"
)

// Tensor is one tensor of a checkpoint.
type Tensor struct {
	Name  string
	DType string // as the file names it: F32, BF16, F16, F8_E4M3, I64 ...
	Shape []int64
	Bytes uint64 // of the data
	File  string // the file that holds it, without its folder
}

// Elements is the number of elements; a tensor without dimensions has one.
func (t Tensor) Elements() uint64 {
	n := uint64(1)
	for _, d := range t.Shape {
		n *= uint64(d)
	}
	return n
}

// bitsOf is the width of an element of each type of the format.
var bitsOf = map[string]uint64{
	"BOOL": 8, "U8": 8, "I8": 8, "F8_E5M2": 8, "F8_E4M3": 8, "F8_E8M0": 8, "F8_E4M3FNUZ": 8, "F8_E5M2FNUZ": 8,
	"I16": 16, "U16": 16, "F16": 16, "BF16": 16,
	"I32": 32, "U32": 32, "F32": 32,
	"I64": 64, "U64": 64, "F64": 64, "C64": 64,
	"F4": 4, "F6_E2M3": 6, "F6_E3M2": 6,
}

// size is the number of bytes that type and shape ask for.
func size(dtype string, shape []int64) (uint64, error) {
	width, ok := bitsOf[dtype]
	if !ok {
		return 0, fmt.Errorf("dtype %q is not one of the format", dtype)
	}
	n := width
	for _, d := range shape {
		if d < 0 {
			return 0, fmt.Errorf("shape %v has a negative dimension", shape)
		}
		hi, lo := bits.Mul64(n, uint64(d))
		if hi != 0 || lo > 1<<62 {
			return 0, fmt.Errorf("shape %v is too large", shape)
		}
		n = lo
	}
	if n%8 != 0 {
		return 0, fmt.Errorf("shape %v of %s does not fill whole bytes", shape, dtype)
	}
	return n / 8, nil
}

// New returns a tensor of a type of the format. It panics on a type that the
// format does not have: the caller's words are wrong, not a file's.
func New(name, dtype string, shape ...int64) Tensor {
	n, err := size(dtype, shape)
	if err != nil {
		panic("safetensors: " + err.Error())
	}
	return Tensor{Name: name, DType: dtype, Shape: shape, Bytes: n}
}
