package eager

// DType is the type of a tensor's elements.
type DType uint8

// The types, in the order of promotion.
const (
	Bool DType = iota
	UInt8
	Int32
	Int64
	Float16
	BFloat16
	Float32
	Float64
	Complex64
)

// noDType is that of a tensor that is gone.
const noDType DType = 255

var dtypeSizes = [...]int64{1, 1, 4, 8, 2, 2, 4, 8, 8}

var dtypeNames = [...]string{"bool", "uint8", "int32", "int64", "float16", "bfloat16", "float32", "float64", "complex64"}

// String returns torch's name.
func (d DType) String() string { return dtypeNames[d] }

// Size is the bytes of one element.
func (d DType) Size() int64 { return dtypeSizes[d] }

// IsFloat reports whether it is a floating-point type.
func (d DType) IsFloat() bool { return d >= Float16 && d <= Float64 }

// promote is the type of an op's result on tensors of both types.
func promote(a, b DType) DType {
	if a != b && min(a, b) == Float16 && max(a, b) == BFloat16 {
		return Float32
	}
	return max(a, b)
}
