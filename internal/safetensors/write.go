package safetensors

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"unicode/utf8"
)

// metadataKey is the one name in a header that is no tensor.
const metadataKey = "__metadata__"

// Layout makes the beginning of a file that holds the tensors, and says in
// which order their data follows it: order[i] is the place of a tensor in the
// argument. Tensors with wider elements come first, so that the data of all is
// aligned as far as elements of whole bytes can be. Bytes of a tensor must be
// what its type and shape ask for.
func Layout(tensors []Tensor) (header []byte, order []int, err error) {
	seen := make(map[string]bool, len(tensors))
	for i, t := range tensors {
		want, err := size(t.DType, t.Shape)
		switch {
		case err != nil:
		case !utf8.ValidString(t.Name):
			err = errors.New("its name is not UTF-8")
		case t.Name == metadataKey:
			err = errors.New("the format has another use for that name")
		case seen[t.Name]:
			err = errors.New("there are two of that name")
		case want != t.Bytes:
			err = fmt.Errorf("%d bytes, but %s %v is %d", t.Bytes, t.DType, t.Shape, want)
		}
		if err != nil {
			return nil, nil, fmt.Errorf("tensor %q: %w", short(t.Name), err)
		}
		seen[t.Name] = true
		order = append(order, i)
	}
	slices.SortStableFunc(order, func(a, b int) int {
		return cmp.Compare(bitsOf[tensors[b].DType], bitsOf[tensors[a].DType])
	})
	out := bytes.NewBuffer(make([]byte, 8))
	at := uint64(0)
	for n, i := range order {
		t := &tensors[i]
		shape, data := append(dims{}, t.Shape...), offsets{at, at + t.Bytes}
		at += t.Bytes
		name, err := json.Marshal(t.Name)
		if err != nil {
			return nil, nil, err
		}
		value, err := json.Marshal(entry{&t.DType, &shape, &data})
		if err != nil {
			return nil, nil, err
		}
		out.WriteByte("{,"[min(n, 1)])
		out.Write(name)
		out.WriteByte(':')
		out.Write(value)
	}
	if len(order) == 0 {
		out.WriteByte('{')
	}
	out.WriteByte('}')
	for out.Len()%8 != 0 { // blanks at the end are part of the format: data begins aligned
		out.WriteByte(' ')
	}
	header = out.Bytes()
	if n := len(header) - 8; n > maxHeader {
		return nil, nil, fmt.Errorf("the header of %d tensors has %d bytes, above the format's limit of %d", len(tensors), n, maxHeader)
	}
	binary.LittleEndian.PutUint64(header, uint64(len(header)-8))
	return header, order, nil
}
