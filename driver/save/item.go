package save

import (
	"fmt"

	"github.com/ashlar-mem/ashlar/internal/safetensors"
)

// Item is a piece of device memory to save.
type Item struct {
	Name string
	Addr uint64
	Size uint64 // in bytes

	// DType and Shape are what the file says the bytes are, in the names of
	// the format: F32, BF16, I64 and so on. Without a type they are bytes.
	DType string
	Shape []int64
}

// piece is device memory whose bytes follow those of the piece before.
type piece struct{ addr, size uint64 }

// layout turns items into the header of the file and the memory that follows it.
func layout(items []Item) (header []byte, pieces []piece, err error) {
	tensors := make([]safetensors.Tensor, len(items))
	for i, it := range items {
		if it.DType == "" && it.Shape == nil {
			it.DType, it.Shape = "U8", []int64{int64(it.Size)}
		}
		if it.Size > 0 && it.Addr == 0 {
			return nil, nil, fmt.Errorf("item %q has no address", it.Name)
		}
		tensors[i] = safetensors.Tensor{Name: it.Name, DType: it.DType, Shape: it.Shape, Bytes: it.Size}
	}
	header, order, err := safetensors.Layout(tensors)
	if err != nil {
		return nil, nil, err
	}
	for _, i := range order {
		if items[i].Size > 0 {
			pieces = append(pieces, piece{items[i].Addr, items[i].Size})
		}
	}
	return header, pieces, nil
}
