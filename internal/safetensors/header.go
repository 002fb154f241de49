package safetensors

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// maxHeader is the limit of the format's own library. maxDims is far above any
// tensor, maxTensors above any model: those of a trillion parameters in thousands of experts have some 100,000.
const (
	maxHeader = 100_000_000
	maxDims   = 64

	maxTensors = 1 << 18
)

var errTensors = fmt.Errorf("more than %d tensors", maxTensors)

// entry is a tensor in a header.
type entry struct {
	DType   *string  `json:"dtype"`
	Shape   *dims    `json:"shape"`
	Offsets *offsets `json:"data_offsets"`
}

// dims are a shape, offsets where data begins and ends. They are counted before they are read.
type (
	dims    []int64
	offsets []uint64
)

func (d *dims) UnmarshalJSON(text []byte) error {
	if n := 1 + bytes.Count(text, []byte{','}); n > maxDims {
		return fmt.Errorf("%d dimensions", n)
	}
	return json.Unmarshal(text, (*[]int64)(d))
}

func (o *offsets) UnmarshalJSON(text []byte) error {
	if bytes.Count(text, []byte{','}) != 1 {
		return errors.New("there must be two data_offsets")
	}
	return json.Unmarshal(text, (*[]uint64)(o))
}

// placed is a tensor with the place of its data.
type placed struct {
	Tensor
	begin, end uint64
}

// Read reads the header of one .safetensors file that is size bytes long. The
// tensors come in the order of their data.
func Read(r io.Reader, size int64) ([]Tensor, error) {
	header, data, err := readHeader(r, size)
	if err != nil {
		return nil, err
	}
	list, err := parseHeader(header)
	if err != nil {
		return nil, err
	}
	return place(list, data)
}

// parseHeader reads the tensors of a header, one at a time.
func parseHeader(header []byte) (list []placed, err error) {
	if !json.Valid(header) {
		return nil, fmt.Errorf("the header is not a JSON object: %s", oneLine(json.Unmarshal(header, &struct{}{})))
	}
	err = members(header, func(name string, value json.RawMessage) error {
		if name == metadataKey {
			return nil
		}
		if len(list) == maxTensors {
			return errTensors
		}
		p, err := parse(name, value)
		if err != nil {
			return fmt.Errorf("tensor %q: %s", short(name), oneLine(err))
		}
		list = append(list, p)
		return nil
	})
	return list, err
}

// members calls f for the members of a JSON object, which is valid, until it returns an error. A map of them would take many
// times the memory of a text that has millions.
func members(object []byte, f func(name string, value json.RawMessage) error) error {
	in := json.NewDecoder(bytes.NewReader(object))
	if _, err := in.Token(); err != nil { // the brace
		return err
	}
	for in.More() {
		name, err := in.Token()
		if err != nil {
			return err
		}
		var value json.RawMessage
		if err := in.Decode(&value); err != nil {
			return err
		}
		if err := f(name.(string), value); err != nil {
			return err
		}
	}
	return nil
}

// readHeader returns the header and the length of the data after it.
func readHeader(r io.Reader, size int64) (header []byte, data uint64, err error) {
	var length [8]byte
	if _, err := io.ReadFull(r, length[:]); err != nil {
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return nil, 0, errors.New("shorter than 8 bytes: not a safetensors file, or its download was cut off")
		}
		return nil, 0, err
	}
	n := binary.LittleEndian.Uint64(length[:])
	rest := uint64(max(0, size-8))
	switch {
	case string(length[:]) == "version ":
		return nil, 0, errors.New("a pointer of Git LFS, not the file itself: run git lfs pull")
	case n > maxHeader:
		return nil, 0, fmt.Errorf("it begins as no safetensors file does: a header of %d bytes, above the limit of %d", n, maxHeader)
	case n > rest:
		return nil, 0, fmt.Errorf("the header of %d bytes goes beyond the end: the file was cut off", n)
	case n < 2:
		return nil, 0, fmt.Errorf("a header of %d bytes is too short", n)
	}
	header = make([]byte, n)
	if _, err := io.ReadFull(r, header); err != nil {
		return nil, 0, fmt.Errorf("the header of %d bytes could not be read: %w", n, err)
	}
	if header[0] != '{' {
		return nil, 0, errors.New("the header does not begin with {: not a safetensors file")
	}
	return header, rest - n, nil
}

// parse reads one tensor of a header.
func parse(name string, raw json.RawMessage) (placed, error) {
	var e entry
	if err := json.Unmarshal(raw, &e); err != nil {
		return placed{}, err
	}
	if e.DType == nil || e.Shape == nil || e.Offsets == nil {
		return placed{}, errors.New("dtype, shape or data_offsets is missing")
	}
	begin, end := (*e.Offsets)[0], (*e.Offsets)[1]
	want, err := size(*e.DType, *e.Shape)
	if err != nil {
		return placed{}, err
	}
	if end < begin || end-begin != want {
		return placed{}, fmt.Errorf("data_offsets %d to %d do not fit %s %v, which is %d bytes", begin, end, *e.DType, *e.Shape, want)
	}
	return placed{Tensor{Name: name, DType: *e.DType, Shape: *e.Shape, Bytes: want}, begin, end}, nil
}

// place orders tensors by their data and checks that they fill it.
func place(list []placed, data uint64) ([]Tensor, error) {
	slices.SortFunc(list, func(a, b placed) int {
		return cmp.Or(cmp.Compare(a.begin, b.begin), cmp.Compare(a.end, b.end), cmp.Compare(a.Name, b.Name))
	})
	out := make([]Tensor, len(list))
	at := uint64(0)
	for i, p := range list {
		if p.begin != at {
			return nil, fmt.Errorf("tensor %q: its data begins at %d, the data before it ends at %d", short(p.Name), p.begin, at)
		}
		if p.end > data {
			return nil, fmt.Errorf("tensor %q: its data ends at %d but the file has only %d bytes of data: it was cut off", short(p.Name), p.end, data)
		}
		at, out[i] = p.end, p.Tensor
	}
	if at != data {
		return nil, fmt.Errorf("%d bytes of data after the last tensor", data-at)
	}
	return out, nil
}

func oneLine(err error) string { return strings.Join(strings.Fields(err.Error()), " ") }

// short keeps a broken file's names from filling the screen.
func short(name string) string {
	if len(name) > 120 {
		return name[:120] + "..."
	}
	return name
}
